package server

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercent is how much garbage there may be for what is in use. A redirect makes
	// none; what counts clicks makes some, beside links that stay. Go's own 100 would let
	// the process grow to twice what it needs (docs/decisions/0018).
	gcPercent = 50

	// leastGarbage is how much there may be however little is in use. With 10 MB in use, half
	// of that would be made by 400 creates: the collector ran ten times a second, and took a
	// quarter of the processor time of a create.
	leastGarbage = 12 << 20

	// collectorEvery is how often it is looked at what is in use.
	collectorEvery = time.Second
	// aheadEvery is how often it is looked at how much garbage there is, where the collector is to
	// begin before the runtime would. At 50,000 clicks a second one or two MB are made meanwhile.
	aheadEvery = 50 * time.Millisecond
)

// collector rules how often garbage is collected, unless GOGC in the environment says what the
// operator wants.
//
// On a single processor the runtime marks by itself in slices that grow to 13 ms, in
// which no redirect is answered. So it is told to wait for twice the garbage, and the collector
// begins at the right amount, with a processor on loan: then the kernel lets redirects take the
// core from the thread that marks, and what counts waits until that is done.
type collector struct {
	percent    int     // as it is; 0 = the operator rules. Owned by Run
	ahead      *pauses // nil = the runtime begins
	processors *processors
}

func newCollector(ahead *pauses, p *processors) *collector {
	if os.Getenv("GOGC") != "" {
		return &collector{}
	}
	c := &collector{ahead: ahead, processors: p}
	c.set(gcPercent)
	return c
}

// set sets how much garbage there may be.
func (c *collector) set(percent int) {
	c.percent = percent
	if c.ahead != nil {
		percent *= 2
	}
	debug.SetGCPercent(percent)
}

// Run rules until ctx ends, then returns nil.
func (c *collector) Run(ctx context.Context) error {
	ticks := time.NewTicker(collectorEvery)
	defer ticks.Stop()
	var soon <-chan time.Time
	if c.ahead != nil {
		often := time.NewTicker(aheadEvery)
		defer often.Stop()
		soon = often.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			if c.percent != 0 {
				live, _ := heap()
				c.adjust(live)
			}
		case <-soon:
			if live, all := heap(); all-live > live*uint64(c.percent)/100 && all > leastGarbage {
				c.collect()
			}
		}
	}
}

// collect collects garbage with a processor for it, while nothing counts.
func (c *collector) collect() {
	defer c.ahead.hold()()
	c.processors.collect(runtime.GC)
}

// adjust sets what is right for what is in use, where that is another thing than what holds:
// each time the world stops for some 20 µs.
func (c *collector) adjust(live uint64) {
	percent := gcPercent
	if live > 0 {
		percent = max(percent, int(min(leastGarbage*100/live, 400)))
	}
	if percent == gcPercent && c.percent != gcPercent || percent*5 < c.percent*4 || percent*4 > c.percent*5 {
		c.set(percent)
	}
}

// heap returns how many bytes the last collection found in use, 0 = there was none, and how many
// are taken now, garbage included.
func heap() (live, all uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples)
	for i, n := range []*uint64{&live, &all} {
		if samples[i].Value.Kind() == metrics.KindUint64 {
			*n = samples[i].Value.Uint64()
		}
	}
	return live, max(all, live)
}
