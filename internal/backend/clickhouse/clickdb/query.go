package clickdb

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/clicks"
	"curt/internal/link"
)

// Day is a UTC day.
const Day = 24 * time.Hour

// OfKey is where the rows of a link lie, or of a group.
const OfKey = "domain = {domain:String} AND code = {code:String}"

// Named spells a key as parameters of OfKey.
func Named(k link.Key, more ...any) []any {
	return append(more, clickhouse.Named("domain", string(k.Domain)), clickhouse.Named("code", string(k.Code)))
}

// MostMillis is the newest that a click can be.
const MostMillis = 1<<32*1000 - 1

// Counted are the clicks that values are counted of.
func Counted() string { return fmt.Sprintf("outcome = %d AND NOT preview", clicks.Redirected) }

// InSpan are the clicks of a span. Its ends are as fine as the time of a click: compared with
// whole seconds, the index of the server leaves out parts of which all clicks are in the last
// second before the end.
const InSpan = "time >= {from:DateTime64(3, 'UTC')} AND time < {to:DateTime64(3, 'UTC')}"

// Span spells times as parameters.
func Span(from, to time.Time) []any {
	return []any{clickhouse.Named("from", Seconds(from)), clickhouse.Named("to", Seconds(to))}
}

// Seconds spells a time as a parameter.
func Seconds(t time.Time) string { return t.UTC().Format(time.DateTime) }

// List spells numbers as a list.
func List[T uint8 | uint32 | uint64](numbers []T) string {
	text := []byte{'['}
	for i, n := range numbers {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendUint(text, uint64(n), 10)
	}
	return string(append(text, ']'))
}

// RowsOfDays returns how many rows of clicks each day has, from what the server knows of its
// files.
func (d *DB) RowsOfDays(ctx context.Context) (map[time.Time]uint64, error) {
	rows, err := d.Conn.Query(ctx, `SELECT partition, sum(rows) FROM system.parts
WHERE active AND database = currentDatabase() AND table = 'clicks' GROUP BY partition`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	all := map[time.Time]uint64{}
	for rows.Next() {
		var partition string
		var n uint64
		if err := rows.Scan(&partition, &n); err != nil {
			return nil, err
		}
		at, err := time.Parse("20060102", partition)
		if err != nil {
			return nil, fmt.Errorf("partition of clicks: %w", err)
		}
		all[at] = n
	}
	return all, rows.Err()
}
