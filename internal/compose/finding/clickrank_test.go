package finding

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
	"curt/internal/search"
	"curt/internal/search/searchtest"
)

// house is what ClickHouse says.
type house struct {
	complete time.Time
	since    time.Time // that was asked for last
	asked    func()    // while it is asked; nil = nothing
	recent   []link.Key
	all      []link.Key // in order
	err      error
}

func (h *house) Clicks(_ context.Context, keys []link.Key) ([]uint64, error) {
	return make([]uint64, len(keys)), h.err
}

func (h *house) ClickedSince(_ context.Context, minute time.Time, _ int) ([]link.Key, error) {
	h.since = minute
	if h.asked != nil {
		h.asked()
	}
	return h.recent, h.err
}

func (h *house) ClickedAfter(_ context.Context, after link.Key, n int) ([]link.Key, error) {
	i := slices.IndexFunc(h.all, func(k link.Key) bool { return k.Code > after.Code })
	if i < 0 {
		return nil, h.err
	}
	return h.all[i:min(i+n, len(h.all))], h.err
}

func (h *house) LastProgress() watermarks.Progress {
	return watermarks.Progress{Freshness: rollup.Freshness{Complete: h.complete}}
}

func TestRankingGoesOn(t *testing.T) {
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }
	h, ranks := &house{complete: at(-1)}, searchtest.NewRanks()
	begin := func() *clickhouseCounts {
		return &clickhouseCounts{store: h, ranking: ranks, now: func() time.Time { return now }, log: slog.New(slog.DiscardHandler)}
	}
	counted := func(c *clickhouseCounts) time.Time {
		t.Helper()
		n, err := c.Counted(t.Context())
		if err != nil || n != c.told {
			t.Fatal(n, err)
		}
		return time.Unix(int64(n), 0)
	}
	ranker := search.NewRanker(search.RankerConfig{})
	c := begin()
	if err := c.tell(t.Context(), ranker); err != nil || !h.since.IsZero() {
		t.Errorf("asked before the ranker has begun: %v, %v", h.since, err)
	}
	if got := counted(c); !got.Equal(at(-1)) {
		t.Errorf("of a ranking that is new: %v", got)
	}

	// What was clicked since clicks were complete; nothing new leaves the generation.
	for _, step := range []struct {
		complete    int
		recent      []link.Key
		since, told int
	}{{0, []link.Key{{Code: "a"}}, -1, 0}, {1, nil, 0, 0}, {2, []link.Key{{Code: "a"}, {Code: "b"}}, 1, 2}, {1, []link.Key{{Code: "b"}}, 2, 2}} {
		h.complete, h.recent = at(step.complete), step.recent
		if err := c.tell(t.Context(), ranker); err != nil || !h.since.Equal(at(step.since)) || c.told != uint64(at(step.told).Unix()) {
			t.Errorf("%+v: since %v, told %v, %v", step, h.since, c.told, err)
		}
	}
	h.err = errors.New("away")
	if err := c.tell(t.Context(), ranker); !errors.Is(err, h.err) || !c.from.Equal(at(1)) {
		t.Errorf("%v, from %v", err, c.from)
	}
	h.err = nil

	// A start goes on, also one after something has failed, unless it was away for too long.
	for _, start := range []struct{ noted, want time.Time }{{at(-60), at(-60)}, {at(-60 * 72), at(1)}} {
		if err := ranks.Rank(t.Context(), nil, uint64(start.noted.Unix())); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*clickhouseCounts{begin(), c} {
			if got := counted(c); !got.Equal(start.want) || !c.from.Equal(start.want) {
				t.Errorf("noted %v: %v from %v, want %v", start.noted, got, c.from, start.want)
			}
		}
	}

	// An answer of before a start is not that of the question after it.
	if err := ranks.Rank(t.Context(), nil, uint64(at(-30).Unix())); err != nil {
		t.Fatal(err)
	}
	h.asked = func() { counted(c) }
	if err := c.tell(t.Context(), ranker); err != nil || !c.from.Equal(at(-30)) {
		t.Errorf("%v, from %v", err, c.from)
	}
}

func TestRankingWalks(t *testing.T) {
	h := &house{}
	for code := 'a'; code <= 'g'; code++ {
		h.all = append(h.all, link.Key{Code: link.Code(code)})
	}
	c := &clickhouseCounts{store: h}
	for range 2 {
		var got []link.Key
		for after := int64(0); ; {
			keys, next, err := c.Clicked(t.Context(), after, 3)
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, keys...); next == 0 {
				break
			}
			after = next
		}
		if !slices.Equal(got, h.all) {
			t.Errorf("walked %v", got)
		}
	}
	if _, _, err := c.Clicked(t.Context(), 9, 3); !errors.Is(err, errWalk) {
		t.Errorf("a page of another walk: %v", err)
	}
}
