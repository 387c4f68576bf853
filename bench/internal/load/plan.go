package load

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"curt/bench/internal/hist"
)

// Stream is one kind of request, with connections of its own.
type Stream struct {
	Name  string
	Addr  netip.AddrPort
	Conns int
	Rate  float64 // arrivals a second on average; 0 = closed loop
	Want  int     // the status of a right answer

	// Next appends one whole request to b and returns it. It is called once for
	// each request, on the generator's thread; it must be quick.
	Next func(b []byte) []byte

	// Wants, if set, returns the status that answers what Next made last, in place of
	// Want.
	Wants func() int
}

// Plan is one run.
type Plan struct {
	Streams []Stream
	Warmup  time.Duration // load that is not measured, first
	Measure time.Duration
	Drain   time.Duration // how long answers are waited for after that; 0 = 10 s
	Seed    uint64        // of the arrivals

	// Mark, if set, is called when the measured window begins and when it ends, on
	// the generator's thread: the place to read other processes' clocks.
	Mark func(begins bool)
}

// Result is what one stream saw.
type Result struct {
	// Latency is of the requests that belong to the window: those of an open loop
	// from when they should have been sent, those of a closed loop from when they
	// were sent, to the last byte of the answer. Only right answers count.
	Latency hist.Histogram

	// Late is, of the open loop's requests, from when they should have been sent to
	// when they were: what the generator and busy connections add.
	Late hist.Histogram

	// Repeated are GET requests that met a kept connection just when the server closed it,
	// and were sent again on another. More than one in a thousand answers is wrong.
	Repeated uint64

	Answered uint64            // right answers that came within the window
	Wrong    map[string]uint64 // what else happened in the whole run; empty = nothing
	Example  string            // the first answer with another status, whole
}

// Outcome is what a run saw. Streams are in the order of the plan.
type Outcome struct {
	Streams []Result
	Window  time.Duration // how long the measured window was
	CPU     time.Duration // of the generator's thread within the window
}

// PerSecond returns the right answers of stream i a second.
func (o Outcome) PerSecond(i int) float64 {
	return float64(o.Streams[i].Answered) / o.Window.Seconds()
}

// Answered returns the right answers of all streams within the window.
func (o Outcome) Answered() (n uint64) {
	for _, s := range o.Streams {
		n += s.Answered
	}
	return n
}

// Wrong returns an error that names everything that was not a right answer; nil
// when nothing was wrong.
func (o Outcome) Wrong() error {
	var errs []error
	for i, s := range o.Streams {
		for what, n := range s.Wrong {
			errs = append(errs, fmt.Errorf("stream %d: %d × %s", i, n, what))
		}
		if s.Repeated*1000 > s.Answered {
			errs = append(errs, fmt.Errorf("stream %d: %d kept connections were closed before a request, with %d answers", i, s.Repeated, s.Answered))
		}
		if s.Example != "" {
			errs = append(errs, fmt.Errorf("stream %d: such as %q", i, s.Example))
		}
	}
	return errors.Join(errs...)
}

func (p Plan) validate() error {
	for _, s := range p.Streams {
		if s.Conns <= 0 || s.Rate < 0 || s.Next == nil || !s.Addr.Addr().Is4() {
			return fmt.Errorf("stream %q: want connections, a maker of requests and an IPv4 address", s.Name)
		}
	}
	if len(p.Streams) == 0 || p.Measure <= 0 {
		return errors.New("a plan without streams or without time")
	}
	return nil
}
