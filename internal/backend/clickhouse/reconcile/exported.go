package reconcile

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/finalize"
	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// Exports reads what the tables have counted, for another store: what [Imports] brings, the other way.
type Exports struct{ tables *Tables }

// ExportsOf returns the exports of tables.
func ExportsOf(t *Tables) Exports { return Exports{t} }

// Days returns the UTC days that anything was counted of, in order.
func (t Exports) Days(ctx context.Context) (all []time.Time, err error) {
	rows, err := t.tables.db.Conn.Query(clickhouse.Context(ctx, clickhouse.WithSettings(copySettings())), "SELECT DISTINCT at FROM days ORDER BY at")
	if err != nil {
		return nil, fmt.Errorf("list the counted days: %w", clickdb.Unavailable(ctx, err))
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var at time.Time
		if err := rows.Scan(&at); err != nil {
			return nil, fmt.Errorf("list the counted days: %w", err)
		}
		all = append(all, at.UTC())
	}
	return all, clickdb.Unavailable(ctx, rows.Err())
}

// sqlCounted selects what links and workspaces have in a span, each with its day before its quarter hours.
func sqlCounted() string {
	var sources []string
	for _, a := range kept() {
		sources = append(sources, fmt.Sprintf(`SELECT CAST(domain, 'String') AS d, code AS c, toUInt8(%d) AS daily, at, %s, min(first_seen) AS first, max(last_clicked) AS last,
    CAST(uniqCombined64IfMergeState(14)(visitors), 'String') AS state, %s AS seen
FROM %s WHERE %s.at >= {from:DateTime('UTC')} AND %s.at < {to:DateTime('UTC')} GROUP BY d, c, at`,
			flag(a.Daily), each(added(), "toUInt64(sum(%s))", ", "), clickdb.VisitorsMerged, a.Table, a.Table, a.Table))
	}
	return "SELECT * FROM (" + strings.Join(sources, "\nUNION ALL\n") + ") ORDER BY d, c, daily DESC, at"
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

const sqlFinalized = `SELECT CAST(domain, 'String') AS d, code AS c, dimension, value, sum(clicks) AS n, sum(humans) AS h
FROM day_values WHERE at = {from:DateTime('UTC')} AND version = {version:UInt64} GROUP BY d, c, dimension, value ORDER BY d, c, dimension, value`

// Day calls f with what each link and workspace has on a UTC day, by key: the day, and its quarter hours.
// Values are those of the day; those of a day that is not finalized are counted from its clicks. They are with
// its first quarter hour, too, so that a range that begins or ends within the day has them. Visitors
// are a set where ClickHouse has one, else as many synthetic tags as the day had visitors.
func (t Exports) Day(ctx context.Context, day time.Time, f func(*rollup.LinkDelta) error) error {
	err := t.day(clickhouse.Context(ctx, clickhouse.WithSettings(copySettings())), day, f)
	if err != nil {
		return fmt.Errorf("read the sums of %s: %w", day.Format(time.DateOnly), clickdb.Unavailable(ctx, err))
	}
	return nil
}

func (t Exports) day(ctx context.Context, day time.Time, f func(*rollup.LinkDelta) error) error {
	args := clickdb.Span(day, day.Add(clickdb.Day))
	known, err := t.tables.days.Finalized(ctx, day, day.Add(clickdb.Day))
	if err != nil {
		return err
	}
	statement := `SELECT domain AS d, code AS c, dimension, value, clicks AS n, humans AS h FROM (` + strings.Join(finalize.ValuesOfDay(), "\nUNION ALL\n") + `) ORDER BY d, c, dimension, value`
	of := args
	if was, done := known[day]; done {
		statement, of = sqlFinalized, append(of, clickhouse.Named("version", fmt.Sprint(was.Version)))
	}
	rows, err := t.tables.db.Conn.Query(ctx, statement, of...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	values := &valuesOfKeys{rows: rows}
	counts, err := t.tables.db.Conn.Query(ctx, sqlCounted(), args...)
	if err != nil {
		return err
	}
	defer func() { _ = counts.Close() }()
	var one rollup.LinkDelta
	give := func() error {
		if len(one.Buckets) == 0 {
			return nil
		}
		spread(one.Buckets)
		return f(&one)
	}
	for counts.Next() {
		key, bucket, err := t.counted(counts, day, &one, give)
		if err != nil {
			return err
		}
		if bucket.Bucket.Granularity == rollup.Day {
			if err := values.add(key, bucket.Rollup); err != nil {
				return err
			}
		}
		one.Buckets = append(one.Buckets, bucket)
	}
	if err := counts.Err(); err != nil {
		return err
	}
	return give()
}

// spread gives the first quarter hour with clicks what only the day has. The day is the first bucket.
func spread(buckets []rollup.BucketDelta) {
	day := buckets[0].Rollup
	if buckets[0].Bucket.Granularity != rollup.Day {
		return
	}
	var first *rollup.Rollup
	sets := false
	for _, q := range buckets[1:] {
		if sets = sets || q.Rollup.Visitors.Count() > 0; first == nil && q.Rollup.Clicks > 0 {
			first = q.Rollup
		}
	}
	if first == nil {
		return
	}
	if first.Dimensions = day.Dimensions; !sets {
		first.Visitors = day.Visitors
	}
}

// counted reads a row. One of another link than the last gives that one away first.
func (t Exports) counted(rows driver.Rows, day time.Time, one *rollup.LinkDelta, give func() error) (key link.Key, b rollup.BucketDelta, err error) {
	var domain, code, state string
	var daily uint8
	var at, first, last time.Time
	var seen uint64
	r := &rollup.Rollup{}
	if err := rows.Scan(&domain, &code, &daily, &at, &r.Clicks, &r.Humans, &r.Previews, &r.Fallbacks, &r.Refused, &first, &last, &state, &seen); err != nil {
		return key, b, err
	}
	key = link.Key{Domain: link.Domain(domain), Code: link.Code(code)}
	if len(one.Buckets) == 0 || one.Key != key {
		if err := give(); err != nil {
			return key, b, err
		}
		*one = rollup.LinkDelta{Key: key}
	}
	b = rollup.BucketDelta{Bucket: rollup.BucketAt(rollup.Quarter, at), Rollup: r}
	tags, exact := exactTags(state)
	if daily == 1 {
		b.Bucket = rollup.BucketAt(rollup.Day, day)
		one.Total = rollup.Total{Counts: r.Counts, FirstSeen: first.UnixMilli(), LastClicked: max(0, last.UnixMilli())}
		if !exact {
			tags = syntheticTags(seen)
		}
	}
	r.Visitors.Add(tags)
	return key, b, nil
}

// valuesOfKeys are the values of a day, which come by key.
type valuesOfKeys struct {
	rows driver.Rows
	next ImportedValue
	had  bool // next is one
}

// add adds the values of a key to a roll-up. Keys are asked for in their order.
func (v *valuesOfKeys) add(key link.Key, r *rollup.Rollup) error {
	for v.had || v.rows.Next() {
		if !v.had {
			var domain, code string
			if err := v.rows.Scan(&domain, &code, &v.next.Dimension, &v.next.Value.Value, &v.next.Clicks, &v.next.Humans); err != nil {
				return err
			}
			v.next.Key, v.had = link.Key{Domain: link.Domain(domain), Code: link.Code(code)}, true
		}
		switch order := compareKeys(v.next.Key, key); {
		case order > 0:
			return nil
		case order < 0 || v.next.Dimension >= clicks.NumDimensions:
		default:
			r.Dimensions[v.next.Dimension] = append(r.Dimensions[v.next.Dimension], v.next.Value)
		}
		if v.had = false; v.next.Dimension == finalize.SeenDimension && v.next.Key == key && r.Visitors.Count() < v.next.Clicks {
			r.Visitors = rollup.Visitors{}
			r.Visitors.Add(syntheticTags(v.next.Clicks))
		}
	}
	return v.rows.Err()
}

func compareKeys(a, b link.Key) int {
	if n := strings.Compare(string(a.Domain), string(b.Domain)); n != 0 {
		return n
	}
	return strings.Compare(string(a.Code), string(b.Code))
}

// The kinds of a state of uniqCombined64 that list what was seen; the third has registers. States are
// stored on disks in this form.
const (
	stateSmall  = 1
	stateMedium = 2
)

// exactTags returns the tags of a state, unless it is an estimate.
func exactTags(state string) (tags []uint64, exact bool) {
	b := []byte(state)
	if len(b) == 0 || b[0] != stateSmall && b[0] != stateMedium {
		return nil, false
	}
	n, size := binary.Uvarint(b[1:])
	if b = b[1+max(size, 0):]; size <= 0 || n > uint64(len(b)/8) || uint64(len(b)) != 8*n {
		return nil, false
	}
	for ; len(b) > 0; b = b[8:] {
		tags = append(tags, unhash(binary.LittleEndian.Uint64(b)))
	}
	slices.Sort(tags)
	return tags, true
}

// unhash is the inverse of hash64.
func unhash(x uint64) uint64 {
	x ^= x >> 33
	x *= 0x9cb4b2f8129337db
	x ^= x >> 33
	x *= 0x4f74430c22a54005
	return x ^ x>>33
}

// hash64 is the hash of uniqCombined64, the end of MurmurHash3.
func hash64(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// syntheticTags are n tags of no real visitor, uniform as hashes are: they count as n visitors.
func syntheticTags(n uint64) []uint64 {
	tags := make([]uint64, n)
	for i := range tags {
		tags[i] = hash64(uint64(i) + 1)
	}
	return tags
}
