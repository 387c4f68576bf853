// Package ship sends the click log elsewhere, such as to Kafka, at least once and in order.
//
// Read ship.go first; sender.go is what a store knows of a server that ships.
package ship

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"curt/internal/background"
	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/repeatlog"
	"curt/internal/statefile"
)

// Sink takes what the log holds elsewhere, such as to Kafka. Its methods are called by one
// goroutine.
type Sink interface {
	// Send begins to deliver the events of a block. It waits while the sink has no room,
	// and copies what it keeps. done is called once, by any goroutine, possibly before
	// Send returns and never when Send returns an error: with nil when all events have
	// arrived and survive there, otherwise with what went wrong, and any of them may have
	// arrived. Blocks are sent in the order of the log; one that was not delivered is sent
	// again, with all behind it, so that an event may arrive more than once, with the
	// same [EventID], and in the order of the sequence again.
	Send(ctx context.Context, b *clicklog.Block, done func(error)) error

	// SendWatermark says that every event of the instance before a time (Unix milliseconds) was
	// delivered. [Ended] says that the instance makes no more. It is sent after what it
	// speaks of was acknowledged.
	SendWatermark(ctx context.Context, instance uint64, watermark int64) error
}

// Config says what a Shipper reads and where it brings it.
type Config struct {
	Log   *clicklog.Log
	Sink  Sink
	State string // file of the position; it is made
	// Instance is that of the log's Capture, so that it is known before its first click.
	Instance uint64
	// Began is a time before the instance's first click, and all that the log holds of others:
	// its first promise.
	Began  time.Time
	Logger *slog.Logger // nil = none

	// Window is how many blocks may be on their way; 0 = 64, some 64 MiB at the most.
	Window int
	// Paused keeps it from reading, for measurements: the log grows.
	Paused bool
}

// Shipper brings the log to a [Sink], at least once and in order, and remembers how far
// it came once that was acknowledged. While the sink takes nothing the log grows to its bound.
type Shipper struct {
	cfg Config

	mu     sync.Mutex
	window []*flight // guarded by mu: on their way, in the order of the log
	failed error     // guarded by mu: of one of them
	last   uint64    // guarded by mu: instance of the last block that arrived; 0 = none
	stats  Stats     // guarded by mu
	landed chan struct{}

	waiting  repeatlog.Condition
	promised int64    // owned by Run: for our own instance
	open     []uint64 // owned by Run: instances whose end was not sent, this one the last
}

// flight is a block on its way.
type flight struct {
	next      clicklog.Position
	first     clicks.EventID
	count     uint64
	watermark int64
	done      bool
}

// Stats are counters since the start.
type Stats struct {
	Events   uint64 // acknowledged
	Blocks   uint64 // acknowledged
	Failures uint64 // times that sending began again
	Damages  uint64 // places of the log that could not be read
	Sent     clicklog.Position
	Acked    clicklog.Position // everything before is delivered for good
	Err      error             // why nothing is delivered now; nil = it is

	// Promised is the watermark that was sent for this instance last; zero = none since the start.
	Promised time.Time
}

// New returns a Shipper that begins with Run.
func New(c Config) *Shipper {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Window = cmp.Or(c.Window, 64)
	return &Shipper{cfg: c, landed: make(chan struct{}, 1), promised: max(0, c.Began.UnixMilli())}
}

// Stats returns the counters.
func (s *Shipper) Stats() Stats { s.mu.Lock(); defer s.mu.Unlock(); return s.stats }

const (
	retryFirst  = 100 * time.Millisecond
	retryMost   = 5 * time.Second
	closingTime = 3 * time.Second // what shutdown leaves for what is still to be sent

	// shipTick bounds how long what was synced waits when nothing wakes the Shipper, and
	// how often it looks after promises and its position.
	shipTick = 100 * time.Millisecond

	// promiseEvery is how often a promise is given, and the position written.
	promiseEvery = time.Second
)

// Run sends until ctx ends, then what the log still holds, as far as the sink takes it in
// closing time. It returns early only when the position cannot be read.
func (s *Shipper) Run(ctx context.Context) error {
	was, err := readShipped(s.cfg.State)
	if err != nil {
		return err
	}
	s.cfg.Log.Commit(was.Position)
	was.begin(s.cfg.Instance)
	s.open = was.Open
	s.mu.Lock()
	s.stats.Acked, s.last = was.Position, was.Instance
	s.mu.Unlock()
	if s.cfg.Paused {
		<-ctx.Done()
		return nil
	}
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		began := s.Stats().Acked
		err := s.ship(ctx)
		if s.Stats().Acked != began {
			wait = retryFirst
		}
		if ctx.Err() != nil {
			return s.save()
		}
		s.mu.Lock()
		s.stats.Failures++
		s.stats.Err = err
		s.mu.Unlock()
		s.waiting.Log(ctx, time.Now(), s.cfg.Logger, slog.LevelError, "sending clicks failed, clicks wait in the click log", err)
		background.Sleep(ctx, wait)
	}
}

