package signals

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"curt/internal/abuse"
	"curt/internal/background"
	"curt/internal/ratelimit"
	"curt/internal/repeatlog"
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

func makerOf(f *abuse.Facts) maker {
	if f.Creator != "" {
		return maker{key: f.Creator}
	}
	return maker{network: f.Network}
}

// Rate is the signal Velocity. It counts what it is asked about, links that are refused
// afterwards too, because a flood is one whatever becomes of it; changes and fallbacks are
// not counted. It counts in memory, bounded, and never waits. With Share, counts are exchanged with
// other servers and survive a restart: a server knows of links that others created when it has seen
// one of the same creator itself, and exchanged it, which takes less than a second.
type Rate struct {
	makers *otter.Cache[maker, *hour]
	share  RateShare
	wake   chan struct{} // has an element when something is pending

	mu      sync.Mutex
	pending map[created]int // guarded by mu: links that the Tally does not know; nil = there is none
}

// created is what is counted in a Tally.
type created struct {
	by     maker
	minute int64
}

// RateShare says how servers share their counts.
type RateShare struct {
	Tally ratelimit.Tally
	Key   ratelimit.HashKey // of all that share the Tally
	Log   *slog.Logger
}

// NewRate returns the signal, which knows of no link yet.
func NewRate() (*Rate, error) {
	c, err := otter.New(&otter.Options[maker, *hour]{MaximumSize: remembered})
	if err != nil {
		return nil, fmt.Errorf("count the links of creators: %w", err)
	}
	return &Rate{makers: c, wake: make(chan struct{}, 1)}, nil
}

// Share has Run exchange counts with other servers. It is called before the signal is used.
func (r *Rate) Share(s RateShare) { r.share, r.pending = s, map[created]int{} }

const (
	// sharePause is how long counts gather after an exchange before the next.
	sharePause = 500 * time.Millisecond
	// pendingMakers bounds what one exchange has, and what waits for a Tally that fails.
	pendingMakers = 5000
)

// Run exchanges counts until ctx ends, and once more then.
func (r *Rate) Run(ctx context.Context) error {
	var failures repeatlog.Condition
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-r.wake:
			err := r.exchange(context.WithoutCancel(ctx))
			if err == nil {
				failures.LogRecovery(ctx, time.Now(), r.share.Log, "sharing counts of created links recovered")
			} else {
				failures.Log(ctx, time.Now(), r.share.Log, slog.LevelWarn, "sharing counts of created links failed", err)
				r.poke()
			}
			background.Sleep(ctx, sharePause)
		}
	}
	if err := r.exchange(context.WithoutCancel(ctx)); err != nil {
		r.share.Log.WarnContext(ctx, "sharing counts of created links failed on shutdown", slog.Any("err", err))
	}
	return nil
}

func (r *Rate) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// note has the next exchange tell of a link.
func (r *Rate) note(who maker, now time.Time) {
	if r.share.Tally == nil {
		return
	}
	c := created{who, now.Unix() / 60}
	r.mu.Lock()
	n, known := r.pending[c]
	if known || len(r.pending) < pendingMakers {
		r.pending[c] = n + 1
	}
	r.mu.Unlock()
	if len(r.wake) == 0 {
		r.poke()
	}
}

// exchange tells the Tally what was counted here, and takes over what was counted elsewhere.
func (r *Rate) exchange(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeLimit)
	defer cancel()
	r.mu.Lock()
	told := r.pending
	r.pending = make(map[created]int, len(told))
	r.mu.Unlock()
	if len(told) == 0 {
		return nil
	}
	adds, makers, newest := make([]ratelimit.Count, 0, len(told)), make(map[uint64]maker, len(told)), int64(0)
	for c, n := range told {
		id := r.share.Key.Sum(c.by.key, c.by.network.String())
		makers[id], newest = c.by, max(newest, c.minute)
		adds = append(adds, ratelimit.Count{Creator: id, Minute: c.minute, Links: n})
	}
	sums, err := r.share.Tally.Count(ctx, adds, newest-minutes)
	if err != nil {
		r.mu.Lock()
		for c, n := range told {
			r.pending[c] += n
		}
		r.mu.Unlock()
		return err //nolint:wrapcheck // it names the operation
	}
	for _, s := range sums {
		if h, ok := r.makers.GetIfPresent(makers[s.Creator]); ok {
			h.raise(s.Minute, s.Links)
		}
	}
	return nil
}

// exchangeLimit is how long an exchange may take.
const exchangeLimit = 3 * time.Second

// Name implements abuse.Signal.
func (*Rate) Name() abuse.Name { return abuse.Velocity }

// Inspect implements abuse.Signal.
func (r *Rate) Inspect(_ context.Context, now time.Time, f *abuse.Facts) ([]abuse.Finding, error) {
	who := makerOf(f)
	if f.Change || f.Fallback || who == (maker{}) {
		return nil, nil
	}
	h, ok := r.makers.GetIfPresent(who)
	if !ok {
		h, _ = r.makers.ComputeIfAbsent(who, func() (*hour, bool) { return &hour{}, false })
	}
	n := h.add(now)
	r.note(who, now)
	if n <= maxAnHour {
		return nil, nil
	}
	return abuse.Found(abuse.Velocity, fmt.Sprintf("%d links by this creator within an hour", n)), nil
}

// hour counts events of the last hour by the minute.
type hour struct {
	mu     sync.Mutex
	latest int64           // minute since 1970 of the newest event
	counts [minutes]uint16 // by minute modulo minutes; full at 65,535
	sum    int             // of counts
}

// raise has a minute count at least n events: those of all servers.
func (h *hour) raise(minute int64, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.advance(minute)
	if minute <= h.latest-minutes {
		return
	}
	c := &h.counts[minute%minutes]
	if more := min(n, 1<<16-1) - int(*c); more > 0 {
		*c += uint16(more)
		h.sum += more
	}
}

// advance makes a minute the newest. It is locked.
func (h *hour) advance(minute int64) {
	if minute-h.latest >= minutes {
		h.counts, h.sum, h.latest = [minutes]uint16{}, 0, minute
	}
	for h.latest < minute {
		h.latest++
		old := &h.counts[h.latest%minutes]
		h.sum -= int(*old)
		*old = 0
	}
}

// add counts one event and returns how many there were within an hour, with this one. A
// clock that goes back counts into the newest minute.
func (h *hour) add(now time.Time) int {
	minute := now.Unix() / 60
	h.mu.Lock()
	defer h.mu.Unlock()
	h.advance(minute)
	if c := &h.counts[h.latest%minutes]; *c < 1<<16-1 {
		*c++
		h.sum++
	}
	return h.sum
}
