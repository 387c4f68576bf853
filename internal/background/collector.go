package background

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercent is how much garbage there may be, relative to the live heap. A redirect makes
	// none; counting clicks makes some, beside links that stay. Go's own 100 would let the
	// process grow to twice what it needs (docs/decisions/0018).
	gcPercent = 50

	// leastGarbage is how much there may be with any live heap. Half of 10 MB is the garbage of
	// 400 creates: the collector ran ten times a second, and took a quarter of the processor time
	// of a create.
	leastGarbage = 12 << 20

	// collectorEvery is how often the live heap is measured.
	collectorEvery = time.Second
	// aheadEvery is how often the garbage is measured, where collections begin before the runtime
	// would. At 50,000 clicks a second one or two MB become garbage meanwhile.
	aheadEvery = 50 * time.Millisecond
)

// Collector sets how often garbage is collected, unless the operator does with GOGC.
//
// On a single processor the runtime marks in slices that grow to 13 ms, in which no redirect is
// answered. There it is set to twice the garbage, and the Collector begins each collection at the
// right amount, with a second P: the kernel lets redirects take the core from the thread that
// marks, and work that yields is held until the end.
type Collector struct {
	percent int     // in force; 0 = the operator's. Owned by Run
	ahead   *pauser // nil = the runtime begins collections
	booster *booster
}

// NewCollector sets the percentage, which Collector.Run adjusts.
func (s *Scheduler) NewCollector() *Collector { return newCollector(s.pauser, s.booster) }

func newCollector(ahead *pauser, b *booster) *Collector {
	if os.Getenv("GOGC") != "" {
		return &Collector{}
	}
	c := &Collector{ahead: ahead, booster: b}
	c.set(gcPercent)
	return c
}

// set sets how much garbage there may be.
func (c *Collector) set(percent int) {
	c.percent = percent
	if c.ahead != nil {
		percent *= 2
	}
	debug.SetGCPercent(percent)
}

// Run adjusts and collects until ctx ends, then returns nil.
func (c *Collector) Run(ctx context.Context) error {
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

// collect collects garbage with a P for it, while work that yields is held.
func (c *Collector) collect() {
	defer c.ahead.hold()()
	c.booster.doCollect(runtime.GC)
}

// adjust sets the percentage for a live heap, if it differs enough from the one in force: each
// change stops the world for some 20 µs.
func (c *Collector) adjust(live uint64) {
	percent := gcPercent
	if live > 0 {
		percent = max(percent, int(min(leastGarbage*100/live, 400)))
	}
	if percent == gcPercent && c.percent != gcPercent || percent*5 < c.percent*4 || percent*4 > c.percent*5 {
		c.set(percent)
	}
}

// heap returns how many bytes were live at the last collection, 0 = there was none, and how many
// are allocated now, garbage included.
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
