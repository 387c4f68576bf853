package figures

import (
	"errors"
	"fmt"
	"time"

	"curt/bench/internal/clickcost"
	"curt/bench/internal/load"
)

// Sample is what one turn measured. Fields that a turn does not measure are zero.
type Sample struct {
	load.Outcome
	ServerCPU   time.Duration // of the server within the window
	DatabaseCPU time.Duration // of PostgreSQL, likewise
	Startup     time.Duration
	Late        time.Duration // until all links were announced that had expired
	RSS         int64
	RSSFirst    int64 // in minute 5 of a soak
	Clicks      clickcost.Cost
	Shared      float64 // links that came from Redis
	Stored      float64 // and from the link store
	dropped     float64 // clicks that curt lost because they came too fast
}

// summary is a sample in a line of progress.
func (s Sample) summary() (text string) {
	for i := range s.Streams {
		l := &s.Streams[i].Latency
		text += fmt.Sprintf("; %.0f/s p50 %s p99 %s max %s", s.PerSecond(i), l.Quantile(0.5), l.Quantile(0.99), l.Max())
	}
	if n := s.Answered(); n > 0 {
		text += fmt.Sprintf("; CPU per request: server %s, generator %s", s.ServerCPU/time.Duration(n), s.CPU/time.Duration(n))
	}
	if n := s.Clicks.Clicks; n > 0 {
		text += fmt.Sprintf("; CPU per click %s, %.0f/s, %d batches", s.Clicks.CPU/time.Duration(n), float64(n)/s.Clicks.Wall.Seconds(), s.Clicks.Batches)
	}
	if s.Startup > 0 && s.RSS > 0 {
		text += fmt.Sprintf("; ready after %s, %.1f MB", s.Startup.Round(time.Millisecond/10), float64(s.RSS)/1e6)
	}
	if err := s.Wrong(); err != nil {
		text += "; WRONG: " + err.Error()
	}
	return text
}

// Series are the samples of one turn, one of each round.
type Series []Sample

// Values returns a number of each sample.
func (s Series) Values(f func(Sample) float64) []float64 {
	all := make([]float64, len(s))
	for i := range s {
		all[i] = f(s[i])
	}
	return all
}

// PerSecond are the right answers of a stream.
func (s Series) PerSecond(stream int) []float64 {
	return s.Values(func(r Sample) float64 { return r.PerSecond(stream) })
}

// Quantile is in milliseconds.
func (s Series) Quantile(stream int, q float64) []float64 {
	return s.Values(func(r Sample) float64 { return Millis(r.Streams[stream].Latency.Quantile(q)) })
}

// PerRequest is the server's CPU time in µs, over all streams.
func (s Series) PerRequest() []float64 {
	return s.Values(func(r Sample) float64 {
		return r.ServerCPU.Seconds() * 1e6 / float64(max(r.Answered(), 1))
	})
}

// Broken names what makes the series worthless, "" = nothing does.
func (s Series) Broken() string {
	var errs []error
	for i, r := range s {
		if err := r.Wrong(); err != nil {
			errs = append(errs, fmt.Errorf("round %d: %w", i+1, err))
		}
		if r.dropped > 0 {
			errs = append(errs, fmt.Errorf("round %d: %.0f clicks were dropped", i+1, r.dropped))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err.Error()
	}
	return ""
}

// PerDatabase is the CPU time of PostgreSQL for each right answer, in µs.
func (s Series) PerDatabase() []float64 {
	return s.Values(func(r Sample) float64 { return r.DatabaseCPU.Seconds() * 1e6 / float64(max(r.Answered(), 1)) })
}

// Millis returns a time in milliseconds.
func Millis(d time.Duration) float64 { return d.Seconds() * 1e3 }
