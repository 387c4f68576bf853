package analytics_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/analytics"
	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// counting is a Reader whose counts grow with each question, until it fails or is silent.
type counting struct {
	n      uint64
	err    error
	silent bool
}

func (c *counting) ask(ctx context.Context) (uint64, error) {
	if c.silent {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}
	c.n++
	return c.n, c.err
}

func (c *counting) Totals(ctx context.Context, _ analytics.Scope, _ time.Time) (t analytics.Totals, err error) {
	n, err := c.ask(ctx)
	return analytics.Totals{Counts: rollup.Counts{Clicks: n}}, err
}

func (c *counting) Series(ctx context.Context, s analytics.Scope, _ analytics.Step, _ time.Time) ([]analytics.Point, error) {
	n, err := c.ask(ctx)
	return []analytics.Point{{Start: s.From, Clicks: n}}, err
}

func (c *counting) Top(ctx context.Context, _ analytics.Scope, _ int, _ time.Time, d ...clicks.Dimension) ([][]analytics.Row, error) {
	n, err := c.ask(ctx)
	return [][]analytics.Row{{{Value: fmt.Sprintf("%v", d), Clicks: n}}}, err
}

func (c *counting) Clicks(ctx context.Context, _ []link.Key) ([]uint64, error) {
	n, err := c.ask(ctx)
	return []uint64{n}, err
}

func TestRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{}
		r := analytics.NewRecent(c)
		now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
		scope := func(code string) analytics.Scope {
			return analytics.Scope{Key: link.Key{Code: link.Code(code)}, From: now.AddDate(0, 0, -30), To: now.Add(12 * time.Hour)}
		}
		a := scope("a")
		ask := func(ctx context.Context, s analytics.Scope, now time.Time) (got []uint64, failed error) {
			totals, err := r.Totals(ctx, s, now)
			series, err2 := r.Series(ctx, s, analytics.Day, now)
			top, err3 := r.Top(ctx, s, 5, now, clicks.Country)
			if failed = errors.Join(err, err2, err3); failed == nil {
				got = []uint64{totals.Clicks, series[0].Clicks, top[0][0].Clicks}
			}
			return got, failed
		}
		want := func(what string, s analytics.Scope, later time.Duration, want []uint64, asOf time.Time) {
			t.Helper()
			ctx, age := analytics.WithAge(t.Context())
			got, err := ask(ctx, s, now.Add(later))
			if d := cmp.Diff(want, got); d != "" || (err == nil) != (want != nil) || err != nil && !errors.Is(err, analytics.ErrUnavailable) {
				t.Errorf("%s: %v %s", what, err, d)
			}
			if !age.AsOf().Equal(asOf) {
				t.Errorf("%s: as of %v, want %v", what, age.AsOf(), asOf)
			}
		}
		want("fresh", a, 0, []uint64{1, 2, 3}, time.Time{})
		want("fresh again", a, time.Minute, []uint64{4, 5, 6}, time.Time{})
		known := now.Add(time.Minute)
		c.err = fmt.Errorf("%w: away", analytics.ErrUnavailable)
		want("away", a, time.Hour, []uint64{4, 5, 6}, known)
		want("another link", scope("b"), time.Hour, nil, time.Time{})
		tomorrow := a
		tomorrow.From, tomorrow.To = a.From.AddDate(0, 0, 1), a.To.AddDate(0, 0, 1)
		want("the same days up to the present, tomorrow", tomorrow, 20*time.Hour, []uint64{4, 5, 6}, known)
		want("too old", tomorrow, 25*time.Hour, nil, time.Time{})
		past := a
		past.From, past.To = a.From.AddDate(0, 0, -30), a.From
		want("a range that nobody asked for", past, time.Hour, nil, time.Time{})
		c.err, c.silent = nil, true
		begun := time.Now()
		want("silent", a, time.Hour, []uint64{4, 5, 6}, known)
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := ask(gone, a, now.Add(time.Hour)); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that left: %v", err)
		}
		c.silent = false
		c.err = analytics.ErrRange
		if _, err := r.Totals(t.Context(), a, now); !errors.Is(err, analytics.ErrRange) {
			t.Errorf("a wrong range is hidden: %v", err)
		}
		if r.Stale() != 9 {
			t.Errorf("%d answers were stale, want 9", r.Stale())
		}
	})
}

// Answers that are remembered are bounded: the least recently used go first.
func TestRecentIsBounded(t *testing.T) {
	c := &counting{}
	r := analytics.NewRecent(c)
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	const links = 100_000 // of some 300 bytes
	for i := range links {
		if _, err := r.Totals(t.Context(), analytics.Scope{Key: link.Key{Code: link.Code(fmt.Sprint(i))}}, now); err != nil {
			t.Fatal(err)
		}
	}
	c.err = analytics.ErrUnavailable
	known := 0
	for i := range links {
		if _, err := r.Totals(t.Context(), analytics.Scope{Key: link.Key{Code: link.Code(fmt.Sprint(i))}}, now); err == nil {
			known++
		}
	}
	if known < 40_000 || known > 70_000 {
		t.Errorf("%d of %d answers are known, of at most 16 MiB", known, links)
	}
	if _, err := r.Totals(t.Context(), analytics.Scope{Key: link.Key{Code: link.Code(fmt.Sprint(links - 1))}}, now); err != nil {
		t.Errorf("the newest: %v", err)
	}
}
