package capture

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/repeatlog"
)

// Config says what Capture connects.
type Config struct {
	Ring   *Ring
	Log    *clicklog.Log
	Keys   DayKeys
	Geo    clicks.Geo   // nil = places are unknown
	Detail Detail       // what is kept of headers
	Logger *slog.Logger // nil = none
}

// Capture brings clicks from the Ring into the Log and forgets addresses on the
// way, and of headers what is not to be kept. From there on nothing is lost.
type Capture struct {
	cfg      Config
	instance uint64
	visitors visitorTags // owned by Run
	reducer  reducer     // owned by Run
	tally    *Tally      // set before Run; nil = what a kill takes is not counted

	// owned by Run
	sequence uint64
	block    clicklog.Builder
	origin   origin
	rests    [][]byte // per shard: what is left of what take returned
	mark     int64    // of the last block
	waiting  repeatlog.Condition
	clock    wallClock

	mu    sync.Mutex
	stats Stats // guarded by mu
}

// Stats are counters since the start.
type Stats struct {
	Clicks   uint64 // in the log
	Blocks   uint64
	Untagged uint64 // clicks whose visitor is unknown because there was no day key
	Unlisted uint64 // clicks whose user agent was not looked up in the bot list, because too many new ones came at once
	Errors   uint64 // drains that the log did not take; the clicks waited in the ring
}

// drainEvery keeps what kill -9 can take under 120 ms on a machine that is busy, and not
// on one that gives us no processor for so long (docs/decisions/0034): with
// 90 ms, 6 of 300 kills under load took more.
const drainEvery = 50 * time.Millisecond

// closingTime is what shutdown leaves for the last drain.
const closingTime = 3 * time.Second

// lateness is how long before it is in the ring a click may have been timed: a drain may have
// missed clicks that are younger than that.
const lateness = 50 * time.Millisecond

// New returns a Capture with a random instance.
func New(c Config) *Capture {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	var instance [8]byte
	_, _ = rand.Read(instance[:]) // never fails: crypto/rand ends the process instead
	return &Capture{
		cfg: c, instance: binary.LittleEndian.Uint64(instance[:]),
		visitors: visitorTags{keys: c.Keys, logger: c.Logger}, reducer: newReducer(c.Detail),
		rests: make([][]byte, len(c.Ring.shards)),
	}
}

// Instance returns what the clicks of this process are named by.
func (c *Capture) Instance() uint64 { return c.instance }

// Prepare asks for the key that visitors of now are tagged with, so that the first of them
// is, too, and waits for it a little. Without it, or where it fails, Run asks. Call it
// before Run, if at all.
func (c *Capture) Prepare(ctx context.Context) {
	now := time.Now()
	c.visitors.prepare(ctx, now)
	if q := c.visitors.asked; q != nil {
		q.until = now.Add(firstKeyWait)
		c.visitors.wait(ctx)
	}
}

// Run drains the ring until ctx ends, then once more, and makes the log durable.
// All Records must have returned before ctx ends.
func (c *Capture) Run(ctx context.Context) error {
	defer c.visitors.close()
	c.visitors.prepare(ctx, time.Now()) // before a click has to wait for it
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closingTime)
			defer cancel()
			if err := c.Drain(closing); err != nil {
				return fmt.Errorf("%d clicks in memory are lost: %w", c.waits(), err)
			}
			return c.cfg.Log.Sync()
		case now := <-tick.C:
			c.visitors.prepare(ctx, now)
		case <-c.cfg.Ring.wake:
		}
		if err := c.Drain(ctx); err != nil {
			c.count(func(s *Stats) { s.Errors++ })
			c.waiting.Log(ctx, time.Now(), c.cfg.Logger, slog.LevelError, "writing the click log failed, clicks wait in memory", err)
		} else {
			c.waiting.LogRecovery(ctx, time.Now(), c.cfg.Logger, "writing the click log recovered")
		}
	}
}

// waits returns how many clicks are in the ring and not in the log.
func (c *Capture) waits() uint64 {
	recorded, captured := c.cfg.Ring.Recorded(), c.Stats().Clicks
	return recorded - min(recorded, captured)
}

// Stats returns the counters.
func (c *Capture) Stats() Stats { c.mu.Lock(); defer c.mu.Unlock(); return c.stats }

func (c *Capture) count(f func(*Stats)) { c.mu.Lock(); defer c.mu.Unlock(); f(&c.stats) }

// Drain appends what the ring holds, as Run does every 50 ms. After an error the ring still holds what was
// not appended.
func (c *Capture) Drain(ctx context.Context) error {
	began := time.Now()
	c.begin()
	c.reducer.agents.Begin(botListBudget)
	for i := range c.rests { // all first: append releases all
		c.rests[i] = c.cfg.Ring.take(i)
	}
	for i := range c.rests {
		for len(c.rests[i]) > 0 {
			c.add(ctx, i)
			if !c.block.Full() {
				continue
			}
			if err := c.append(c.mark); err != nil { // more is to come: no new promise
				return err
			}
		}
	}
	mark := began.Add(-lateness)
	c.clock.look(ctx, began, c.cfg.Logger)
	if c.block.Count() > 0 {
		if err := c.append(mark.UnixMilli()); err != nil {
			return err
		}
	}
	c.mark = mark.UnixMilli()
	c.cfg.Log.SetMark(mark.UTC())
	return nil
}

