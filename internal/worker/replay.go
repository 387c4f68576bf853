package worker

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/backend/kafka"
	"curt/internal/clicks/idset"
	"curt/internal/clicks/useragent"
	"curt/internal/link"
)

// ReplayStore is what a replay needs of ClickHouse.
type ReplayStore interface {
	StoredClicks
	Insert(ctx context.Context, token string, rows []clickdb.Row) error
	Holds(ctx context.Context, row *clickdb.Row) (bool, error)
	RebuildDay(ctx context.Context, day, now time.Time) error
}

// Replay says what Repeat brings from Kafka once more.
type Replay struct {
	Kafka         kafka.Config
	Group         string // of the workers; "" = the name of the topic
	Store         ReplayStore
	Workspaces    func(ctx context.Context, keys []link.Key) ([]string, error)
	RetentionDays func(workspace string) uint16 // as that of [Config]

	From, To   time.Time // hours, of the clicks' own time
	Partitions []int32   // none = all
	// Earliest has it begin at the first day of which Kafka has all clicks, if From is before that.
	// Reduce takes days of which Kafka has not, too: what is added up of them becomes what is there
	// one by one, which is less where clicks were lost. Without either such a From is ErrReplay.
	Earliest, Reduce bool
	// Unfinished has it replay clicks of days that are not over, too, whose sums the Store's RebuildDay
	// can correct while workers insert.
	Unfinished bool
	Now        time.Time // the caller's present

	// State is how far a replay has come that goes on, nil at the beginning; Save is told after
	// each step. nil = nobody asks.
	State    *ReplayState
	Save     func(*ReplayState) error
	Progress func(done, all int64) // records; nil = nobody asks
}

// ReplayState is how far a replay has come.
type ReplayState struct {
	Topic string          `json:"topic"` // the life of a topic
	From  time.Time       `json:"from"`
	To    time.Time       `json:"to"`
	Next  map[int32]int64 `json:"next"` // by partition: everything before is in the store
	Days  []time.Time     `json:"days"` // of which clicks were inserted, and that are to be added up
}

// Replayed is what a replay did.
type Replayed struct {
	From     time.Time // where it began
	Records  int64     // that were read
	Clicks   uint64
	There    uint64 // clicks that the store had, or Kafka had before
	Inserted uint64
	Today    uint64 // clicks that the store has not, of days that are not over: they are left out
	Poison   uint64 // records that nobody can read
	Days     []time.Time
}

// ErrReplay says that a replay cannot be meant: its state is of another, or the topic has no
// such partition.
var ErrReplay = errors.New("nothing to replay")

const (
	// replayBlock are the offsets that a block is made of: those whose numbers have the same
	// quotient, so that two replays make the same blocks.
	replayBlock = 50_000
	// replayTries is how often a block is tried that cannot be inserted.
	replayTries = 6
	// maxGenerations is how often the clicks of a block may have gone and come back.
	maxGenerations = 100
)

// Repeat reads what Kafka still has of some hours, up to where everything is known to be in the
// store but for what is lost, and inserts the clicks that the store does not have. Then it adds
// up the days anew of which it has inserted something: what was added up may have counted them.
//
// Which clicks of a day are there is read before; nobody else inserts clicks of offsets that workers
// have passed. Tokens could not tell: tables remember some hours of them, and forget none for
// rows that have gone. They are used beside, so that an insert that is tried again, or by
// another replay, is one: a block is made of the offsets that one number names, and its token
// is that number with how often these clicks have gone. It may be stopped and repeated at any
// time; what was interrupted between the insert of a block and the adding up of its day is
// told by State.
//
// Clicks of a day that is not over are left out: it cannot be added up anew while workers
// insert. For the same reason no worker may insert clicks of the days meanwhile.
func Repeat(ctx context.Context, r Replay) (done Replayed, err error) {
	topic, err := kafka.OpenReread(ctx, r.Kafka)
	if err != nil {
		return done, err
	}
	defer topic.Close()
	p := &repeater{Replay: r, topic: topic, token: "replay/" + hex.EncodeToString(topic.Topic[:]), held: idset.New(idset.MaxPages), days: map[time.Time]bool{}, names: newWorkspaces(r.Workspaces, r.RetentionDays)}
	if err := p.state(); err != nil {
		return done, err
	}
	if err := p.begin(ctx); err != nil {
		return done, err
	}
	passed, err := topic.Passed(ctx, cmp.Or(r.Group, r.Kafka.Topic), p.From)
	if err != nil {
		return done, err
	}
	err = p.all(ctx, passed)
	return p.done, err
}

