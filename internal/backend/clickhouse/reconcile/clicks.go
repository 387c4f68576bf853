package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
)

// StoredClick is one click that is kept, as far as it can be compared with others.
type StoredClick struct {
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

// StoredClicks calls f with each click of a span of hours, in no order, once for each row: one that is
// there twice comes twice. partitions are those of the topic. An error of f ends it and is
// returned. It reads on while f works, and holds some thousand clicks at a time.
func (t *Tables) StoredClicks(ctx context.Context, from, to time.Time, partitions int, f func(StoredClick) error) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_execution_time": int(readLimit / time.Second)}))
	rows, err := t.db.Conn.Query(ctx, `SELECT instance, sequence, toUnixTimestamp(toStartOfHour(time)), `+partitionOf+`
FROM clicks WHERE `+clickdb.InSpan,
		append(clickdb.Span(from, to), clickhouse.Named("partitions", fmt.Sprint(partitions)))...)
	if err != nil {
		return fmt.Errorf("read clicks of %s: %w", clickdb.Seconds(from), clickdb.Unavailable(ctx, err))
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var k StoredClick
		var hour uint32
		if err := rows.Scan(&k.ID.Instance, &k.ID.Sequence, &hour, &k.Partition); err != nil {
			return fmt.Errorf("read clicks of %s: %w", clickdb.Seconds(from), err)
		}
		k.Hour = time.Unix(int64(hour), 0).UTC()
		if err := f(k); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read clicks of %s: %w", clickdb.Seconds(from), clickdb.Unavailable(ctx, err))
	}
	return nil
}

// Before returns the instances that have promised something in another life of a topic than the
// one that is named, as far as that is known: for thirty days.
func (t *Tables) Before(ctx context.Context, topic string) (map[uint64]bool, error) {
	ctx, cancel := clickdb.Bound(ctx)
	defer cancel()
	rows, err := t.db.Conn.Query(ctx, "SELECT DISTINCT instance FROM watermarks WHERE topic != {topic:String} AND instance != 0", clickhouse.Named("topic", topic))
	if err != nil {
		return nil, fmt.Errorf("find the instances of an earlier topic: %w", clickdb.Unavailable(ctx, err))
	}
	defer func() { _ = rows.Close() }()
	before := map[uint64]bool{}
	for rows.Next() {
		var instance uint64
		if err := rows.Scan(&instance); err != nil {
			return nil, fmt.Errorf("find the instances of an earlier topic: %w", err)
		}
		before[instance] = true
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("find the instances of an earlier topic: %w", clickdb.Unavailable(ctx, err))
	}
	return before, nil
}
