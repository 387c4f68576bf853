package abuse

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
)

const (
	// maxAnHour is how many links of one maker within an hour are usual (the fourth
	// article behind the design, "Deep Dive 4").
	maxAnHour = 50
	// remembered bounds the makers of whom something is known. It is some 200 bytes for
	// each; beyond it those go that are asked for least.
	remembered = 50_000
	// minutes cut the hour that slides: a link counts for 60 to 61 of them.
	minutes = 61
)

// maker is whose links are counted: a key, or the network of somebody without one.
type maker struct {
	key     string
	network netip.Prefix
}

func makerOf(f *Facts) maker {
	if f.Maker != "" {
		return maker{key: f.Maker}
	}
	return maker{network: f.Network}
}

// Rate is the signal Velocity. It counts what it is asked about, links that are refused
// afterwards too, because a flood is one whatever becomes of it; changes and fallbacks are
// not counted. What it knows is in memory, bounded, and forgotten at a restart.
type Rate struct {
	makers *otter.Cache[maker, *hour]
}

// NewRate returns the signal, which knows of no link yet.
func NewRate() (*Rate, error) {
	c, err := otter.New(&otter.Options[maker, *hour]{MaximumSize: remembered})
	if err != nil {
		return nil, fmt.Errorf("count the links of makers: %w", err)
	}
	return &Rate{makers: c}, nil
}

// Name implements Signal.
func (*Rate) Name() Name { return Velocity }

// Look implements Signal.
func (r *Rate) Look(_ context.Context, now time.Time, f *Facts) ([]Finding, error) {
	who := makerOf(f)
	if f.Change || f.Fallback || who == (maker{}) {
		return nil, nil
	}
	h, ok := r.makers.GetIfPresent(who)
	if !ok {
		h, _ = r.makers.ComputeIfAbsent(who, func() (*hour, bool) { return &hour{}, false })
	}
	n := h.add(now)
	if n <= maxAnHour {
		return nil, nil
	}
	return one(Velocity, fmt.Sprintf("%d links of this maker within an hour", n)), nil
}

// hour counts events of the last hour by the minute.
type hour struct {
	mu     sync.Mutex
	latest int64           // minute since 1970 of the newest event
	counts [minutes]uint16 // by minute modulo minutes; full at 65,535
	sum    int             // of counts
}

// add counts one event and returns how many there were within an hour, with this one. A
// clock that goes back counts into the newest minute.
func (h *hour) add(now time.Time) int {
	minute := now.Unix() / 60
	h.mu.Lock()
	defer h.mu.Unlock()
	if minute-h.latest >= minutes {
		h.counts, h.sum, h.latest = [minutes]uint16{}, 0, minute
	}
	for h.latest < minute {
		h.latest++
		old := &h.counts[h.latest%minutes]
		h.sum -= int(*old)
		*old = 0
	}
	if c := &h.counts[h.latest%minutes]; *c < 1<<16-1 {
		*c++
		h.sum++
	}
	return h.sum
}
