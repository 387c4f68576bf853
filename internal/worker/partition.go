package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/kafka"
	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/useragent"
	"curt/internal/repeatlog"
)

const (
	// A block is cut when it has blockRows and no more are at hand, at mostRows, or blockAge
	// after its first row came, which may be while the block before is inserted: statistics are to be there within 5 s, and ClickHouse takes few
	// large blocks more easily than many small ones.
	blockRows = 10_000
	mostRows  = 50_000
	blockAge  = 2 * time.Second
	// idleCommit is how often it is written down how far a partition was read in which
	// nothing was clicked: not more than this is read again.
	idleCommit = 30 * time.Second
	// right is how long a commit shows that the partition is ours: an insert that is tried
	// later is preceded by the same commit again. Together with the time-out of an insert it
	// MUST be well below the time in which the tables forget a token.
	right = 10 * time.Second
	// askAgain is how long a commit waits while members move partitions.
	askAgain = 50 * time.Millisecond
)

// partition is what a worker does for one partition, from its assignment to its loss.
type partition struct {
	*session

	number int32
	member string // by which it commits
	token  string // what all tokens of the partition begin with
	from   int64  // the offset that somebody committed last; -1 = nobody
	with   string // what was committed with it
	queue  *queue
	reader reader
	log    *slog.Logger

	open context.Context // until no new block is to be begun
	shut context.CancelCauseFunc
	kill context.CancelFunc
	done chan struct{} // closed when nothing more is committed

	committed time.Time // owned by run: of the last commit
	looked    time.Time // owned by session.tell: when it was looked at last; zero = never

	mu       sync.Mutex
	inserted int64             // guarded by mu: everything before is in the store
	newest   time.Time         // guarded by mu: of the last record before inserted
	heard    map[uint64]*voice // guarded by mu: instances, since the assignment
	ended    bool              // guarded by mu: one of them, and nobody may have been told
}

// errGivenAway ends what a partition's goroutine does when others are to have it.
var errGivenAway = errors.New("the partition moved to another worker")

// run is the protocol: at any time at most one block, the one that was committed last, is not
// known to be inserted, and what is committed says how to make exactly this one again.
func (p *partition) run(ctx context.Context) error {
	if err := p.repeat(ctx); err != nil {
		return err
	}
	for {
		b, err := p.gather(math.MaxInt64)
		if err != nil {
			return err
		}
		if err := p.deliver(ctx, b); err != nil {
			return err
		}
	}
}

// repeat inserts the block that was committed last, whoever did so.
func (p *partition) repeat(ctx context.Context) error {
	if p.reader.at < 0 || p.reader.at >= p.from {
		return nil
	}
	b, err := p.gather(p.from)
	if err != nil {
		return err
	}
	if p.reader.at < p.from { // Kafka no longer has its end
		err = p.noteGap()
	}
	b.next, p.reader.at = p.from, p.from
	if err == nil {
		err = p.persist("resolving workspaces of clicks failed, clicks wait in kafka", func() error { return p.names.fill(p.open, b.rows) })
	}
	if err != nil {
		return err
	}
	p.stats.again.Add(1)
	return p.insert(ctx, b, p.with)
}

// gather reads a block of what is before an offset. Before the offset of somebody's last
// commit it ends there, and nowhere else.
func (p *partition) gather(below int64) (*block, error) {
	b, again := p.reader.begin(), below != math.MaxInt64
	timer := time.NewTimer(idleCommit)
	defer timer.Stop()
	ripe := timer.C
	if again {
		ripe = nil
	}
	for p.reader.at < below {
		if !again && (len(b.rows) >= mostRows || len(b.rows) >= blockRows && p.queue.empty()) {
			return b, nil
		}
		r, err := p.queue.next(p.open, below, ripe)
		if err != nil {
			return nil, err
		}
		if r == nil {
			return b, nil
		}
		before := len(b.rows)
		if p.reader.add(b, r) {
			if err := p.noteGap(); err != nil { // before anything that comes after it
				return nil, err
			}
		}
		switch {
		case len(b.rows) == 0:
			p.advance(b) // nothing has to be inserted for it
			b.promises = nil
		case before == 0 && !again:
			timer.Reset(max(0, p.cfg.age-time.Since(p.queue.came)))
		}
	}
	return b, nil
}