// begin finds out where to begin. A day is added up from all of its clicks: of one that Kafka has in
// part, what is not there one by one either would be lost.
func (p *repeater) begin(ctx context.Context) error {
	for at := p.From; at.Before(p.To) && !p.Reduce; at = at.Truncate(day).Add(day) {
		whole, err := p.whole(ctx, at.Truncate(day))
		switch {
		case err != nil:
			return err
		case whole:
			p.From, p.done.From = at, at
			return nil
		case !p.Earliest:
			return fmt.Errorf("%w: Kafka no longer has all clicks of %s, so totals of days may drop: start later, or use --reduce", ErrReplay, at.Format(time.DateOnly))
		}
	}
	if !p.Reduce {
		return fmt.Errorf("%w: Kafka no longer has all clicks of any of these days", ErrReplay)
	}
	p.done.From = p.From
	return nil
}

// whole reports whether Kafka gave up no click of a time from a moment on: of each partition it has
// an older one, or all that ever were, or nothing that could be read. Of a topic that was made
// anew it does not have what was in the one before.
func (p *repeater) whole(ctx context.Context, from time.Time) (bool, error) {
	before, err := p.Store.Before(ctx, TopicName(p.Kafka, p.topic.Topic))
	if err != nil {
		return false, err
	}
	passed, err := p.topic.Passed(ctx, cmp.Or(p.Group, p.Kafka.Topic), from)
	return !slices.ContainsFunc(passed, func(q kafka.Passed) bool {
		return (q.Low > 0 || len(before) > 0) && q.First == q.Low && q.Size() > 0
	}), err
}

// repeater is one replay.
type repeater struct {
	Replay

	topic *kafka.Reread
	token string
	held  *idset.Set         // that the store has, of the days that were looked at
	days  map[time.Time]bool // that were looked at
	names *workspaces
	done  Replayed
}

// state begins a state, or looks whether the one that is there is of the same.
func (p *repeater) state() error {
	topic := hex.EncodeToString(p.topic.Topic[:])
	if p.State == nil {
		p.State = &ReplayState{Topic: topic, From: p.From, To: p.To}
	}
	if s := p.State; s.Topic != topic || !s.From.Equal(p.From) || !s.To.Equal(p.To) {
		return fmt.Errorf("%w: the state file belongs to another replay, from %s to %s", ErrReplay, s.From.Format(time.RFC3339), s.To.Format(time.RFC3339))
	}
	for _, number := range p.Partitions {
		if number < 0 || int(number) >= p.topic.Partitions {
			return fmt.Errorf("%w: the topic has the partitions 0 to %d", ErrReplay, p.topic.Partitions-1)
		}
	}
	if p.State.Next == nil {
		p.State.Next = map[int32]int64{}
	}
	if p.Save == nil {
		p.Save = func(*ReplayState) error { return nil }
	}
	return nil
}

func (p *repeater) all(ctx context.Context, passed []kafka.Passed) error {
	mine := passed[:0]
	for _, q := range passed {
		if len(p.Partitions) == 0 || slices.Contains(p.Partitions, q.Partition) {
			q.First, q.Committed = max(q.First, p.State.Next[q.Partition]), Stored(q)
			mine = append(mine, q)
		}
	}
	progress := newReading(mine, p.Progress)
	for _, q := range mine {
		if q.Size() == 0 {
			continue
		}
		if err := p.partition(ctx, q, progress); err != nil {
			return err
		}
	}
	p.done.Records = progress.done
	for len(p.State.Days) > 0 {
		day := p.State.Days[0]
		if err := p.Store.RebuildDay(ctx, day, p.Now); err != nil {
			return err
		}
		p.done.Days = append(p.done.Days, day)
		p.State.Days = p.State.Days[1:]
		if err := p.Save(p.State); err != nil {
			return err
		}
	}
	return nil
}

