// Package watermarks knows up to when clicks are complete: workers write how far they have come, and
// statistics read it.
package watermarks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks/rollup"
	"curt/internal/clicks/ship"
)

// GoneAfter is how long an instance may give no promise, while its partition is read to its
// end, before it is called gone. Unless it is a sender's, it holds up nobody from then on.
const GoneAfter = 10 * time.Minute

// Progress is how far clicks have come.
type Progress struct {
	rollup.Freshness

	Instances int // that are known and have not ended, those that are gone among them
	// Gone are instances that have given no promise for [GoneAfter] and did not say that they
	// have ended: what they still hold may come late.
	Gone []uint64
	// Senders are those of [New], in their order.
	Senders []SenderProgress
}

// SenderProgress is how far the clicks of a sender have come.
type SenderProgress struct {
	ship.Sender

	Until       time.Time // its clicks before are there; zero = that is not known
	LastContact time.Time // of its last promise; zero = it gave none
	Ended       bool      // all its clicks are there, and no more will come
	Gone        bool      // it is silent, has not ended, and nobody said that it be forgotten
}

// Table is what is known of all lives of topics. All methods may be called by many goroutines at once.
type Table struct {
	db       *clickdb.DB
	ask      func(context.Context) ([]ship.Sender, error)
	progress progress
}

// New returns the watermarks of a database. senders returns which servers may hold clicks that were
// not sent yet: one that begins to take clicks MUST be among them before its first click. Nil = only
// instances count that have promised something.
func New(db *clickdb.DB, senders func(context.Context) ([]ship.Sender, error)) *Table {
	return &Table{db: db, ask: senders}
}

// progress is what a Table was told last.
type progress struct {
	mu      sync.Mutex
	value   Progress
	read    time.Time
	senders []ship.Sender
	asked   time.Time // for senders; zero = nobody could say yet
}

// progressFor is how long an answer is good: the news come once a second.
const progressFor = time.Second

// Progress says how far clicks have come that workers insert, of the topic that was heard of
// last. Both times are zero as long as nothing is known of some partition.
//
// Of the senders, what is known stays true while they cannot be asked for: who comes later holds
// no click from before. So clicks are complete up to that time at the most.
func (t *Table) Progress(ctx context.Context, now time.Time) (Progress, error) {
	if p, fresh := t.progress.at(now); fresh {
		return p, nil
	}
	ctx, cancel := clickdb.Bound(ctx)
	defer cancel()
	senders, asked := t.senders(ctx, now)
	marks, newest, err := t.watermarks(ctx)
	if err != nil {
		return Progress{}, fmt.Errorf("read the watermark of clicks: %w", clickdb.Unavailable(ctx, err))
	}
	p := ProgressOf(marks, newest, senders, now)
	if p.Complete.After(asked) {
		p.Complete = asked.UTC()
	}
	return t.progress.keep(p, now), nil
}

// senders asks who may hold clicks, before anybody asks how far these are: who is new then is
// not waited for, and has none from before. asked is when that was known last.
func (t *Table) senders(ctx context.Context, now time.Time) (all []ship.Sender, asked time.Time) {
	if t.ask == nil {
		return nil, now
	}
	all, err := t.ask(ctx)
	t.progress.mu.Lock()
	defer t.progress.mu.Unlock()
	if err == nil {
		t.progress.senders, t.progress.asked = all, now
	}
	return t.progress.senders, t.progress.asked
}

// Marks returns what is known of all lives of topics, for another replica.
func (t *Table) Marks(ctx context.Context) ([]Watermark, error) {
	ctx, cancel := clickdb.Bound(ctx)
	defer cancel()
	marks, _, err := t.watermarks(ctx)
	return marks, clickdb.Unavailable(ctx, err)
}