// deliver commits a block, and then inserts it.
func (p *partition) deliver(ctx context.Context, b *block) error {
	if b.next == b.first {
		return nil
	}
	if err := p.persist("resolving workspaces of clicks failed, clicks wait in kafka", func() error { return p.names.fill(p.open, b.rows) }); err != nil {
		return err
	}
	if len(b.poison) > 0 {
		if err := p.bury(b); err != nil {
			return err
		}
	}
	if err := p.tellEnds(ctx); err != nil {
		return err
	}
	metadata, forgotten := b.encode(b.next)
	p.stats.forgotten.Add(uint64(len(forgotten)))
	p.reader.seen.forget(forgotten, b.first)
	if p.cfg.commitLate { // the control of the tests
		if err := p.insert(ctx, b, metadata); err != nil {
			return err
		}
		return p.commit(ctx, b, metadata)
	}
	if err := p.commit(ctx, b, metadata); err != nil {
		return err
	}
	return p.insert(ctx, b, metadata)
}

// commit writes down that the next block is b's successor, and how b is made.
func (p *partition) commit(ctx context.Context, b *block, metadata string) error {
	for {
		asked := time.Now() // what is answered may have been true then, and no longer
		err := p.group.Commit(ctx, p.member, p.number, b.next, metadata)
		if err == nil {
			p.committed = asked
			return nil
		}
		if !errors.Is(err, kafka.ErrNotYet) {
			return err
		}
		p.stats.notYet.Add(1)
		if err := pause(p.open, askAgain); err != nil {
			return err
		}
	}
}

// insert brings a block that was committed into the store, however long that takes.
func (p *partition) insert(ctx context.Context, b *block, metadata string) error {
	if len(b.rows) == 0 {
		p.advance(b)
		return nil
	}
	token := fmt.Sprintf("%s:%d-%d", p.token, b.first, b.next-1)
	for tried := 0; ; tried++ {
		err := p.pressure.do(ctx, func() error {
			if !p.cfg.commitLate && time.Since(p.committed) > right {
				if err := p.commit(ctx, b, metadata); err != nil {
					return err
				}
			}
			return p.cfg.Store.Insert(ctx, token, b.rows)
		})
		switch {
		case err == nil:
			p.advance(b)
			p.stats.rows.Add(uint64(len(b.rows)))
			p.stats.blocks.Add(1)
			return nil
		case ctx.Err() != nil, errors.Is(err, kafka.ErrLeave), errors.Is(err, errGivenAway):
			return err
		}
		p.stats.failures.Add(1)
		if tried == 0 {
			p.log.WarnContext(ctx, "inserting a block failed, clicks wait in kafka", slog.String("block", token), slog.Any("err", err))
		}
		if p.open.Err() != nil { // who has the partition next goes on
			return context.Cause(p.open)
		}
	}
}

// bury writes what nobody can read where somebody may look at it.
func (p *partition) bury(b *block) error {
	p.stats.poison.Add(uint64(len(b.poison)))
	p.log.WarnContext(p.open, "unreadable records, moved to the dead letter topic", slog.Int("records", len(b.poison)), slog.Any("err", b.reasons[0]))
	return p.persist("writing dead letters failed, clicks wait in kafka", func() error { return p.group.Bury(p.open, b.poison, b.reasons) })
}

// noteGap has the store know that it lacks what Kafka gave up.
func (p *partition) noteGap() error {
	store, is := p.cfg.Store.(Identified)
	if !is { // nobody else has them
		return nil
	}
	p.log.WarnContext(p.open, "kafka gave up records before they were read, another replica may have them")
	return p.persist("noting a gap failed, clicks wait in kafka", func() error { return store.NoteGap(p.open) })
}

// persist calls f until it succeeds, or the partition is lost.
func (p *partition) persist(failed string, f func() error) error {
	var failing repeatlog.Condition
	for wait := waitFirst; ; wait = min(2*wait, waitMost) {
		err := f()
		if err == nil || errors.Is(err, kafka.ErrLeave) {
			return err
		}
		failing.Log(p.open, time.Now(), p.log, slog.LevelWarn, failed, err)
		if err := pause(p.open, wait); err != nil {
			return err
		}
	}
}

