package clickhouse

import (
	"context"
	"fmt"
	"time"
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
