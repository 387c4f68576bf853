package fill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"curt/internal/backend/sqlite/counts"
	"curt/internal/backend/sqlite/searchindex"
	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
	"curt/internal/search"
)

const (
	// HotDays is how long the Hot link was clicked: until the day of the fill.
	HotDays = 365
	// quarterClicks makes HotClicks of a year of quarter hours.
	quarterClicks = 286
	// HotClicks are on the Hot link.
	HotClicks = HotDays * 96 * quarterClicks

	// clickedShare is how many links there are for each that was ever clicked.
	clickedShare = 10

	clickedBatch = 50_000 // links in one batch of roll-ups
)

// Clicked returns how many links of the store were ever clicked.
func (b *Busy) Clicked() int { return (b.Count() + clickedShare - 1) / clickedShare }

// click writes the statistics and the order by clicks, unless they are there.
func (b *Busy) click(ctx context.Context, index *searchindex.Index, progress io.Writer) (err error) {
	store, err := counts.Open(ctx, counts.Config{Path: filepath.Join(b.Folder, "clicks.db")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	state, err := store.Load(ctx)
	if err != nil {
		return err
	}
	ranked, err := index.Generation(ctx)
	if err != nil || ranked > 0 {
		return err // an interrupted one has no generation
	}
	if state.Generation > 0 {
		return errors.New("the statistics are half written: delete the folder")
	}
	begin := time.Now()
	w := clickWriter{store: store, today: begin.UTC().Truncate(24 * time.Hour)}
	if err := w.hot(ctx, link.Key{Code: b.Hot}); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(progress, "fill %s: %d clicks on %s, %.0f s\n", b.Folder, HotClicks, b.Hot, time.Since(begin).Seconds())
	if err := b.rank(ctx, index, &w); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(progress, "fill %s: %d links clicked, %.0f s\n", b.Folder, b.Clicked(), time.Since(begin).Seconds())
	return nil
}

// rank writes the clicks of links, the Hot one's aside, and their order.
func (b *Busy) rank(ctx context.Context, index *searchindex.Index, w *clickWriter) error {
	ranks := make([]search.Rank, b.Clicked())
	for i := range ranks {
		l := link.Link{Key: link.Key{Code: b.Code(i * clickedShare)}, Workspace: link.WorkspaceDefault}
		if err := vary(b.id(i*clickedShare), &l); err != nil {
			return err
		}
		ranks[i] = search.Rank{Hit: search.Hit{ID: l.ID, Key: l.Key}, Workspace: l.Workspace, Clicks: 1 + 1_000_000/uint64(i+1)}
	}
	ranks[0].Clicks = HotClicks
	slices.SortFunc(ranks[1:], func(x, y search.Rank) int {
		return cmp.Or(cmp.Compare(x.Key.Domain, y.Key.Domain), cmp.Compare(x.Key.Code, y.Key.Code))
	})
	for part := range slices.Chunk(ranks[1:], clickedBatch) {
		if err := w.links(ctx, part); err != nil {
			return err
		}
		if err := index.Rank(ctx, part, 0); err != nil {
			return err
		}
	}
	return index.Rank(ctx, ranks[:1], w.generation)
}

// clickWriter writes roll-ups as Fold does.
type clickWriter struct {
	store      *counts.Rollups
	today      time.Time
	generation uint64
}

func (w *clickWriter) apply(ctx context.Context, deltas []rollup.LinkDelta) error {
	w.generation++
	return w.store.Apply(ctx, rollup.Batch{
		State: rollup.State{Generation: w.generation},
		Links: func(yield func([]rollup.LinkDelta) bool) {
			for chunk := range slices.Chunk(deltas, 1000) {
				if !yield(chunk) {
					return
				}
			}
		},
	})
}

// links writes each link's total, and all of it in one quarter hour of the last month.
func (w *clickWriter) links(ctx context.Context, ranks []search.Rank) error {
	deltas := make([]rollup.LinkDelta, len(ranks))
	for i, r := range ranks {
		at := w.today.AddDate(0, 0, -1-i%30).Add(time.Duration(i%96) * 15 * time.Minute)
		counts := rollup.Counts{Clicks: r.Clicks, Humans: r.Clicks}
		deltas[i] = rollup.LinkDelta{
			Key: r.Key, Total: rollup.Total{Counts: counts, FirstSeen: at.UnixMilli(), LastClicked: at.UnixMilli()},
			Buckets: []rollup.BucketDelta{
				{Bucket: rollup.BucketAt(rollup.Quarter, at), Rollup: &rollup.Rollup{Counts: counts}},
				{Bucket: rollup.BucketAt(rollup.Day, at), Rollup: &rollup.Rollup{Counts: counts}},
			},
		}
	}
	return w.apply(ctx, deltas)
}

// hot writes the year of the Hot link.
func (w *clickWriter) hot(ctx context.Context, k link.Key) error {
	random := rand.New(rand.NewPCG(1, 1))
	for day := w.today.AddDate(0, 0, -HotDays); day.Before(w.today); day = day.AddDate(0, 0, 1) {
		sum := &rollup.Rollup{}
		var buckets []rollup.BucketDelta
		for q := range 96 {
			r := quarter(random)
			buckets = append(buckets, rollup.BucketDelta{
				Bucket: rollup.BucketAt(rollup.Quarter, day.Add(time.Duration(q)*15*time.Minute)), Rollup: r,
			})
			sum.Add(r)
		}
		buckets = append(buckets, rollup.BucketDelta{Bucket: rollup.BucketAt(rollup.Day, day), Rollup: sum})
		total := rollup.Total{Counts: sum.Counts, FirstSeen: day.UnixMilli(), LastClicked: day.Add(23 * time.Hour).UnixMilli()}
		if err := w.apply(ctx, []rollup.LinkDelta{{Key: k, Total: total, Buckets: buckets}}); err != nil {
			return err
		}
	}
	return nil
}

// quarter is a quarter hour of the Hot link: 20,000 people a day from everywhere.
func quarter(random *rand.Rand) *rollup.Rollup {
	const n = quarterClicks
	r := &rollup.Rollup{Counts: rollup.Counts{Clicks: n, Humans: n}}
	tags := make([]uint64, n)
	for i := range tags {
		tags[i] = random.Uint64N(20_000)*0x9e3779b97f4a7c15 + 1
	}
	r.Visitors.Add(tags)
	for m := range uint8(15) {
		r.Minutes = append(r.Minutes, rollup.Minute{Index: m, Clicks: n / 15, Humans: n / 15})
	}
	r.Minutes[0].Clicks, r.Minutes[0].Humans = n-14*(n/15), n-14*(n/15)
	for d, kinds := range map[clicks.Dimension]int{clicks.Country: 40, clicks.City: 100, clicks.ReferrerHost: 100, clicks.Browser: 12} {
		for i := range kinds {
			some := uint64((n + i) / kinds) // which add up to n
			r.Dimensions[d] = append(r.Dimensions[d], rollup.Value{Value: fmt.Sprintf("%s %03d", d, i), Clicks: some, Humans: some})
		}
	}
	return r
}
