package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"curt/internal/clicks"
)

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
	// Heard is when the instance gave its last promise.
	Heard int64
}

// Advance adds what is known. It may be repeated, and what is older than what is there
// changes nothing.
func (s *Store) Advance(ctx context.Context, marks []Watermark) error {
	if len(marks) == 0 {
		return nil
	}
	ctx, cancel := ask(ctx)
	defer cancel()
	batch, err := s.conn.PrepareBatch(ctx, "INSERT INTO watermarks (topic, partition, instance, partitions, first, watermark, heard, at)")
	if err != nil {
		return fmt.Errorf("tell up to when clicks are complete: %w", unavailable(ctx, err))
	}
	defer func() { _ = batch.Close() }() // does nothing once it is sent
	now := time.Now()
	for _, m := range marks {
		if err := batch.Append(m.Topic, m.Partition, m.Instance, m.Partitions, m.First, m.Watermark, m.Heard, now); err != nil {
			return fmt.Errorf("tell up to when clicks are complete: %w", err)
		}
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("tell up to when clicks are complete: %w", unavailable(ctx, err))
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

// Excuse is to be called before anything is told of a partition that nobody may have looked at
// for [Unread]: Kafka was away, or the worker, or its clock jumped. Instances that were not gone
// by then could not be heard meanwhile, and count as heard of now; else all of them would be
// gone for as long as they take to send what they have, and clicks complete that are not. It
// may be repeated, and where there was no gap changes nothing.
func (s *Store) Excuse(ctx context.Context, topic string, partition uint32, now time.Time) error {
	ctx, cancel := ask(ctx)
	defer cancel()
	ms := now.UnixMilli()
	err := s.conn.Exec(ctx, sqlExcuse, topic, partition, ms, now.Unix(), topic, partition, ms-Unread.Milliseconds(), GoneAfter.Milliseconds())
	if err != nil {
		return fmt.Errorf("excuse who could not be heard in partition %d: %w", partition, unavailable(ctx, err))
	}
	return nil
}

// GoneAfter is how long an instance may give no promise, while its partition is read to its
// end, before it holds up nobody any more.
const GoneAfter = 10 * time.Minute

// Progress is how far clicks have come.
type Progress struct {
	clicks.Freshness

	Instances int // that were heard of and have not ended, those that are gone among them
	// Gone are instances that have given no promise for [GoneAfter] and did not say that they
	// have ended: what they still hold may come late.
	Gone []uint64
}

// progress is what a Store was told last.
type progress struct {
	mu    sync.Mutex
	value Progress
	read  time.Time
}

// progressFor is how long an answer is good: the news come once a second.
const progressFor = time.Second

// Progress says how far clicks have come that workers insert, of the topic that was heard of
// last. Both times are zero as long as nothing is known of some partition.
func (s *Store) Progress(ctx context.Context, now time.Time) (Progress, error) {
	if p, fresh := s.progress.at(now); fresh {
		return p, nil
	}
	ctx, cancel := ask(ctx)
	defer cancel()
	rows, err := s.conn.Query(ctx, `SELECT partition, instance, max(partitions), min(first), max(watermark), max(heard)
FROM watermarks WHERE topic = (SELECT topic FROM watermarks GROUP BY topic ORDER BY max(at) DESC, topic LIMIT 1)
GROUP BY partition, instance`)
	if err != nil {
		return Progress{}, fmt.Errorf("ask how far clicks have come: %w", unavailable(ctx, err))
	}
	defer func() { _ = rows.Close() }()
	var marks []Watermark
	for rows.Next() {
		var m Watermark
		if err := rows.Scan(&m.Partition, &m.Instance, &m.Partitions, &m.First, &m.Watermark, &m.Heard); err != nil {
			return Progress{}, fmt.Errorf("ask how far clicks have come: %w", unavailable(ctx, err))
		}
		marks = append(marks, m)
	}
	if err := rows.Err(); err != nil {
		return Progress{}, fmt.Errorf("ask how far clicks have come: %w", unavailable(ctx, err))
	}
	return s.progress.keep(progressOf(marks), now), nil
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

// progressOf adds up what is known of one topic.
//
// Clicks are complete up to the least promise of any instance in any partition. An instance
// that has not been heard of in a partition in which others have is held to the first promise
// that it gave anywhere. It counts no more once it has ended, or once its partition was read
// to a time that is [GoneAfter] after it was heard of there; a partition that is not read
// makes nobody gone, then or later ([Store.Excuse]).
func progressOf(marks []Watermark) Progress {
	through := map[uint32]int64{}
	instances := map[uint64]*instance{}
	partitions := uint32(0)
	for _, m := range marks {
		partitions = max(partitions, m.Partitions)
		if m.Instance == 0 {
			through[m.Partition] = m.Watermark
			continue
		}
		i := instances[m.Instance]
		if i == nil {
			i = &instance{in: map[uint32]Watermark{}, first: m.First}
			instances[m.Instance] = i
		}
		i.in[m.Partition], i.first = m, min(i.first, m.First)
	}
	var p Progress
	if partitions == 0 || len(through) < int(partitions) {
		return p
	}
	updated := slices.Min(slices.Collect(maps.Values(through)))
	complete := updated
	for id, i := range instances {
		least, gone := i.least(through)
		if least == clicks.Ended {
			continue
		}
		p.Instances++
		if gone {
			p.Gone = append(p.Gone, id)
			continue
		}
		complete = min(complete, least)
	}
	slices.Sort(p.Gone)
	p.Updated, p.Complete = time.UnixMilli(updated).UTC(), time.UnixMilli(complete).UTC()
	return p
}

// instance is what is known of an instance.
type instance struct {
	in    map[uint32]Watermark // by partition
	first int64
}

// least returns up to when all of the instance's clicks are there, clicks.Ended when it has
// ended everywhere, and whether it is gone.
func (i *instance) least(through map[uint32]int64) (least int64, gone bool) {
	least, gone = clicks.Ended, true
	for partition, until := range through {
		m, heard := i.in[partition]
		switch {
		case !heard:
			least = min(least, i.first)
			m.Heard = i.lastHeard()
		case m.Watermark == clicks.Ended:
			continue
		default:
			least = min(least, m.Watermark)
		}
		if until-m.Heard < GoneAfter.Milliseconds() {
			gone = false
		}
	}
	return least, gone
}

func (i *instance) lastHeard() (last int64) {
	for _, m := range i.in {
		last = max(last, m.Heard)
	}
	return last
}