// partition repeats a partition, block by block.
func (p *repeater) partition(ctx context.Context, q kafka.Passed, progress *reading) error {
	r := reader{seen: seen{}, bots: useragent.NewClassifier(), stats: &counters{}, all: true}
	r.at = -1
	b, block := r.begin(), q.First/replayBlock
	flush := func() error {
		if err := p.flush(ctx, q.Partition, block, b.rows); err != nil {
			return err
		}
		p.done.Poison += uint64(len(b.poison))
		p.State.Next[q.Partition] = min((block+1)*replayBlock, q.Committed)
		b = r.begin()
		return p.Save(p.State)
	}
	err := p.topic.Read(ctx, q.Partition, q.First, q.Committed, func(record *kgo.Record) error {
		progress.tick()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if at := record.Offset / replayBlock; at != block {
			if err := flush(); err != nil {
				return err
			}
			block = at
		}
		before := len(b.rows)
		r.add(b, record)
		if len(b.rows) == before {
			return nil
		}
		wanted, err := p.wants(ctx, &b.rows[before])
		if !wanted {
			b.rows = b.rows[:before]
		}
		return err
	})
	if err != nil {
		return err
	}
	return flush()
}

// wants reports whether a click is to be inserted.
func (p *repeater) wants(ctx context.Context, row *clickdb.Row) (bool, error) {
	if row.Time.Before(p.From) || !row.Time.Before(p.To) {
		return false, nil
	}
	if err := p.look(ctx, row.Time.Truncate(day)); err != nil {
		return false, err
	}
	p.done.Clicks++
	isNew, err := p.held.Add(row.ID)
	switch {
	case err != nil:
		return false, err
	case !isNew:
		p.done.There++
		return false, nil
	case !p.Unfinished && row.Time.Truncate(day).Add(day).After(p.Now):
		p.done.Today++
		return false, nil
	}
	return true, nil
}

const day = 24 * time.Hour

// look finds out which clicks of a day the store has, as far as it is asked for, once. All that is repeated was passed by
// workers before, so that nobody else inserts any of it.
func (p *repeater) look(ctx context.Context, at time.Time) error {
	if p.days[at] {
		return nil
	}
	p.days[at] = true
	from, to := at, at.Add(day)
	if from.Before(p.From) {
		from = p.From
	}
	if to.After(p.To) {
		to = p.To
	}
	return p.Store.StoredClicks(ctx, from, to, p.topic.Partitions, func(k reconcile.StoredClick) error {
		_, err := p.held.Add(k.ID)
		return err
	})
}

// flush inserts rows, those of each day as a block of its own: a partition of the table takes
// a block as a whole or not.
func (p *repeater) flush(ctx context.Context, partition int32, number int64, rows []clickdb.Row) error {
	if len(rows) == 0 {
		return nil
	}
	if err := p.names.fill(ctx, rows); err != nil {
		return err
	}
	byDay := map[time.Time][]clickdb.Row{}
	for i := range rows {
		at := rows[i].Time.Truncate(day)
		byDay[at] = append(byDay[at], rows[i])
	}
	for at, some := range byDay {
		if !slices.ContainsFunc(p.State.Days, at.Equal) {
			p.State.Days = append(p.State.Days, at)
			if err := p.Save(p.State); err != nil {
				return err
			}
		}
		if err := p.insert(ctx, fmt.Sprintf("%s:%d:%d:%s", p.token, partition, number, at.Format(time.DateOnly)), some); err != nil {
			return err
		}
		p.done.Inserted += uint64(len(some))
	}
	return nil
}

// insert inserts a block that the store has nothing of. Where it has a token of clicks that
// have gone since, it takes the next one.
func (p *repeater) insert(ctx context.Context, token string, rows []clickdb.Row) error {
	for generation := range maxGenerations {
		if err := p.try(ctx, fmt.Sprintf("%s:%d", token, generation), rows); err != nil {
			return err
		}
		there, err := p.Store.Holds(ctx, &rows[0])
		if err != nil || there {
			return err
		}
	}
	return fmt.Errorf("block %s was recorded but is missing", token)
}

// try inserts a block under one token, several times if need be.
func (p *repeater) try(ctx context.Context, token string, rows []clickdb.Row) error {
	for tried, wait := 1, waitFirst; ; tried, wait = tried+1, min(2*wait, waitMost) {
		err := p.Store.Insert(ctx, token, rows)
		if err == nil || ctx.Err() != nil || errors.Is(err, clickdb.ErrBlock) || tried == replayTries {
			return err
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}
