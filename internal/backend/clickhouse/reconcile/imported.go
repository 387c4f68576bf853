package reconcile

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/finalize"
	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// Imported is what another store has counted of a link or workspace in a bucket.
type Imported struct {
	Key         link.Key
	Bucket      rollup.Bucket
	Counts      rollup.Counts
	First, Last time.Time // of all requests, of the clicks; zero = none
	Visitors    []uint64  // their tags, where the store has them
}

// ImportedValue is how often a value of a dimension came on a day, or with [finalize.SeenDimension] how many
// visitors there were.
type ImportedValue struct {
	Key       link.Key
	Dimension uint8
	rollup.Value
}

// Imports brings what another store has counted into the tables, as sums.
type Imports struct{ tables *Tables }

// ImportsOf returns the imports of tables.
func ImportsOf(t *Tables) Imports { return Imports{t} }

// ofTags makes states of the tags that Stage has packed.
const ofTags = `arrayReduce('uniqCombined64IfState(14)',
    arrayMap(i -> reinterpretAsUInt64(substring(visitors, toInt64(8 * i + 1), 8)), range(toUInt64(intDiv(length(visitors), 8)))),
    arrayMap(i -> toUInt8(1), range(toUInt64(intDiv(length(visitors), 8)))))`

// Stage copies what another store has counted under the name of a batch. Nothing reads it before
// [Imports.Adopt].
func (t Imports) Stage(ctx context.Context, batch string, rows []Imported) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(copySettings()))
	b, err := t.tables.db.Conn.PrepareBatch(ctx, "INSERT INTO refill_sums (batch, target, domain, code, at, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked, visitors)")
	if err != nil {
		return fmt.Errorf("stage imported sums: %w", clickdb.Unavailable(ctx, err))
	}
	defer func() { _ = b.Close() }() // does nothing once it is sent
	for i := range rows {
		r := &rows[i]
		target := "quarters"
		if r.Bucket.Granularity == rollup.Day {
			target = "days"
		}
		tags := make([]byte, 0, 8*len(r.Visitors))
		for _, tag := range r.Visitors {
			tags = binary.LittleEndian.AppendUint64(tags, tag)
		}
		last := r.Last
		if last.IsZero() {
			last = time.Unix(0, 0)
		}
		c := &r.Counts
		if err := b.Append(batch, target, string(r.Key.Domain), string(r.Key.Code), r.Bucket.Start(), int64(c.Clicks), int64(c.Humans), int64(c.Previews), int64(c.Fallbacks), int64(c.Refused), r.First, last, string(tags)); err != nil {
			return fmt.Errorf("stage imported sums: %w", err)
		}
	}
	if err := b.Send(); err != nil {
		return fmt.Errorf("stage imported sums: %w", clickdb.Unavailable(ctx, err))
	}
	return nil
}

// Adopt makes the sums of a UTC day those of a batch, by adding the difference, and then finalizes the
// day with values that write gives to put: repeated, it changes nothing. From then on nobody verifies, rebuilds or
// finalizes the day from its clicks, which are elsewhere.
func (t Imports) Adopt(ctx context.Context, batch string, day, now time.Time, write func(put func([]ImportedValue) error) error) error {
	if err := t.tables.adoptSums(ctx, batch, day, ofTags); err != nil {
		return err
	}
	err := t.tables.days.Adopt(ctx, day, finalize.Day{Clicks: finalize.Imported}, now, func(version uint64) error {
		return write(func(values []ImportedValue) error { return t.putValues(ctx, day, version, values) })
	})
	if err != nil {
		return fmt.Errorf("import the values of %s: %w", day.Format(time.DateOnly), clickdb.Unavailable(ctx, err))
	}
	return nil
}

func (t Imports) putValues(ctx context.Context, day time.Time, version uint64, values []ImportedValue) error {
	b, err := t.tables.db.Conn.PrepareBatch(clickhouse.Context(ctx, clickhouse.WithSettings(copySettings())),
		"INSERT INTO day_values (domain, code, dimension, at, value, clicks, humans, version)")
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }() // does nothing once it is sent
	for _, v := range values {
		if err := b.Append(string(v.Key.Domain), string(v.Key.Code), v.Dimension, day, v.Value.Value, v.Clicks, v.Humans, version); err != nil {
			return err
		}
	}
	return b.Send()
}

// Days returns the days that [Imports.Adopt] has finalized.
func (t Imports) Days(ctx context.Context) (map[time.Time]bool, error) {
	all, err := t.tables.days.Finalized(ctx, time.Time{}, time.UnixMilli(clickdb.MostMillis))
	if err != nil {
		return nil, fmt.Errorf("read the imported days: %w", clickdb.Unavailable(ctx, err))
	}
	days := map[time.Time]bool{}
	for at, one := range all {
		if one.Clicks == finalize.Imported {
			days[at] = true
		}
	}
	return days, nil
}

// DaySum is what a day has in all links and workspaces: the counts, and the clicks weighted by who has them.
type DaySum struct {
	rollup.Counts
	Weighted uint64
}

// SumsBefore returns what the days before a time have.
func (t Imports) SumsBefore(ctx context.Context, before time.Time) (map[time.Time]DaySum, error) {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(copySettings()))
	rows, err := t.tables.db.Conn.Query(ctx, `SELECT at, toUInt64(sum(clicks)), toUInt64(sum(humans)), toUInt64(sum(previews)), toUInt64(sum(fallbacks)), toUInt64(sum(refused)),
    sum(toUInt64(CRC32(concat(CAST(domain, 'String'), '/', code))) * toUInt64(clicks + 3 * humans))
FROM days WHERE at < {before:DateTime('UTC')} GROUP BY at`, clickhouse.Named("before", clickdb.Seconds(before)))
	if err != nil {
		return nil, fmt.Errorf("read the sums of days: %w", clickdb.Unavailable(ctx, err))
	}
	defer func() { _ = rows.Close() }()
	all := map[time.Time]DaySum{}
	for rows.Next() {
		var at time.Time
		var s DaySum
		if err := rows.Scan(&at, &s.Clicks, &s.Humans, &s.Previews, &s.Fallbacks, &s.Refused, &s.Weighted); err != nil {
			return nil, fmt.Errorf("read the sums of days: %w", err)
		}
		all[at.UTC()] = s
	}
	return all, clickdb.Unavailable(ctx, rows.Err())
}

// ValuesOf are the values of a day's roll-up, with how many visitors it had.
func ValuesOf(key link.Key, r *rollup.Rollup) (all []ImportedValue) {
	for d := range clicks.NumDimensions {
		for _, v := range r.Dimensions[d] {
			all = append(all, ImportedValue{key, uint8(d), v})
		}
	}
	if n := r.Visitors.Count(); n > 0 {
		all = append(all, ImportedValue{key, finalize.SeenDimension, rollup.Value{Clicks: n}})
	}
	return all
}