// ship sends from the acknowledged position until something fails, or until ctx ends.
func (s *Shipper) ship(ctx context.Context) error {
	s.mu.Lock()
	s.window, s.failed, s.stats.Sent = nil, nil, s.stats.Acked
	r := s.cfg.Log.Read(s.stats.Acked)
	s.mu.Unlock()
	defer r.Close()
	// What is on its way when ctx ends may arrive in closing time.
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(closingTime, cancel) })()

	p := shipping{Shipper: s, reader: r}
	if err := s.save(); err != nil { // so that the next run knows this instance
		return err
	}
	p.retract(time.Now())
	if err := p.promise(sending); err != nil { // announces the instance
		return err
	}
	s.mu.Lock()
	s.stats.Err = nil
	s.mu.Unlock()
	tick := time.NewTicker(shipTick)
	defer tick.Stop()
	for {
		caughtUp, err := p.send(sending)
		if err != nil {
			return err
		}
		if err := p.acknowledge(sending, time.Now()); err != nil {
			return err
		}
		s.waiting.LogRecovery(ctx, time.Now(), s.cfg.Logger, "sending clicks recovered")
		if ctx.Err() != nil && caughtUp && !s.flying() {
			if err := p.follow(sending, p.cfg.Instance); err != nil { // it may have had no click
				return err
			}
			return p.cfg.Sink.SendWatermark(sending, p.cfg.Instance, clicks.Ended) // who captured has stopped before
		}
		select {
		case <-sending.Done():
			return context.Cause(sending)
		case <-s.landed:
		case <-s.cfg.Log.Grown():
		case <-tick.C:
		}
	}
}

// shipping is one run of ship.
type shipping struct {
	*Shipper

	reader *clicklog.Reader
	held   *clicklog.Block // read, and not yet synced
	marked time.Time
}

// send sends what is durable while there is room, and reports whether the log's durable end
// is reached.
func (p *shipping) send(ctx context.Context) (caughtUp bool, err error) {
	for p.room() {
		b, err := p.next(ctx)
		if err != nil || b == nil {
			return err == nil, err
		}
		if b.Next.Compare(p.cfg.Log.Synced()) > 0 {
			p.held = b
			return true, nil // what a power cut may take is not sent
		}
		f := &flight{next: b.Next, first: b.First, count: uint64(b.Count), watermark: b.Watermark}
		p.mu.Lock()
		p.window = append(p.window, f)
		p.stats.Sent = b.Next
		p.mu.Unlock()
		if err := p.cfg.Sink.Send(ctx, b, func(err error) { p.arrived(f, err) }); err != nil {
			return false, err
		}
	}
	return false, nil
}

// next returns the next block; nil at the end of the log.
func (p *shipping) next(ctx context.Context) (*clicklog.Block, error) {
	if b := p.held; b != nil {
		p.held = nil
		return b, nil
	}
	for {
		b, err := p.reader.Next()
		var damage *clicklog.DamageError
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil //nolint:nilnil // there is none yet, which is no error
		case errors.As(err, &damage):
			p.reader.Skip()
			p.mu.Lock()
			p.stats.Damages++
			p.mu.Unlock()
			p.cfg.Logger.ErrorContext(ctx, "click log is damaged, not sending clicks in the damaged part",
				slog.Any("err", damage), slog.String("next", p.reader.Position().String()))
		case err != nil:
			return nil, err
		default:
			return &b, nil
		}
	}
}

// acknowledge moves the position behind what has arrived, in order, and gives promises.
func (p *shipping) acknowledge(ctx context.Context, now time.Time) error {
	landed, err := p.take()
	if err != nil {
		return err
	}
	for _, f := range landed {
		if err := p.follow(ctx, f.first.Instance); err != nil {
			return err
		}
		if f.first.Instance == p.cfg.Instance {
			p.reach(f.watermark, now)
		}
	}
	if now.Sub(p.marked) < promiseEvery {
		return nil
	}
	p.marked = now
	p.retract(now)
	if m := p.cfg.Log.Mark(); !m.Time.IsZero() && p.Stats().Acked.Compare(m.Position) >= 0 {
		if err := p.follow(ctx, p.cfg.Instance); err != nil {
			return err
		}
		p.reach(m.Time.UnixMilli(), now)
	}
	if err := p.promise(ctx); err != nil {
		return err
	}
	return p.save()
}

