package worker

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/kafka"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// Store is what a worker needs of ClickHouse.
type Store interface {
	// Insert is that of clickhouse.Store: a block that is inserted again under its token
	// changes nothing.
	Insert(ctx context.Context, token string, rows []clickhouse.Row) error
	// Advance says up to when clicks are complete; older news change nothing.
	Advance(ctx context.Context, marks []clickhouse.Watermark) error
	// Excuse is that of clickhouse.Store: nobody is gone because a partition was not looked at.
	Excuse(ctx context.Context, topic string, partition uint32, now time.Time) error
}

// Config says what a Worker reads and where it brings it.
type Config struct {
	Kafka kafka.Config
	Group string // of workers that share the work; "" = the name of the topic
	// Session is how long a worker may say nothing before others take its partitions; 0 = 10 s.
	Session time.Duration
	Store   Store
	// Workspaces returns for whom else the clicks of links count, in order; "" = nobody.
	Workspaces func(ctx context.Context, keys []link.Key) ([]string, error)
	// KeepDays returns for how many days the clicks of a workspace are kept one by one, or with
	// "" those of nobody; nil = as the store does.
	KeepDays func(workspace string) uint16
	Logger   *slog.Logger

	age        time.Duration // blockAge, or less in tests
	commitLate bool          // the controls of tests: insert first
	countAgain bool          // count what Kafka has twice
}

// Worker is one of those that share the partitions of a topic. Statistics of all of its
// methods but Run may be asked for by any goroutine.
type Worker struct {
	cfg      Config
	stats    *counters
	pressure *pressure
	names    *workspaces

	mu  sync.Mutex
	now *session // guarded by mu; nil = between two
	lag lag      // guarded by mu
}

// New returns a Worker that begins with Run.
func New(c Config) *Worker {
	if c.Group == "" {
		c.Group = c.Kafka.Topic
	}
	if c.age == 0 {
		c.age = blockAge
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Worker{cfg: c, stats: &counters{}, pressure: newPressure(), names: newWorkspaces(c.Workspaces, c.KeepDays)}
}

// Changed has the workspaces of links asked for again: they may belong to another by now. No links
// = nobody knows which changed.
func (w *Worker) Changed(keys ...link.Key) { w.names.forget(keys) }

// Run works until ctx ends. Whatever is away, clicks wait in Kafka.
func (w *Worker) Run(ctx context.Context) error {
	var failing repeatlog.Condition
	for wait := waitFirst; ctx.Err() == nil; wait = min(2*wait, waitMost) {
		began := time.Now()
		err := w.session(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // what ended with it is gone on with by others
		}
		w.stats.sessions.Add(1)
		if again, due := failing.Met(time.Now()); due {
			w.cfg.Logger.WarnContext(ctx, "the worker joins its group again", slog.Any("err", err), again)
		}
		if time.Since(began) > waitMost {
			wait = waitFirst
		}
		_ = pause(ctx, wait) // the loop sees it
	}
	return nil
}

func (w *Worker) current(s *session) { w.mu.Lock(); defer w.mu.Unlock(); w.now = s }

// First reports whether this worker has the first partition: of several, one has. It may be
// true of two for a moment.
func (w *Worker) First() bool {
	w.mu.Lock()
	now := w.now
	w.mu.Unlock()
	return now != nil && now.has(0)
}

// counters are since the start.
type counters struct {
	rows, blocks, again, repeated, poison, missing, failures, notYet, sessions, forgotten atomic.Uint64
}

// Stats are counters since the start, and the state now.
type Stats struct {
	Rows      uint64 // inserted; once more where a block was inserted again
	Blocks    uint64 // inserted, those that were inserted again among them
	Again     uint64 // blocks inserted again after a partition changed hands
	Repeated  uint64 // clicks that Kafka had twice, or that were read again
	Poison    uint64 // records that nobody can read
	Missing   uint64 // records that Kafka had given up before they were read
	Failures  uint64 // inserts that failed, and were tried again
	Sessions  uint64 // times that the worker had to join its group again
	Forgotten uint64 // instances whose repetitions are no longer known as such

	Partitions int    // that this worker has
	Lag        uint64 // records that wait in them
	Ask        time.Time
	Err        error // of what was asked last; nil = Kafka and the store answer
}

// lag is what was found out last.
type lag struct {
	records uint64
	asked   time.Time
	err     error
}

// Stats returns the counters.
func (w *Worker) Stats() Stats {
	c := w.stats
	s := Stats{
		Rows: c.rows.Load(), Blocks: c.blocks.Load(), Again: c.again.Load(), Repeated: c.repeated.Load(), Poison: c.poison.Load(),
		Missing: c.missing.Load(), Failures: c.failures.Load(), Sessions: c.sessions.Load(), Forgotten: c.forgotten.Load(),
	}
	w.mu.Lock()
	s.Lag, s.Ask, s.Err = w.lag.records, w.lag.asked, w.lag.err
	now := w.now
	w.mu.Unlock()
	if now != nil {
		s.Partitions = len(now.all())
	}
	return s
}
