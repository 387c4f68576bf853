package writer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/backend/kafka"
	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	// mostBatch bounds the links of one write.
	mostBatch = 500
	// tick is how often links are written: the rate of a second comes in so many parts.
	tick = 50 * time.Millisecond
	// burst is for how long a rate that was not used may be used later.
	burst = 200 * time.Millisecond
	// mostWaiting and fewWaiting bound the records of a partition in memory.
	mostWaiting = 2000
	fewWaiting  = 500
	// lagEvery is how often the lag is asked for.
	lagEvery = time.Second
	// lagFor is how long a lag is known that was asked for: after that nobody knows it.
	lagFor = 10 * time.Second
	// sessionPause is the wait before a member joins again after a failure.
	sessionPause = time.Second
)

// Store is where links are written.
type Store interface {
	link.Store
	link.Batcher
}

// Config says what a Writer reads and where it writes.
type Config struct {
	Kafka   kafka.Config  // of the topic; its name is that of the group
	Session time.Duration // as kafka.GroupConfig
	Store   Store
	Rate    int // links a second of all writers together

	// BeginWrite is called before links are written, and done after Recheck was called with each that was: a ban that is
	// made meanwhile waits for them. Recheck brings a link that was judged when it was accepted up to date with what was decided
	// since. Both may be nil.
	BeginWrite func() (done func())
	Recheck    func(ctx context.Context, now time.Time, l *link.Link) error

	Logger *slog.Logger
}

// Writer is one of those that share the partitions of a topic. Its methods but Run may be called by any goroutine.
type Writer struct {
	cfg                                            Config
	written, batches, failures, dead, sessionCount atomic.Uint64

	mu      sync.Mutex
	session *session // guarded by mu, as all below; nil = between two
	lag     int64    // of the whole topic
	lagAt   time.Time
	err     error // why links are not written now
}

// New returns a Writer, which Run starts.
func New(cfg Config) *Writer {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.BeginWrite == nil {
		cfg.BeginWrite = func() func() { return func() {} }
	}
	if cfg.Recheck == nil {
		cfg.Recheck = func(context.Context, time.Time, *link.Link) error { return nil }
	}
	return &Writer{cfg: cfg}
}

// Run writes until ctx ends, and returns nil then.
func (w *Writer) Run(ctx context.Context) error {
	var failing repeatlog.Condition
	var following sync.WaitGroup
	following.Go(func() { w.followLag(ctx) })
	defer following.Wait()
	for ctx.Err() == nil {
		err := w.join(ctx, &failing)
		if ctx.Err() != nil {
			break
		}
		w.fail(err)
		failing.Log(ctx, time.Now(), w.cfg.Logger, slog.LevelWarn, "writing pending links was interrupted, retrying", err)
		background.Sleep(ctx, sessionPause)
	}
	return nil
}

// join is one membership in the group.
func (w *Writer) join(ctx context.Context, failing *repeatlog.Condition) error {
	s := &session{w: w, parts: map[int32]*partition{}, failing: failing}
	var err error
	s.group, err = kafka.Join(ctx, kafka.GroupConfig{
		Config: w.cfg.Kafka, Name: w.cfg.Kafka.Topic, Session: w.cfg.Session, Assigned: s.assigned, Lost: s.lost, Logger: w.cfg.Logger,
	})
	if err != nil {
		return err //nolint:wrapcheck // says what it did
	}
	w.sessionCount.Add(1)
	w.mu.Lock()
	w.session = s
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.session = nil
		w.mu.Unlock()
	}()
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() { s.read(ctx) })
	err = s.write(ctx)
	cancel()
	reading.Wait()
	return errors.Join(err, s.group.Close())
}

func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// Healthy returns why links are not written now, all of them or those of a partition; nil = they are.
func (w *Writer) Healthy() error {
	w.mu.Lock()
	err, now := w.err, w.session
	w.mu.Unlock()
	if err != nil || now == nil {
		return err
	}
	_, err = now.held()
	return err
}

