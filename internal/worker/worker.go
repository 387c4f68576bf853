// Package worker brings clicks from Kafka to ClickHouse, each exactly once whatever crashes.
//
// A block is a contiguous range of offsets of one partition. Its bounds are committed to the
// group's coordinator first, which refuses a commit from a worker that lost the partition; then
// the block is inserted under a token made of the bounds. So of each partition at most one block
// may or may not be inserted, and the partition's next worker inserts exactly that one again,
// which changes nothing if it is there. ARCHITECTURE.md has the proof.
//
// Read partition.go first, the protocol; then seen.go (duplicates in Kafka), worker.go (how
// partitions come and go) and watermarks.go (up to when statistics are complete).
package worker

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/backend/kafka"
	"curt/internal/clicks/useragent"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// Store is what a worker needs of ClickHouse.
type Store interface {
	// Insert is that of clickhouse.Store: a block that is inserted again under its token
	// changes nothing.
	Insert(ctx context.Context, token string, rows []clickdb.Row) error
	// Advance says up to when clicks are complete; older news change nothing.
	Advance(ctx context.Context, marks []watermarks.Watermark) error
	// ForgiveOutage is that of clickhouse.Store: nobody is gone because a partition was not looked at.
	ForgiveOutage(ctx context.Context, topic string, partition uint32, now time.Time) error
}

// Identified is a Store that may be replaced by an empty one, as a server that lost its data. Its other
// methods return an error that wraps kafka.ErrLeave once it is another one than Identify found.
type Identified interface {
	// Identify returns the identity of the store; "" = the only or the first one.
	Identify(ctx context.Context) (string, error)
	// NoteGap records that Kafka gave up records before they were read, which only another store with the
	// same clicks has.
	NoteGap(ctx context.Context) error
}

// GroupOf is the consumer group that feeds a store with an identity.
func GroupOf(topic, id string) string {
	if id == "" {
		return topic
	}
	return topic + ".replica." + id
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
	// RetentionDays returns for how many days the clicks of a workspace are kept one by one, or with
	// "" those of nobody; nil = as the store does.
	RetentionDays func(workspace string) uint16
	Logger        *slog.Logger

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
	c.Group = cmp.Or(c.Group, c.Kafka.Topic)
	c.age = cmp.Or(c.age, blockAge)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return &Worker{cfg: c, stats: &counters{}, pressure: newPressure(), names: newWorkspaces(c.Workspaces, c.RetentionDays)}
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
		failing.Log(ctx, time.Now(), w.cfg.Logger, slog.LevelWarn, "worker rejoins its group", err)
		if time.Since(began) > waitMost {
			wait = waitFirst
		}
		_ = pause(ctx, wait) // the loop sees it
	}
	return nil
}

func (w *Worker) joined() *session   { w.mu.Lock(); defer w.mu.Unlock(); return w.now }
func (w *Worker) current(s *session) { w.mu.Lock(); defer w.mu.Unlock(); w.now = s }

// First reports whether this worker has the first partition: of several, one has. It may be
// true of two for a moment.
func (w *Worker) First() bool {
	now := w.joined()
	return now != nil && now.has(0)
}

// Inserted returns, of each partition that this worker has as a member of a group, the offset before
// which everything is in the store.
func (w *Worker) Inserted(group string) map[int32]int64 {
	now, offsets := w.joined(), map[int32]int64{}
	if now == nil || now.name != group {
		return offsets
	}
	for _, p := range now.all() {
		p.mu.Lock()
		offsets[p.number] = p.inserted
		p.mu.Unlock()
	}
	return offsets
}

// counters are since the start.
type counters struct {
	rows, blocks, again, repeated, poison, missing, failures, notYet, sessions, forgotten atomic.Uint64
}

// Stats are counters since the start, and the state now.
type Stats struct {
	Rows       uint64 // inserted; once more where a block was inserted again
	Blocks     uint64 // inserted, those that were inserted again among them
	Reinserted uint64 // blocks inserted again after a partition changed hands
	Repeated   uint64 // clicks that Kafka had twice, or that were read again
	Poison     uint64 // records that nobody can read
	Missing    uint64 // records that Kafka had given up before they were read
	Failures   uint64 // inserts that failed, and were tried again
	Sessions   uint64 // times that the worker had to join its group again
	Forgotten  uint64 // instances whose repetitions are no longer known as such

	Partitions int    // that this worker has
	Lag        uint64 // records that wait in them
	CheckedAt  time.Time
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
		Rows: c.rows.Load(), Blocks: c.blocks.Load(), Reinserted: c.again.Load(), Repeated: c.repeated.Load(), Poison: c.poison.Load(),
		Missing: c.missing.Load(), Failures: c.failures.Load(), Sessions: c.sessions.Load(), Forgotten: c.forgotten.Load(),
	}
	w.mu.Lock()
	s.Lag, s.CheckedAt, s.Err = w.lag.records, w.lag.asked, w.lag.err
	now := w.now
	w.mu.Unlock()
	if now != nil {
		s.Partitions = len(now.all())
	}
	return s
}

// closingTime is how long a block may take that is being inserted when its partition is to
// go to another worker; what takes longer is inserted by that one.
const closingTime = 5 * time.Second

// session is one membership in the group: it ends with the worker, or when what it committed
// may be another's.
type session struct {
	*Worker

	ready chan struct{} // closed when the next two are set
	group *kafka.Group
	name  string // of the group
	token string // what all tokens of the topic begin with

	life context.Context // of the partitions
	end  context.CancelCauseFunc

	mu     sync.Mutex
	parts  map[int32]*partition // guarded by mu
	closed bool                 // guarded by mu: partitions that come are left alone
}

