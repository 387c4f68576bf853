package analytics

import (
	"fmt"
	"time"

	"curt/internal/clicks/rollup"
)

// Plan is the time of a question, cut up as the counts are that answer it.
type Plan struct {
	From, To time.Time   // UTC, widened to whole units
	Starts   []time.Time // of a series' steps, in the scope's zone, and the end of the last
}

// Plan returns the time of a question about the scope: of a series with a step, of sums
// with none. first is when the link was first asked for, and matters where From is zero.
// The error is ErrRange.
func (s Scope) Plan(step Step, first, now time.Time) (Plan, error) {
	p, err := s.plan(step, first, now)
	if err == nil && step == Minute && p.From.Before(now.Add(-MinuteRetention).Truncate(time.Minute)) {
		return Plan{}, fmt.Errorf("%w: minutes are kept for %s", ErrRange, MinuteRetention)
	}
	return p, err
}

// plan is Plan where it does not matter how long minutes are kept.
func (s Scope) plan(step Step, first, now time.Time) (Plan, error) {
	r, err := s.resolve(step.unit(), first, now)
	if err != nil || step == 0 {
		return Plan{From: r.from, To: r.to}, err
	}
	zone := s.Zone
	if zone == nil {
		zone = time.UTC
	}
	starts, err := points(r, step, zone)
	return Plan{From: r.from, To: r.to, Starts: starts}, err
}

func (p Plan) span() span { return span{p.From, p.To} }

// Buckets returns what covers the plan exactly: whole UTC days where they fit, quarter
// hours at the edges. From and To MUST be whole quarter hours, which they are unless the
// step is a minute.
func (p Plan) Buckets() []rollup.Span { return buckets(p.span()) }

// Points returns the points of the series, with nothing counted yet. complete is the time
// before which every click is counted.
func (p Plan) Points(complete time.Time) []Point {
	all := make([]Point, len(p.Starts)-1)
	for i := range all {
		all[i].Start = p.Starts[i]
		all[i].Complete = !clip(p.span(), p.Starts[i], p.Starts[i+1]).to.After(complete)
	}
	return all
}
