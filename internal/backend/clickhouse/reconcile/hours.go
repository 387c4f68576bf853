package reconcile

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
)

// Hour identifies the clicks of an hour, and says whether its sums are theirs.
type Hour struct {
	Rows, Hash        uint64 // of the clicks; equal = the same clicks, in any order
	minutes, quarters uint64 // 0 = the sums are right
	days              uint64 // the hours of a day sum to 0 if its sums are right
}

// Off reports whether minutes or quarter hours differ from the clicks.
func (h Hour) Off() bool { return h.minutes|h.quarters != 0 }

// weigh gives each count of a row a weight, so that one number stands for all five.
const weigh = "clicks + 3 * humans + 7 * previews + 31 * fallbacks + 127 * refused"

// hashed is the hash of a bucket of a link or of a workspace.
func hashed(domain, code, at string) string {
	return fmt.Sprintf("cityHash64(CAST(%s, 'String'), CAST(%s, 'String'), toUInt32(%s))", domain, code, at)
}

// Hours returns the hours of a span that have clicks or sums, in one read of each table: sums of hashes
// of buckets, weighted with their counts, are the same for clicks and for what is added up of them.
// No block of these hours may be on its way.
func (t *Tables) Hours(ctx context.Context, from, to time.Time) (map[time.Time]Hour, error) {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_execution_time": int(readLimit / time.Second), "max_threads": 1}))
	rows, err := t.db.Conn.Query(ctx, hoursOfSpan(), clickdb.Span(from, to)...)
	if err != nil {
		return nil, fmt.Errorf("read the sums of hours: %w", clickdb.Unavailable(ctx, err))
	}
	defer func() { _ = rows.Close() }()
	all := map[time.Time]Hour{}
	for rows.Next() {
		var at time.Time
		var h Hour
		if err := rows.Scan(&at, &h.Rows, &h.Hash, &h.minutes, &h.quarters, &h.days); err != nil {
			return nil, fmt.Errorf("read the sums of hours: %w", err)
		}
		all[at.UTC()] = h
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the sums of hours: %w", clickdb.Unavailable(ctx, err))
	}
	return all, nil
}

// DayOff reports whether the sums of a UTC day, all of whose hours are given, differ from its clicks.
func DayOff(hours map[time.Time]Hour, day time.Time) bool {
	sum := uint64(0)
	for _, at := range hoursOf(day) {
		sum += hours[at].days
	}
	return sum != 0
}

func hoursOfSpan() string {
	columns := []string{"minutes", "quarters", "days"}
	sums, places := make([]string, len(columns)), make([]string, len(columns))
	sources := make([]string, 0, len(columns))
	for i, a := range clickdb.Aggregates() {
		bucket := fmt.Sprintf("toDateTime(%s(time, 'UTC'), 'UTC')", a.Width)
		sums[i] = fmt.Sprintf("sum(weight * (%s + if(workspace = '', 0, %s))) AS %s",
			hashed("clicks.domain", "clicks.code", bucket), hashed("'*'", "workspace", bucket), columns[i])
		for j := range places {
			if places[j] = "toUInt64(0)"; i == j {
				places[j] = fmt.Sprintf("toUInt64(-toInt64(sum(%s * toUInt64(%s))))", hashed("domain", "code", "at"), weigh)
			}
		}
		sources = append(sources, fmt.Sprintf(`SELECT toStartOfHour(at, 'UTC') AS hour, toUInt64(0), toUInt64(0), %s FROM %s
WHERE at >= {from:DateTime('UTC')} AND at < {to:DateTime('UTC')} GROUP BY hour`, strings.Join(places, ", "), a.Table))
	}
	return fmt.Sprintf(`SELECT hour, sum(n), sum(hash), sum(minutes), sum(quarters), sum(days) FROM (
SELECT toStartOfHour(toDateTime(time, 'UTC'), 'UTC') AS hour, count() AS n, sum(cityHash64(instance, sequence)) AS hash, %s FROM (
    SELECT *, NOT preview AND outcome IN (%[2]d, %[3]d) AS counted,
        toUInt64(counted + 3 * (counted AND NOT bot) + 7 * (preview AND outcome IN (%[2]d, %[3]d)) + 31 * (NOT preview AND outcome = %[4]d) + 127 * (NOT preview AND outcome = %[5]d)) AS weight
    FROM clicks WHERE %[6]s
) AS clicks GROUP BY hour
UNION ALL
%[7]s
) GROUP BY hour`, strings.Join(sums, ", "), clicks.Redirected, clicks.Orphan, clicks.FellBack, clicks.Refused, clickdb.InSpan, strings.Join(sources, "\nUNION ALL\n"))
}
