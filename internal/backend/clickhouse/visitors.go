package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/clicks"
	"curt/internal/link"
)

// seenDimension is where day_values has how many visitors a settled day had, without a value. A
// busy link has states of 12 KiB, and merging a year of them takes longer than all the rest.
const seenDimension = 255

// visitorsOf counts the visitors of a span, which is a day, by link or by workspace, from the
// clicks, as the views do.
func visitorsOf(domain, code, where string) string {
	return fmt.Sprintf(`SELECT %s AS domain, %s AS code, toUInt8(%d) AS dimension, {from:DateTime('UTC')} AS at, '' AS value,
    uniqCombined64(14)(visitor) AS clicks, toUInt64(0) AS humans
FROM clicks
WHERE %s AND %s AND %s AND NOT bot AND visitor != 0
GROUP BY domain, code`, domain, code, seenDimension, inSpan, where, told())
}

// live is where the rows of day_values lie that a settlement names; pairs are its parameters.
const live = `(toUInt32(at), version) IN (SELECT pair.1, pair.2 FROM (SELECT arrayJoin(arrayZip({begins:Array(UInt32)}, {versions:Array(UInt64)})) AS pair))`

func pairs(begins []uint32, versions []uint64) []any {
	return []any{clickhouse.Named("begins", list(begins)), clickhouse.Named("versions", list(versions))}
}

// settledVisitors returns how many visitors the settled days from a time on had, and before
// another, by the second that they begin at. Rows of versions that no settlement names are few, and
// passed over here: a list of those that one names would be longer than what is read.
func (s *Store) settledVisitors(ctx context.Context, k link.Key, from, to time.Time) (map[uint32]uint64, error) {
	known, err := s.settledLately(ctx, from, to)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	seen, versions := make(map[uint32]uint64, len(known)), make(map[uint32]uint64, len(known))
	for at, one := range known {
		begin := uint32(at.Unix())
		seen[begin], versions[begin] = 0, one.version
	}
	rows, err := s.conn.Query(ctx, fmt.Sprintf(`SELECT toUInt32(at), version, clicks FROM day_values
WHERE %s AND dimension = %d AND at >= {from:DateTime('UTC')} AND at < {to:DateTime('UTC')}`, ofKey, seenDimension),
		named(k, span(time.Unix(max(from.Unix(), 0), 0), to)...)...)
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

// visitorDays adds up the visitors of each UTC day of some spans: of settled days as they were
// counted, of the others, and of parts of days, from their states.
func (s *Store) visitorDays(ctx context.Context, k link.Key, spans []clicks.Span) (sum uint64, err error) {
	if len(spans) == 0 {
		return 0, nil
	}
	first, last := spans[0], spans[len(spans)-1]
	from := clicks.Bucket{Granularity: first.Granularity, Ordinal: first.First}.Start()
	to := clicks.Bucket{Granularity: last.Granularity, Ordinal: last.Last}.End()
	seen, err := s.settledVisitors(ctx, k, from, to)
	if err != nil {
		return 0, err
	}
	maps.DeleteFunc(seen, func(begin uint32, _ uint64) bool { return !wholly(spans, begin) })
	for _, n := range seen {
		sum += n
	}
	// A quarter hour that begins when a counted day does would be of that day, and is none of the spans.
	source, args := within(spans, "at, visitors", "days", "quarters", ofKey+" AND "+notOf(seen))
	var open uint64
	err = s.conn.QueryRow(ctx, `SELECT sum(seen) FROM (SELECT toStartOfDay(at, 'UTC') AS day, `+visitorsMerged+` AS seen FROM (`+source+`) GROUP BY day)`,
		named(k, args...)...).Scan(&open)
	return sum + open, err
}

// notOf is true of what does not begin when one of some days does. Days that follow each other,
// which most do, are one span: so the others are found without reading those.
func notOf(days map[uint32]uint64) string {
	const width = uint32(day / time.Second)
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
func wholly(spans []clicks.Span, begin uint32) bool {
	at := clicks.BucketAt(clicks.Day, time.Unix(int64(begin), 0)).Ordinal
	return slices.ContainsFunc(spans, func(s clicks.Span) bool { return s.Granularity == clicks.Day && s.First <= at && at <= s.Last })
}