// watermarks returns what is known of all lives of topics, and which was heard of last.
func (t *Table) watermarks(ctx context.Context) (marks []Watermark, newest string, err error) {
	rows, err := t.db.Conn.Query(ctx, `SELECT topic, partition, instance, max(partitions), min(first), max(watermark), max(heard), max(at)
FROM watermarks GROUP BY topic, partition, instance`)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = rows.Close() }()
	var last time.Time
	for rows.Next() {
		var m Watermark
		var at time.Time
		if err := rows.Scan(&m.Topic, &m.Partition, &m.Instance, &m.Partitions, &m.First, &m.Watermark, &m.LastContact, &at); err != nil {
			return nil, "", err
		}
		if marks = append(marks, m); newest == "" || at.After(last) || at.Equal(last) && m.Topic < newest {
			newest, last = m.Topic, at
		}
	}
	return marks, newest, rows.Err()
}

// at returns what was told a moment ago.
func (p *progress) at(now time.Time) (value Progress, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	age := now.Sub(p.read)
	return p.value, age >= 0 && age < progressFor
}

func (p *progress) keep(value Progress, now time.Time) Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.value, p.read = value, now
	return value
}

// Watermark is what somebody who inserts clicks knows of an instance in a partition, or, with
// the Instance 0, of the partition itself. Times are Unix milliseconds.
type Watermark struct {
	Topic      string // the life of a topic: one that is made anew has another name here
	Partition  uint32
	Partitions uint32 // how many the topic has
	Instance   uint64

	// First and Watermark are the first and the last promise of the instance: all of its
	// clicks before Watermark that are in the partition are inserted. clicks.Ended says that
	// it makes no more. Of a partition, it is the time up to which everything in it was
	// inserted or looked at.
	First, Watermark int64
	// LastContact is when the instance gave its last promise.
	LastContact int64
}

// Advance adds what is known. It may be repeated, and what is older than what is there
// changes nothing.
func (t *Table) Advance(ctx context.Context, marks []Watermark) error {
	if len(marks) == 0 {
		return nil
	}
	ctx, cancel := clickdb.Bound(ctx)
	defer cancel()
	batch, err := t.db.Conn.PrepareBatch(ctx, "INSERT INTO watermarks (topic, partition, instance, partitions, first, watermark, heard, at)")
	if err != nil {
		return fmt.Errorf("write the watermark of clicks: %w", clickdb.Unavailable(ctx, err))
	}
	defer func() { _ = batch.Close() }() // does nothing once it is sent
	now := time.Now()
	for _, m := range marks {
		if err := batch.Append(m.Topic, m.Partition, m.Instance, m.Partitions, m.First, m.Watermark, m.LastContact, now); err != nil {
			return fmt.Errorf("write the watermark of clicks: %w", err)
		}
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("write the watermark of clicks: %w", clickdb.Unavailable(ctx, err))
	}
	return nil
}

const (
	// Unread is how long nobody looks at a partition before that is a gap: who reads one looks
	// once a second.
	Unread = 15 * time.Second

	sqlExcuse = `INSERT INTO watermarks (topic, partition, instance, partitions, first, watermark, heard, at)
WITH (SELECT max(watermark) FROM watermarks WHERE topic = ? AND partition = ? AND instance = 0) AS through
SELECT topic, partition, instance, max(partitions), min(first), max(watermark), ?, toDateTime(?)
FROM watermarks WHERE topic = ? AND partition = ? AND instance != 0
GROUP BY topic, partition, instance
HAVING through < ? AND max(heard) > through - ?`
)

// ForgiveOutage is to be called before anything is told of a partition that nobody may have looked at
// for [Unread]: Kafka was away, or the worker, or its clock jumped. Instances that were not gone
// by then could not be heard meanwhile, and count as heard of now; else all of them would be
// gone for as long as they take to send what they have, and clicks complete that are not. It
// may be repeated, and where there was no gap changes nothing.
func (t *Table) ForgiveOutage(ctx context.Context, topic string, partition uint32, now time.Time) error {
	ctx, cancel := clickdb.Bound(ctx)
	defer cancel()
	ms := now.UnixMilli()
	err := t.db.Conn.Exec(ctx, sqlExcuse, topic, partition, ms, now.Unix(), topic, partition, ms-Unread.Milliseconds(), GoneAfter.Milliseconds())
	if err != nil {
		return fmt.Errorf("forgive the outage in partition %d: %w", partition, clickdb.Unavailable(ctx, err))
	}
	return nil
}