// reach notes a time before which nothing of us is still to come. One that is ahead is of a clock
// that has come back: clicks of the time until then are still to come.
func (p *shipping) reach(watermark int64, now time.Time) {
	if watermark <= now.UnixMilli() {
		p.promised = max(p.promised, watermark)
	}
}

// retract drops a promise that was made while the clock was ahead. The first one stays true,
// unless that was ahead, too.
func (p *shipping) retract(now time.Time) {
	if p.promised <= now.UnixMilli() {
		return
	}
	if p.promised = max(0, p.cfg.Began.UnixMilli()); p.promised > now.UnixMilli() {
		p.promised = 0
	}
}

// promise sends the watermark of this instance.
func (p *shipping) promise(ctx context.Context) error {
	if err := p.cfg.Sink.SendWatermark(ctx, p.cfg.Instance, p.promised); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Promised = time.UnixMilli(p.promised).UTC()
	return nil
}

// follow notes that what arrived last is of an instance: those before it have ended, because
// a folder has one at a time.
func (p *shipping) follow(ctx context.Context, instance uint64) error {
	for instance == p.cfg.Instance && len(p.open) > 1 {
		if err := p.cfg.Sink.SendWatermark(ctx, p.open[0], clicks.Ended); err != nil {
			return err
		}
		p.open = p.open[1:]
	}
	p.mu.Lock()
	before := p.last
	p.mu.Unlock()
	if before == instance {
		return nil
	}
	if before != 0 {
		if err := p.cfg.Sink.SendWatermark(ctx, before, clicks.Ended); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.last = instance
	p.mu.Unlock()
	return nil
}

// take returns what has arrived in order, or why something never will.
func (s *Shipper) take() (landed []*flight, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return nil, s.failed
	}
	n := 0
	for n < len(s.window) && s.window[n].done {
		n++
	}
	landed, s.window = s.window[:n:n], s.window[n:]
	for _, f := range landed {
		s.stats.Acked = f.next
		s.stats.Events += f.count
		s.stats.Blocks++
	}
	return landed, nil
}

// arrived notes what became of a block; one of a run that was given up changes nothing.
func (s *Shipper) arrived(f *flight, err error) {
	s.mu.Lock()
	f.done = err == nil
	if err != nil && s.failed == nil {
		for _, mine := range s.window {
			if mine == f {
				s.failed = err
			}
		}
	}
	s.mu.Unlock()
	select {
	case s.landed <- struct{}{}:
	default:
	}
}

func (s *Shipper) room() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.window) < s.cfg.Window && s.failed == nil
}

func (s *Shipper) flying() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.window) > 0 }

// save writes the position down and lets the log forget what is before it.
func (s *Shipper) save() error {
	s.mu.Lock()
	now := shipped{s.stats.Acked, s.last, s.open}
	s.mu.Unlock()
	if err := now.write(s.cfg.State); err != nil {
		return err
	}
	s.cfg.Log.Commit(now.Position)
	return nil
}

// shipped is what a Shipper keeps in its file.
type shipped struct {
	Position clicklog.Position `json:"position"` // everything before it was delivered
	Instance uint64            `json:"instance"` // of the last block before it; 0 = none
	// Open are instances that may have promised something, and whose end was not sent. One
	// that was killed before its first click is known from nothing else.
	Open []uint64 `json:"open,omitempty"`
}

// maxOpen bounds them: of starts one after the other that come to nothing.
const maxOpen = 256

// begin notes an instance that is about to promise something.
func (s *shipped) begin(instance uint64) {
	s.Open = append(slices.DeleteFunc(s.Open, func(i uint64) bool { return i == instance }), instance)
	s.Open = s.Open[max(0, len(s.Open)-maxOpen):]
}

// readShipped reads the file; one that is not there is the beginning. Damage is an error: all
// that the log holds would be sent again.
func readShipped(name string) (s shipped, err error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read the position in the click log from %s (remove the file to send the whole log again): %w", name, err)
	}
	return s, nil
}

// write replaces the file.
func (s shipped) write(name string) error {
	b, err := json.Marshal(s)
	if err == nil {
		err = statefile.Replace(name, b)
	}
	if err != nil {
		return fmt.Errorf("write the position in the click log: %w", err)
	}
	return nil
}
