package server

import (
	"context"
	"os"
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
)

// collector rules how often garbage is collected, unless GOGC in the environment says what the
// operator wants.
type collector struct {
	percent int // as it is; 0 = the operator rules. Owned by Run
}

func newCollector() *collector {
	if os.Getenv("GOGC") != "" {
		return &collector{}
	}
	debug.SetGCPercent(gcPercent)
	return &collector{percent: gcPercent}
}

// Run rules until ctx ends, then returns nil.
func (c *collector) Run(ctx context.Context) error {
	ticks := time.NewTicker(collectorEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			if c.percent != 0 {
				c.adjust(liveBytes())
			}
		}
	}
}

// adjust sets what is right for what is in use, where that is another thing than what holds:
// each time the world stops for some 20 µs.
func (c *collector) adjust(live uint64) {
	percent := gcPercent
	if live > 0 {
		percent = max(percent, int(min(leastGarbage*100/live, 400)))
	}
	if percent == gcPercent && c.percent != gcPercent || percent*5 < c.percent*4 || percent*4 > c.percent*5 {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

// liveBytes is what the last collection found in use; 0 = there was none.
func liveBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
