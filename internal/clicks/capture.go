package clicks

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"curt/internal/repeatlog"
)

// CaptureConfig says what Capture connects.
type CaptureConfig struct {
	Ring   *Ring
	Log    *Log
	Keys   DayKeys
	Geo    Geo          // nil = places are unknown
	Detail Detail       // what is kept of headers
	Logger *slog.Logger // nil = none
}

// Capture brings clicks from the Ring into the Log and forgets addresses on the
// way, and of headers what is not to be kept. From there on nothing is lost.
type Capture struct {
	cfg      CaptureConfig
	instance uint64
	visitors visitorTags // owned by Run
	reducer  reducer     // owned by Run
	tally    *Tally      // set before Run; nil = what a kill takes is not counted

	// owned by Run
	sequence uint64
	block    []byte
	head     blockHead
	origin   origin
	rests    [][]byte // per shard: what is left of what take returned
	mark     int64    // of the last block
	waiting  repeatlog.Condition
	clock    wallClock

	mu    sync.Mutex
	stats CaptureStats // guarded by mu
}

// CaptureStats are counters since the start.
type CaptureStats struct {
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

// settle is how much younger than a drain the clicks are that it may have missed:
// a request has its time a little before it is in the ring.
const settle = 50 * time.Millisecond

// NewCapture returns a Capture with a random instance.
func NewCapture(c CaptureConfig) *Capture {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
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
// Whoever records must have stopped before ctx ends.
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
			if err := c.drain(closing); err != nil {
				return fmt.Errorf("%d clicks that waited in memory are lost: %w", c.waits(), err)
			}
			return c.cfg.Log.Sync()
		case now := <-tick.C:
			c.visitors.prepare(ctx, now)
		case <-c.cfg.Ring.wake:
		}
		if err := c.drain(ctx); err != nil {
			c.count(func(s *CaptureStats) { s.Errors++ })
			if again, due := c.waiting.Met(time.Now()); due {
				c.cfg.Logger.ErrorContext(ctx, "clicks wait in memory", slog.Any("err", err), again)
			}
		} else if sum, due := c.waiting.Over(time.Now()); due {
			c.cfg.Logger.InfoContext(ctx, "clicks no longer wait in memory", sum)
		}
	}
}

// waits returns how many clicks are in the ring and not in the log.
func (c *Capture) waits() uint64 {
	recorded, captured := c.cfg.Ring.Recorded(), c.Stats().Clicks
	return recorded - min(recorded, captured)
}

// Stats returns the counters.
func (c *Capture) Stats() CaptureStats { c.mu.Lock(); defer c.mu.Unlock(); return c.stats }

func (c *Capture) count(f func(*CaptureStats)) { c.mu.Lock(); defer c.mu.Unlock(); f(&c.stats) }

// drain appends what the ring holds. After an error the ring still holds what was
// not appended.
func (c *Capture) drain(ctx context.Context) error {
	began := time.Now()
	c.begin()
	c.reducer.agents.begin()
	for i := range c.rests { // all first: append releases all
		c.rests[i] = c.cfg.Ring.take(i)
	}
	for i := range c.rests {
		for len(c.rests[i]) > 0 {
			c.add(ctx, i)
			if len(c.block) < blockTarget {
				continue
			}
			if err := c.append(c.mark); err != nil { // more is to come: no new promise
				return err
			}
		}
	}
	mark := began.Add(-settle)
	c.clock.look(ctx, began, c.cfg.Logger)
	if c.head.count > 0 {
		if err := c.append(mark.UnixMilli()); err != nil {
			return err
		}
	}
	c.mark = mark.UnixMilli()
	c.cfg.Log.setMark(mark.UTC())
	return nil
}

// begin starts a block.
func (c *Capture) begin() {
	c.block = append(c.block[:0], make([]byte, headSize)...)
	c.head = blockHead{instance: c.instance, first: c.sequence}
	c.origin.begin()
}

// yieldEvery is how many clicks are written between two pauses for goroutines that are
// ready, redirects that were read among them: about 15 µs. Those still in the network
// are let in by the kernel (docs/decisions/0012).
const yieldEvery = 16

// add moves one click of shard i into the block.
func (c *Capture) add(ctx context.Context, i int) {
	var raw Raw
	c.rests[i] = nextRing(c.rests[i], &raw)
	h := &c.head
	if h.count == 0 {
		h.base, h.earliest, h.latest = raw.Time, raw.Time, raw.Time
	}
	h.earliest, h.latest = min(h.earliest, raw.Time), max(h.latest, raw.Time)
	c.origin.see(raw.Addr)
	tag := c.visitors.tag(ctx, &raw) // of the whole user agent
	var place Place
	if c.cfg.Geo != nil && raw.Addr.IsValid() {
		place = c.cfg.Geo.Locate(raw.Addr.Unmap())
	}
	parsed := c.reducer.agents.parsed
	who := c.reducer.reduce(&raw)
	c.block = appendEvent(c.block, &raw, who, h.base, tag, place)
	if h.count++; h.count%yieldEvery == 0 || c.reducer.agents.parsed != parsed {
		runtime.Gosched()
	}
}

// append writes the block, gives the ring its bytes back and begins the next one.
func (c *Capture) append(mark int64) error {
	c.head.watermark, c.head.origin = mark, c.origin.flags()
	sealBlock(c.block, c.head)
	if _, err := c.cfg.Log.Append(c.block, time.Now()); err != nil {
		return err
	}
	for i, rest := range c.rests {
		c.cfg.Ring.release(i, rest)
	}
	c.origin.written()
	c.sequence += uint64(c.head.count)
	c.tally.written(c.sequence)
	n, untagged, unlisted := uint64(c.head.count), c.visitors.untagged, c.reducer.agents.unlisted
	c.count(func(s *CaptureStats) { s.Clicks += n; s.Blocks++; s.Untagged, s.Unlisted = untagged, unlisted })
	c.begin()
	return nil
}