// Stats are figures of a writer.
type Stats struct {
	Written, Batches, Failures, Dead, Sessions uint64
	Partitions                                 int // of this writer
	Held                                       int // of these, which wait for a newer release
	// Lag is how many records of the topic are not written, whoever has their partitions, as the offsets say that the group committed;
	// Measured is false while nobody knows it.
	Lag      int64
	Measured bool
	// Oldest is when the oldest record was accepted that this writer has read and not written; zero = none is known.
	Oldest time.Time
}

// Stats returns the figures.
func (w *Writer) Stats() Stats {
	s := Stats{
		Written: w.written.Load(), Batches: w.batches.Load(), Failures: w.failures.Load(), Dead: w.dead.Load(), Sessions: w.sessionCount.Load(),
	}
	w.mu.Lock()
	now := w.session
	s.Lag, s.Measured = w.lag, !w.lagAt.IsZero() && time.Since(w.lagAt) < lagFor
	w.mu.Unlock()
	if now != nil {
		now.waits(&s)
		s.Held, _ = now.held()
	}
	return s
}

// session is one membership in the group.
type session struct {
	w       *Writer
	group   *kafka.Group // set once in join
	failing *repeatlog.Condition

	// turn is held while offsets are committed: a partition goes to another member between two commits.
	turn sync.Mutex

	mu    sync.Mutex
	parts map[int32]*partition // guarded by mu
}

// partition is one that is this member's. It is guarded by session.mu.
type partition struct {
	member    string
	waiting   []*kgo.Record
	paused    bool
	written   int64 // the offset behind what was written
	committed int64 // and what the group knows of that
	held      error // why the first of waiting is for a newer release; nil = it is not
}

func (s *session) assigned(starts []kafka.Start) map[int32]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := map[int32]int64{}
	for _, start := range starts {
		from[start.Partition] = start.Committed
		at := max(0, start.Committed)
		s.parts[start.Partition] = &partition{member: start.Member, written: at, committed: at}
	}
	return from
}

func (s *session) lost(partitions []int32, _ bool) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range partitions {
		delete(s.parts, p)
	}
}

// read takes records from Kafka until ctx ends.
func (s *session) read(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.group.Poll(ctx, func(f kafka.Fetched) {
			s.mu.Lock()
			defer s.mu.Unlock()
			p := s.parts[f.Partition]
			if p == nil {
				return
			}
			p.waiting = append(p.waiting, f.Records...)
			if len(p.waiting) > mostWaiting && !p.paused {
				p.paused = true
				s.group.Pause(f.Partition)
			}
		})
		if err != nil && ctx.Err() == nil {
			s.w.failures.Add(1)
			s.w.fail(err)
			s.failing.Log(ctx, time.Now(), s.w.cfg.Logger, slog.LevelWarn, "reading pending links failed, retrying", err)
			background.Sleep(ctx, sessionPause)
		}
	}
}

// followLag asks how far the group is until ctx ends. The log of a session says what is wrong with Kafka; here the figure goes.
func (w *Writer) followLag(ctx context.Context) {
	log := kafka.NewQueuedLinks(w.cfg.Kafka)
	defer log.Close()
	for ctx.Err() == nil {
		asked := time.Now()
		if lag, err := log.Lag(ctx); err == nil {
			w.mu.Lock()
			w.lag, w.lagAt = lag, asked
			w.mu.Unlock()
		}
		background.Sleep(ctx, lagEvery)
	}
}

// waits fills in what this session has read and not written.
func (s *session) waits(to *Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to.Partitions = len(s.parts)
	for _, p := range s.parts {
		if len(p.waiting) > 0 && (to.Oldest.IsZero() || p.waiting[0].Timestamp.Before(to.Oldest)) {
			to.Oldest = p.waiting[0].Timestamp
		}
	}
}

// held returns how many partitions wait for a newer release, and why one does.
func (s *session) held() (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if p.held != nil {
			n, err = n+1, p.held
		}
	}
	return n, err
}

// share is the part of the rate that is this member's.
func (s *session) share() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(s.w.cfg.Rate) * float64(len(s.parts)) / float64(max(1, s.group.Partitions))
}