// begin starts a block.
func (c *Capture) begin() {
	c.block.Reset(clicks.EventID{Instance: c.instance, Sequence: c.sequence})
	c.origin.begin()
}

// yieldEvery is how many clicks are written between two pauses for goroutines that are
// ready, redirects that were read among them: about 15 µs. Those still in the network
// are let in by the kernel (docs/decisions/0012).
const yieldEvery = 16

// add moves one click of shard i into the block.
func (c *Capture) add(ctx context.Context, i int) {
	var raw clicks.Raw
	c.rests[i] = nextRing(c.rests[i], &raw)
	c.origin.see(raw.Addr)
	tag := c.visitors.tag(ctx, &raw) // of the whole user agent
	place := c.locate(&raw)
	parsed, _ := c.reducer.agents.Parsed()
	who := c.reducer.reduce(&raw)
	c.block.Add(&raw, who, tag, place)
	if now, _ := c.reducer.agents.Parsed(); now != parsed || c.block.Count()%yieldEvery == 0 {
		runtime.Gosched()
	}
}

// locate returns the place of a click. A country that a trusted proxy states counts; a city that
// is in another one does not.
func (c *Capture) locate(raw *clicks.Raw) (place clicks.Location) {
	if c.cfg.Geo != nil && raw.Addr.IsValid() {
		place = c.cfg.Geo.Locate(raw.Addr.Unmap())
	}
	if raw.Country != ([2]byte{}) && raw.Country != place.Country {
		place.Country, place.City = raw.Country, ""
	}
	return place
}

// append writes the block, gives the ring its bytes back and begins the next one.
func (c *Capture) append(mark int64) error {
	if _, err := c.cfg.Log.Append(c.block.Seal(mark, c.origin.flags()), time.Now()); err != nil {
		return err
	}
	for i, rest := range c.rests {
		c.cfg.Ring.release(i, rest)
	}
	c.origin.written()
	n := uint64(c.block.Count())
	c.sequence += n
	c.tally.written(c.sequence)
	untagged := c.visitors.untagged
	_, unlisted := c.reducer.agents.Parsed()
	c.count(func(s *Stats) { s.Clicks += n; s.Blocks++; s.Untagged, s.Unlisted = untagged, unlisted })
	c.begin()
	return nil
}

// origin follows the addresses of the clicks that Capture puts into blocks.
type origin struct {
	addr    netip.Addr // of the clicks of the block so far
	several bool       // they came from others, too
	before  netip.Addr // of all clicks of the block before; invalid = of several, or there is none
}

// begin starts a block.
func (o *origin) begin() { o.addr, o.several = netip.Addr{}, false }

// see notes where a click of the block came from; what is unknown may be anywhere.
func (o *origin) see(a netip.Addr) {
	if !o.addr.IsValid() {
		o.addr = a
	}
	o.several = o.several || !a.IsValid() || a.IsUnspecified() || a != o.addr
}

// flags is what the head of the block says.
func (o *origin) flags() clicklog.Origin {
	switch {
	case o.several || !o.addr.IsValid():
		return 0
	case o.addr == o.before:
		return clicklog.OneAddress | clicklog.SameAddress
	default:
		return clicklog.OneAddress
	}
}

// written ends a block that is in the log.
func (o *origin) written() {
	o.before = o.addr
	if o.several {
		o.before = netip.Addr{}
	}
}

// clockJump is how far the clock on the wall may part at once from the one that only goes
// on: more is no clock that is kept in time, but one that was set.
const clockJump = 5 * time.Second

// wallClock notices that the clock was set. Clicks bear its times, so days may then have
// clicks that came on another.
type wallClock struct {
	last   time.Time // with its reading of the monotonic clock
	jumped repeatlog.Condition
}

// look compares the clocks since the look before.
func (w *wallClock) look(ctx context.Context, now time.Time, log *slog.Logger) {
	last := w.last
	w.last = now
	if last.IsZero() {
		return
	}
	w.compare(ctx, now, now.Round(0).Sub(last.Round(0))-now.Sub(last), log)
}

// compare logs by how much the clock was set. A machine that slept looks the same where
// the monotonic clock sleeps with it.
func (w *wallClock) compare(ctx context.Context, now time.Time, by time.Duration, log *slog.Logger) {
	if by.Abs() < clockJump {
		w.jumped.LogRecovery(ctx, now, log, "")
		return
	}
	w.jumped.Log(ctx, now, log, slog.LevelWarn, "clock jumped, clicks get the new time", nil, slog.Duration("by", by))
}
