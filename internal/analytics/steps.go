package analytics

import (
	"fmt"
	"time"

	"curt/internal/clicks/rollup"
)

const (
	quarter = 15 * time.Minute
	day     = 24 * time.Hour
)

// span is a scope's time, widened to whole units, UTC.
type span struct{ from, to time.Time }

// resolve fills in what the scope leaves open and widens it to whole units.
func (s Scope) resolve(unit time.Duration, first, now time.Time) (span, error) {
	from, to := s.From.UTC(), s.To.UTC()
	if s.To.IsZero() {
		to = now.UTC()
	}
	if s.From.IsZero() {
		from = first.UTC()
		if first.IsZero() || first.After(to) {
			from = to.Add(-unit)
		}
	}
	if !from.Before(to) {
		return span{}, fmt.Errorf("%w: it ends before it begins", ErrRange)
	}
	if from.Year() < 1970 || to.Year() > 2089 {
		return span{}, fmt.Errorf("%w: it is outside of 1970 to 2089", ErrRange)
	}
	r := span{from.Truncate(unit), to.Truncate(unit)}
	if r.to.Before(to) {
		r.to = r.to.Add(unit)
	}
	return r, nil
}

// points returns the starts of the steps that cover r, and the end of the last.
func points(r span, step Step, zone *time.Location) ([]time.Time, error) {
	at := step.Floor(r.from, zone)
	var starts []time.Time
	for at.Before(r.to) {
		if len(starts) == MaxPoints {
			return nil, fmt.Errorf("%w: more than %d steps", ErrRange, MaxPoints)
		}
		starts = append(starts, at)
		at = step.after(at)
	}
	return append(starts, at), nil
}

// unit is what all starts of a step are multiples of: every zone's offset is a
// multiple of a quarter hour since 1972.
func (s Step) unit() time.Duration {
	if s == Minute {
		return time.Minute
	}
	return quarter
}

// begins reports whether a step begins at t, which is a multiple of the unit. A day
// begins with its first quarter hour, which is not midnight where clocks are put
// forward at midnight.
func (s Step) begins(t time.Time) bool {
	switch s {
	case Hour:
		return t.Minute() == 0
	case Day:
		return t.Add(-quarter).Day() != t.Day()
	default:
		return true
	}
}

// after returns the start of the step that follows the one at t. It goes on in
// units, because hours and days are longer or shorter where clocks are changed.
func (s Step) after(t time.Time) time.Time {
	next := t.Add(s.unit())
	if s == Day {
		next = t.Add(20 * time.Hour) // the shortest day had 21: Antarctica/Casey, 2009-10-18
	}
	for !s.begins(next) {
		next = next.Add(s.unit())
	}
	return next
}

// buckets returns the stored buckets that cover r exactly: whole UTC days where
// they fit, quarter hours at the edges. r is made of whole quarter hours.
func buckets(r span) []rollup.Span {
	first, last := r.from.Truncate(day), r.to.Truncate(day) // UTC midnights
	if first.Before(r.from) {
		first = first.Add(day)
	}
	if !first.Before(last) {
		return quarters(nil, r)
	}
	spans := quarters(nil, span{r.from, first})
	spans = append(spans, rollup.Span{
		Granularity: rollup.Day,
		First:       rollup.BucketAt(rollup.Day, first).Ordinal,
		Last:        rollup.BucketAt(rollup.Day, last.Add(-day)).Ordinal,
	})
	return quarters(spans, span{last, r.to})
}

func quarters(spans []rollup.Span, r span) []rollup.Span {
	if !r.from.Before(r.to) {
		return spans
	}
	return append(spans, rollup.Span{
		Granularity: rollup.Quarter,
		First:       rollup.BucketAt(rollup.Quarter, r.from).Ordinal,
		Last:        rollup.BucketAt(rollup.Quarter, r.to.Add(-quarter)).Ordinal,
	})
}

func clip(r span, from, to time.Time) span {
	c := span{from.UTC(), to.UTC()}
	if c.from.Before(r.from) {
		c.from = r.from
	}
	if c.to.After(r.to) {
		c.to = r.to
	}
	return c
}
