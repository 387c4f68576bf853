package worker

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/backend/kafka"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/idset"
)

// StoredClicks is what a comparison needs of ClickHouse.
type StoredClicks interface {
	StoredClicks(ctx context.Context, from, to time.Time, partitions int, f func(reconcile.StoredClick) error) error
	Before(ctx context.Context, topic string) (instances map[uint64]bool, err error)
}

// Comparison says what Compare compares.
type Comparison struct {
	Kafka    kafka.Config
	Group    string // of the workers; "" = the name of the topic
	Store    StoredClicks
	From, To time.Time // hours

	// Progress is told how many records of how many were read; nil = nobody asks.
	Progress func(done, all int64)
}

// Compared is what was found of one hour in one partition.
type Compared struct {
	Partition int32
	Hour      time.Time
	Kafka     uint64 // clicks that Kafka has, each once, up to where workers have come
	Repeated  uint64 // records of clicks that were there before
	Rows      uint64 // of ClickHouse, those that are compared with nothing left out
	Missing   uint64 // clicks without a row
	Twice     uint64 // rows of clicks that have one already
	Extra     uint64 // rows of no click in Kafka, although it has what was sent before
	// Apart are clicks and rows that are compared with nothing: rows of what Kafka has given
	// up or of what came since, and clicks of the last block, which may be on its way.
	Apart uint64
	// Earlier are those of them that may be of an earlier life of the topic, which was deleted and
	// made anew: what is in Kafka now says nothing of them.
	Earlier uint64
}

// Wrong is how many rows are missing or too many.
func (c Compared) Wrong() uint64 { return c.Missing + c.Twice + c.Extra }

// Compare reads what Kafka still has of some hours, up to where the group of workers has come,
// and compares it with the rows of ClickHouse, click by click. It writes nothing. What
// nobody can read is in neither. The error is idset.ErrTooMany, or that of Kafka or ClickHouse.
//
// Clicks are told apart by instance and sequence, a bit each in memory. Between the lowest and
// the highest sequence of an instance that is found in a partition Kafka has all, because they
// come there in order and again in order up to the last: so a row between them that Kafka
// does not have is of nobody.
func Compare(ctx context.Context, c Comparison) ([]Compared, error) {
	topic, err := kafka.OpenReread(ctx, c.Kafka)
	if err != nil {
		return nil, err
	}
	defer topic.Close()
	passed, err := topic.Passed(ctx, cmp.Or(c.Group, c.Kafka.Topic), c.From)
	if err != nil {
		return nil, err
	}
	m := &matcher{
		Comparison: c, clicks: idset.New(idset.MaxPages), last: idset.New(idset.MaxPages),
		found: map[spot]*Compared{}, bounds: map[source]bounds{}, passed: passed,
	}
	m.progress = newReading(passed, c.Progress)
	for _, p := range passed {
		if err := m.read(ctx, topic, p); err != nil {
			return nil, err
		}
	}
	if m.before, err = c.Store.Before(ctx, TopicName(c.Kafka, topic.Topic)); err != nil {
		return nil, err
	}
	if err := c.Store.StoredClicks(ctx, c.From, c.To, topic.Partitions, m.row); err != nil {
		return nil, err
	}
	return m.result(), nil
}

// spot is an hour in a partition.
type spot struct {
	partition int32
	hour      int64
}

type source struct {
	partition int32
	instance  uint64
}

// bounds are the sequences of an instance between which Kafka has all of a partition.
type bounds struct{ low, high uint64 }

// matcher compares.
type matcher struct {
	Comparison

	clicks   *idset.Set // of the hours
	last     *idset.Set // those of blocks that may not be inserted yet
	found    map[spot]*Compared
	bounds   map[source]bounds
	passed   []kafka.Passed
	before   map[uint64]bool // instances that wrote to earlier lives of the topic, too
	progress *reading
	event    clicklog.Event
}

