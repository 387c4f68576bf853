package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/clicks"
)

// Kept is one click that is kept, as far as it can be compared with others.
type Kept struct {
	ID        clicks.EventID
	Hour      time.Time // UTC
	Partition int32     // of the topic, in which its link is
}

// partitionOf is the partition of a click's record: Kafka's own hash of the key, which
// internal/backend/kafka makes of the link, and where there is none, of the click.
var partitionOf = fmt.Sprintf(`toInt32(kafkaMurmurHash(if(outcome = %d,
    unhex(concat(leftPad(hex(instance), 16, '0'), leftPad(hex(bitShiftRight(sequence, 8)), 16, '0'))),
    concat(CAST(domain, 'String'), '/', code))) %% {partitions:UInt32})`, clicks.Orphan)

// readLimit bounds the reading of all clicks of some hours.
const readLimit = time.Hour

// Kept calls f with each click of a span of hours, in no order, once for each row: one that is
// there twice comes twice. partitions are those of the topic. An error of f ends it and is
// returned. It reads on while f works, and holds some thousand clicks at a time.
func (s *Store) Kept(ctx context.Context, from, to time.Time, partitions int, f func(Kept) error) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_execution_time": int(readLimit / time.Second)}))
	rows, err := s.conn.Query(ctx, `SELECT instance, sequence, toUnixTimestamp(toStartOfHour(time)), `+partitionOf+`
FROM clicks WHERE `+inSpan,
		append(span(from, to), clickhouse.Named("partitions", fmt.Sprint(partitions)))...)
	if err != nil {
		return fmt.Errorf("read clicks of %s: %w", seconds(from), unavailable(ctx, err))
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var k Kept
		var hour uint32
		if err := rows.Scan(&k.ID.Instance, &k.ID.Sequence, &hour, &k.Partition); err != nil {
			return fmt.Errorf("read clicks of %s: %w", seconds(from), err)
		}
		k.Hour = time.Unix(int64(hour), 0).UTC()
		if err := f(k); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read clicks of %s: %w", seconds(from), unavailable(ctx, err))
	}
	return nil
}

// Before returns the instances that have promised something in another life of a topic than the
// one that is named, as far as that is known: for thirty days.
func (s *Store) Before(ctx context.Context, topic string) (map[uint64]bool, error) {
	ctx, cancel := ask(ctx)
	defer cancel()
	rows, err := s.conn.Query(ctx, "SELECT DISTINCT instance FROM watermarks WHERE topic != {topic:String} AND instance != 0", clickhouse.Named("topic", topic))
	if err != nil {
		return nil, fmt.Errorf("ask who wrote to an earlier topic: %w", unavailable(ctx, err))
	}
	defer func() { _ = rows.Close() }()
	before := map[uint64]bool{}
	for rows.Next() {
		var instance uint64
		if err := rows.Scan(&instance); err != nil {
			return nil, fmt.Errorf("ask who wrote to an earlier topic: %w", err)
		}
		before[instance] = true
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("ask who wrote to an earlier topic: %w", unavailable(ctx, err))
	}
	return before, nil
}

// Holds reports whether a click is kept.
func (s *Store) Holds(ctx context.Context, row *Row) (bool, error) {
	ctx, cancel := ask(ctx)
	defer cancel()
	at, key := clamp(row.Time), row.key()
	var n uint64
	err := s.conn.QueryRow(ctx, `SELECT count() FROM clicks
WHERE domain = {domain:String} AND code = {code:String} AND instance = {instance:UInt64} AND sequence = {sequence:UInt64}
    AND `+inSpan,
		append(span(at.Truncate(time.Second), at.Truncate(time.Second).Add(time.Second)),
			clickhouse.Named("domain", string(key.Domain)), clickhouse.Named("code", string(key.Code)),
			clickhouse.Named("instance", fmt.Sprint(row.ID.Instance)), clickhouse.Named("sequence", fmt.Sprint(row.ID.Sequence)))...).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("look for a click: %w", unavailable(ctx, err))
	}
	return n > 0, nil
}