// session joins the group and works until ctx ends or the membership has to.
func (w *Worker) session(ctx context.Context) (err error) {
	s := &session{Worker: w, ready: make(chan struct{}), parts: map[int32]*partition{}}
	s.life, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	defer s.end(nil)
	s.name = w.cfg.Group
	if store, is := w.cfg.Store.(Identified); is {
		id, err := store.Identify(ctx)
		if err != nil {
			w.mu.Lock()
			w.lag.err = err // why it has not joined its group
			w.mu.Unlock()
			return err
		}
		s.name = GroupOf(s.name, id)
	}
	s.group, err = kafka.Join(ctx, kafka.GroupConfig{
		Config: w.cfg.Kafka, Name: s.name, Session: w.cfg.Session, Assigned: s.assigned, Lost: s.lost,
	})
	if err != nil {
		return err
	}
	s.token = TopicName(w.cfg.Kafka, s.group.Topic)
	close(s.ready)
	w.current(s)
	defer w.current(nil)
	var told sync.WaitGroup
	telling, stopTelling := context.WithCancel(ctx)
	told.Go(func() { s.tell(telling) })
	err = s.poll(ctx)
	stopTelling()
	told.Wait()
	s.close()
	return errors.Join(err, s.group.Close())
}

// TopicName is what a life of a topic is called in the watermarks of a store.
func TopicName(c kafka.Config, life kafka.ID) string {
	return c.Topic + "/" + hex.EncodeToString(life[:])
}

// poll brings what is read to the partitions.
func (s *session) poll(ctx context.Context) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	var failing repeatlog.Condition
	for ctx.Err() == nil {
		err := s.group.Poll(reading, s.dispatch)
		if s.life.Err() != nil {
			return context.Cause(s.life)
		}
		if err != nil && ctx.Err() == nil {
			failing.Log(ctx, time.Now(), s.cfg.Logger, slog.LevelWarn, "reading kafka failed, clicks wait in kafka", err)
			_ = pause(reading, waitFirst) // the loop sees it
		} else {
			failing.LogRecovery(ctx, time.Now(), s.cfg.Logger, "reading kafka recovered")
		}
	}
	return nil
}

// dispatch gives a partition what was read of it.
func (s *session) dispatch(f kafka.Fetched) {
	s.mu.Lock()
	p := s.parts[f.Partition]
	s.mu.Unlock()
	if p != nil && p.queue.put(f.Records) {
		s.group.Pause(f.Partition)
	}
}

// assigned begins partitions where somebody left them.
func (s *session) assigned(starts []kafka.Start) map[int32]int64 {
	<-s.ready // the first may come before Join returns
	from := map[int32]int64{}
	for _, start := range starts {
		s.lost([]int32{start.Partition}, true) // of an assignment that did not come to its end
		p := s.partition(start)
		from[start.Partition] = p.reader.at
		s.mu.Lock()
		if !s.closed {
			s.group.Resume(start.Partition) // it may have been lost while it was paused
			s.parts[start.Partition] = p
			s.begin(p)
		}
		s.mu.Unlock()
	}
	return from
}

// partition makes a partition that begins where its block was begun that was committed last.
func (s *session) partition(start kafka.Start) *partition {
	number := start.Partition
	p := &partition{
		session: s, number: number, member: start.Member, token: fmt.Sprintf("%s:%d", s.token, number),
		from: start.Committed, with: start.Metadata, done: make(chan struct{}), heard: map[uint64]*voice{},
		log: s.cfg.Logger.With(slog.Int("partition", int(number))),
	}
	p.queue = newQueue(func() { s.group.Resume(number) })
	p.reader = reader{at: start.Committed, seen: seen{}, bots: useragent.NewClassifier(), stats: s.stats, all: s.cfg.countAgain}
	if start.Committed >= 0 {
		was, err := decodeProgress(start.Metadata, start.Committed)
		if err != nil {
			p.log.WarnContext(s.life, "offset was set externally, duplicate clicks near it may count twice",
				slog.Int64("offset", start.Committed))
		} else {
			p.reader.at, p.reader.seen = was.first, was.before
		}
	}
	p.inserted = p.reader.at
	return p
}

// begin runs a partition. The caller holds mu.
func (s *session) begin(p *partition) {
	var ctx context.Context
	ctx, p.kill = context.WithCancel(s.life)
	p.open, p.shut = context.WithCancelCause(ctx)
	go func() { // ends with lost or close
		defer close(p.done)
		err := p.run(ctx)
		if p.open.Err() == nil { // nobody asked it to end
			s.end(fmt.Errorf("partition %d: %w", p.number, err))
		}
	}()
}

// lost ends partitions, and returns when nothing more is committed for them. Unless others may
// have them already, blocks that are being inserted may become whole.
func (s *session) lost(numbers []int32, gone bool) {
	var ending []*partition
	s.mu.Lock()
	for _, n := range numbers {
		if p := s.parts[n]; p != nil {
			ending = append(ending, p)
			delete(s.parts, n)
		}
	}
	s.mu.Unlock()
	for _, p := range ending {
		p.shut(errGivenAway)
	}
	late := time.NewTimer(closingTime)
	defer late.Stop()
	for _, p := range ending {
		if !gone {
			select {
			case <-p.done:
			case <-late.C:
				gone = true
			}
		}
		p.kill()
	}
	for _, p := range ending {
		<-p.done
	}
}

// close ends all partitions.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	numbers := slices.Collect(maps.Keys(s.parts))
	s.mu.Unlock()
	s.lost(numbers, s.life.Err() != nil)
}

// all returns the partitions as they are now.
func (s *session) all() []*partition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.parts))
}

// has reports whether a partition is this member's.
func (s *session) has(number int32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[number] != nil
}
