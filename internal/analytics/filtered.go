package analytics

import (
	"context"
	"fmt"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/history"
	"curt/internal/clicks/rollup"
)

// Filter keeps clicks that are all of what it names: the zero Filter keeps every click.
type Filter struct {
	Values map[clicks.Dimension]string
	Bot    *bool
}

// Any reports whether the filter leaves anything out.
func (f Filter) Any() bool { return len(f.Values) > 0 || f.Bot != nil }

// Takes reports whether a click is all of what the filter names.
func (f Filter) Takes(c *clicks.Click) bool {
	if f.Bot != nil && *f.Bot != c.Bot {
		return false
	}
	for d, value := range f.Values {
		if c.Value(d) != value {
			return false
		}
	}
	return true
}

// What one CountFiltered may cost: 0.1 s for the clicks of a busy link, which lie together, and
// some 30 ms for each page of a quiet one, whose clicks are spread over the log.
const (
	filterPageSize  = 10_000
	filterPages     = 32
	filterMaxClicks = 100_000
)

// FilteredCounts is what the clicks of a filter come to, within the scope.
type FilteredCounts struct {
	Totals

	Points []Point
	Top    [][]Row // by dimension
	// From is when the first click lies that could be counted: raw clicks end there, or
	// the work of one answer. What is before it in Points is zero, and not known.
	From time.Time
}

// CountFiltered answers for a filter what Series and Top answer for all clicks. Roll-ups do not
// say which of the clicks from one country were of one browser, so it counts raw clicks,
// newest first: as far back as they are kept, and at most some 100,000. From and To of the
// scope MUST be set. Complete is taken from the totals of all clicks.
func CountFiltered(ctx context.Context, h History, s Scope, step Step, f Filter, n int, all Totals, now time.Time, dimensions ...clicks.Dimension) (FilteredCounts, error) {
	p, err := s.plan(step, time.Time{}, now)
	if err != nil {
		return FilteredCounts{}, err
	}
	r := p.span()
	agg := newFilterAgg(newSeries(p, all.CompleteUntil), step, now, dimensions)
	agg.found.LastUpdated, agg.found.CompleteUntil = all.LastUpdated, all.CompleteUntil
	agg.found.From = r.from
	if since := h.Since(); since.After(r.from) {
		agg.found.From = since
	}
	q := history.Query{Key: s.Key, From: r.from, To: r.to, Limit: filterPageSize}
	last := r.to
	for pages, looked := 0, 0; ; pages++ {
		page, err := h.Page(ctx, q)
		if err != nil {
			return FilteredCounts{}, fmt.Errorf("filter clicks: %w", unavailable(ctx, err))
		}
		for i := range page.Clicks {
			if c := &page.Clicks[i]; c.Outcome == clicks.Redirected && f.Takes(c) {
				agg.add(c)
			}
		}
		if n := len(page.Clicks); n > 0 {
			looked, last = looked+n, page.Clicks[n-1].Time
		}
		if !page.More {
			break
		}
		if looked >= filterMaxClicks || pages+1 >= filterPages {
			agg.found.From = last
			break
		}
		q.Before = page.Next
	}
	return agg.sum(n, dimensions), nil
}

// filterAgg is one CountFiltered in progress.
type filterAgg struct {
	found  FilteredCounts
	series *series
	step   Step
	day    time.Time // a click from here on is of the last 24 hours
	sums   []map[string]*Row
	dims   []clicks.Dimension
	seen   map[visit]struct{}
}

// visit is a visitor within one step, or within one UTC day, where step is below zero.
type visit struct {
	step int
	tag  uint64
}

func newFilterAgg(s *series, step Step, now time.Time, dimensions []clicks.Dimension) *filterAgg {
	v := &filterAgg{series: s, step: step, day: now.UTC().Add(-day).Truncate(time.Minute), dims: dimensions, seen: map[visit]struct{}{}}
	for range dimensions {
		v.sums = append(v.sums, map[string]*Row{})
	}
	return v
}

func (v *filterAgg) add(c *clicks.Click) {
	if c.Preview {
		v.found.Previews++
		return
	}
	i := v.series.at(c.Time)
	if i < 0 {
		return
	}
	p, human := &v.series.points[i], uint64(1)
	if c.Bot {
		human = 0
	}
	p.Clicks++
	p.Humans += human
	v.found.Clicks++
	v.found.Humans += human
	if !c.Time.Before(v.day) {
		v.found.Clicks24h++
	}
	if c.Time.After(v.found.LastClicked) {
		v.found.LastClicked = c.Time
	}
	for i, d := range v.dims {
		if value := c.Value(d); value != "" {
			row := v.sums[i][value]
			if row == nil {
				row = &Row{Value: value}
				v.sums[i][value] = row
			}
			row.Clicks++
			row.Humans += human
		}
	}
	if human == 0 {
		return
	}
	if v.step != Minute && v.first(visit{i, c.Visitor}) {
		p.Visitors++
	}
	if v.first(visit{-1 - int(rollup.BucketAt(rollup.Day, c.Time).Ordinal), c.Visitor}) {
		v.found.VisitorDays++
	}
}

// first reports whether a visit was not seen before.
func (v *filterAgg) first(at visit) bool {
	_, known := v.seen[at]
	v.seen[at] = struct{}{}
	return !known
}

func (v *filterAgg) sum(n int, dimensions []clicks.Dimension) FilteredCounts {
	v.found.Points = v.series.points
	for i := range dimensions {
		all := make([]rollup.Value, 0, len(v.sums[i]))
		for _, row := range v.sums[i] {
			all = append(all, rollup.Value(*row))
		}
		v.found.Top = append(v.found.Top, mostClicked(all, n))
	}
	return v.found
}