func (m *matcher) at(partition int32, hour time.Time) *Compared {
	p := spot{partition, hour.Unix()}
	c := m.found[p]
	if c == nil {
		c = &Compared{Partition: partition, Hour: hour}
		m.found[p] = c
	}
	return c
}

// read reads a partition.
func (m *matcher) read(ctx context.Context, topic *kafka.Reread, p kafka.Passed) error {
	sure := Stored(p)
	return topic.Read(ctx, p.Partition, p.First, p.Committed, func(r *kgo.Record) error {
		m.progress.tick()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if promise, err := kafka.ReadRecord(r.Value, &m.event); err != nil || promise != nil || m.event.ID.Sequence == math.MaxUint64 {
			return nil //nolint:nilerr // it is no click
		}
		return m.click(p.Partition, r.Offset < sure)
	})
}

// Stored returns up to where everything is in the store: but for the block that was committed
// last, as the worker's protocol says.
func Stored(p kafka.Passed) int64 {
	if p.Committed < 0 {
		return p.Low
	}
	was, err := decodeProgress(p.Metadata, p.Committed)
	if err != nil { // somebody set the offset by hand: nothing is on its way from there
		return p.Committed
	}
	return was.first
}

func (m *matcher) click(partition int32, sure bool) error {
	id := m.event.ID
	v := source{partition, id.Instance}
	b, heard := m.bounds[v]
	if !heard {
		b = bounds{id.Sequence, id.Sequence}
	}
	m.bounds[v] = bounds{min(b.low, id.Sequence), max(b.high, id.Sequence)}
	when := m.event.When()
	if when.Before(m.From) || !when.Before(m.To) {
		return nil
	}
	c := m.at(partition, when.Truncate(time.Hour))
	set := m.clicks
	if !sure && !m.clicks.Has(id) {
		set = m.last
	}
	isNew, err := set.Add(id)
	switch {
	case err != nil:
		return err
	case !isNew:
		c.Repeated++
	case sure:
		c.Kafka++
	default:
		c.Apart++
	}
	return nil
}

// row takes a row of the store.
func (m *matcher) row(k reconcile.StoredClick) error {
	c := m.at(k.Partition, k.Hour)
	if in, first := m.clicks.Meet(k.ID); in {
		c.count(first)
		return nil
	}
	if in, first := m.last.Meet(k.ID); in {
		if first && c.Apart > 0 { // it was on its way, and is there
			c.Kafka++
			c.Apart--
		}
		c.count(first)
		return nil
	}
	p := m.passed[k.Partition]
	b, heard := m.bounds[source{k.Partition, k.ID.Instance}]
	switch {
	case m.before[k.ID.Instance] && (!heard || k.ID.Sequence < b.low):
		c.Apart++
		c.Earlier++
	case !heard, k.ID.Sequence > b.high, k.ID.Sequence < b.low && p.First == p.Low && p.Low > 0:
		c.Apart++
	default:
		c.Rows++
		c.Extra++
	}
	return nil
}

func (c *Compared) count(first bool) {
	c.Rows++
	if !first {
		c.Twice++
	}
}

// result returns what was found, by partition and hour.
func (m *matcher) result() []Compared {
	all := make([]Compared, 0, len(m.found))
	for _, c := range m.found {
		met := c.Rows - c.Twice - c.Extra
		c.Missing = max(c.Kafka, met) - met
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Compared) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), a.Hour.Compare(b.Hour))
	})
	return all
}

// reading tells how far records were read.
type reading struct {
	done, all int64
	tell      func(done, all int64)
}

// newReading returns a reading of all that was passed.
func newReading(passed []kafka.Passed, tell func(done, all int64)) *reading {
	r := &reading{tell: tell}
	for _, p := range passed {
		r.all += p.Size()
	}
	return r
}

// tellEach is after how many records somebody is told.
const tellEach = 1 << 12

func (r *reading) tick() {
	r.done++
	if r.tell != nil && (r.done%tellEach == 0 || r.done == r.all) {
		r.tell(r.done, r.all)
	}
}
