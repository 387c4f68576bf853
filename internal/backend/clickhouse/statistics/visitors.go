package statistics

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/finalize"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// live is where the rows of day_values lie that a Finalized names; pairs are its parameters.
const live = `(toUInt32(at), version) IN (SELECT pair.1, pair.2 FROM (SELECT arrayJoin(arrayZip({begins:Array(UInt32)}, {versions:Array(UInt64)})) AS pair))`

func pairs(begins []uint32, versions []uint64) []any {
	return []any{clickhouse.Named("begins", clickdb.List(begins)), clickhouse.Named("versions", clickdb.List(versions))}
}

// finalizedVisitors returns how many visitors the finalized days from a time on had, and before
// another, by the second that they begin at. Rows of versions that no Finalized names are few, and
// passed over here: a list of those that one names would be longer than what is read.
func (r *Reader) finalizedVisitors(ctx context.Context, k link.Key, from, to time.Time) (map[uint32]uint64, error) {
	known, err := r.days.FinalizedRecently(ctx, from, to)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	seen, versions := make(map[uint32]uint64, len(known)), make(map[uint32]uint64, len(known))
	for at, one := range known {
		begin := uint32(at.Unix())
		seen[begin], versions[begin] = 0, one.Version
	}
	rows, err := r.db.Conn.Query(ctx, fmt.Sprintf(`SELECT toUInt32(at), version, clicks FROM day_values
WHERE %s AND dimension = %d AND at >= {from:DateTime('UTC')} AND at < {to:DateTime('UTC')}`, clickdb.OfKey, finalize.SeenDimension),
		clickdb.Named(k, clickdb.Span(time.Unix(max(from.Unix(), 0), 0), to)...)...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var begin uint32
		var version, n uint64
		if err := rows.Scan(&begin, &version, &n); err != nil {
			return nil, err
		}
		if version == versions[begin] {
			seen[begin] += n
		}
	}
	return seen, rows.Err()
}

// visitorDays adds up the visitors of each UTC day of some spans: of finalized days as they were
// counted, of the others, and of parts of days, from their states.
func (r *Reader) visitorDays(ctx context.Context, k link.Key, spans []rollup.Span) (sum uint64, err error) {
	if len(spans) == 0 {
		return 0, nil
	}
	first, last := spans[0], spans[len(spans)-1]
	from := rollup.Bucket{Granularity: first.Granularity, Ordinal: first.First}.Start()
	to := rollup.Bucket{Granularity: last.Granularity, Ordinal: last.Last}.End()
	seen, err := r.finalizedVisitors(ctx, k, from, to)
	if err != nil {
		return 0, err
	}
	maps.DeleteFunc(seen, func(begin uint32, _ uint64) bool { return !wholly(spans, begin) })
	for _, n := range seen {
		sum += n
	}
	// A quarter hour that begins when a counted day does would be of that day, and is none of the spans.
	source, args := within(spans, "at, visitors", "days", "quarters", clickdb.OfKey+" AND "+notOf(seen))
	var open uint64
	err = r.db.Conn.QueryRow(ctx, `SELECT sum(seen) FROM (SELECT toStartOfDay(at, 'UTC') AS day, `+clickdb.VisitorsMerged+` AS seen FROM (`+source+`) GROUP BY day)`,
		clickdb.Named(k, args...)...).Scan(&open)
	return sum + open, err
}

// notOf is true of what does not begin when one of some days does. Days that follow each other,
// which most do, are one span: so the others are found without reading those.
func notOf(days map[uint32]uint64) string {
	const width = uint32(clickdb.Day / time.Second)
	begins := slices.Sorted(maps.Keys(days))
	conditions := []string{"true"}
	for i := 0; i < len(begins); {
		first, last := begins[i], begins[i]
		for i++; i < len(begins) && begins[i] == last+width; i++ {
			last = begins[i]
		}
		conditions = append(conditions, fmt.Sprintf("(at < toDateTime(%d, 'UTC') OR at >= toDateTime(%d, 'UTC'))", first, last+width))
	}
	return strings.Join(conditions, " AND ")
}

// wholly reports whether the day that begins at a second is one of the spans.
func wholly(spans []rollup.Span, begin uint32) bool {
	at := rollup.BucketAt(rollup.Day, time.Unix(int64(begin), 0)).Ordinal
	return slices.ContainsFunc(spans, func(s rollup.Span) bool { return s.Granularity == rollup.Day && s.First <= at && at <= s.Last })
}