// advance notes that everything before a block's end is in the store, and with it what was
// promised there.
func (p *partition) advance(b *block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inserted, p.newest = b.next, b.newest
	credible := time.Now().Add(maxAhead).UnixMilli()
	for _, given := range b.promises {
		v := p.heard[given.Instance]
		if v == nil {
			v = &voice{first: math.MaxInt64}
			p.heard[given.Instance] = v
		}
		// A clock that is ahead may come back: then clicks come of the time that it promised.
		if until := given.Watermark; until == clicks.Ended || until <= credible {
			v.first, v.watermark = min(v.first, until), max(v.watermark, until)
		} else {
			v.first = min(v.first, max(0, v.watermark))
		}
		v.at, v.told = max(v.at, given.at.UnixMilli()), false
		p.ended = p.ended || given.Watermark == clicks.Ended
	}
}

// block is a contiguous range of offsets of a partition, as rows.
type block struct {
	progress

	next     int64 // where the one after it begins
	rows     []clickdb.Row
	poison   []*kgo.Record // that nobody can read
	reasons  []error       // why, of each
	promises []promise     // that hold once the rows are inserted
	newest   time.Time     // of the last record
}

// promise is one with when it was given.
type promise struct {
	kafka.InstanceMark
	at time.Time
}

// maxAhead is by how much a promise may be ahead of the time at which it was written: one of
// a clock that is wrong, or of somebody else, would say for good that nothing is missing.
const maxAhead = time.Minute

// reader makes blocks of records. It is owned by a partition's goroutine.
type reader struct {
	seen  seen
	at    int64 // the offset that comes next; -1 = whatever comes
	bots  *useragent.Classifier
	event clicklog.Event
	stats *counters
	all   bool // the control of tests: what was there before counts again
}

// begin returns an empty block that begins where the reader is.
func (r *reader) begin() (b *block) {
	return &block{progress: progress{first: r.at, before: maps.Clone(r.seen)}, next: r.at}
}

// add adds a record to a block, and reports whether records before it are gone: Kafka keeps them for a
// while only. One that was added before changes nothing.
func (r *reader) add(b *block, record *kgo.Record) (gap bool) {
	switch {
	case r.at < 0:
		b.first = record.Offset
	case record.Offset < r.at:
		return false
	case record.Offset > r.at:
		gap = true
		r.stats.missing.Add(uint64(record.Offset - r.at))
	}
	r.at = record.Offset + 1
	b.next, b.newest = r.at, record.Timestamp
	p, err := kafka.ReadRecord(record.Value, &r.event)
	switch {
	case err == nil && p != nil:
		err = r.promise(b, p, record)
	case err == nil && r.event.ID.Sequence == math.MaxUint64: // nothing could come after it
		err = fmt.Errorf("a click of instance %d without a sequence", r.event.ID.Instance)
	case err == nil:
		r.click(b, record.Offset)
	}
	if err != nil {
		b.poison, b.reasons = append(b.poison, record), append(b.reasons, err)
	}
	return gap
}

func (r *reader) promise(b *block, p *kafka.InstanceMark, record *kgo.Record) error {
	if p.Watermark != clicks.Ended && p.Watermark > record.Timestamp.Add(maxAhead).UnixMilli() {
		return fmt.Errorf("a watermark of %d in the future, written at %d", p.Watermark, record.Timestamp.UnixMilli())
	}
	r.seen.heard(p.Instance, record.Offset)
	b.promises = append(b.promises, promise{*p, record.Timestamp})
	return nil
}

func (r *reader) click(b *block, offset int64) {
	e := &r.event
	if isNew := r.seen.isNew(e.ID.Instance, e.ID.Sequence, offset); !isNew && !r.all {
		r.stats.repeated.Add(1)
		return
	}
	row := clickdb.Row{Click: e.Click(r.bots), ID: e.ID}
	if e.Outcome != clicks.Orphan {
		row.Key = clicklog.LinkKey(e.Key)
	}
	b.rows = append(b.rows, row)
}
