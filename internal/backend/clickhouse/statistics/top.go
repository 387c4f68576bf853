package statistics

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
	"curt/internal/link"
)

// Top implements analytics.Reader.
func (r *Reader) Top(ctx context.Context, scope analytics.Scope, n int, now time.Time, dimensions ...clicks.Dimension) (top [][]analytics.Row, err error) {
	err = r.db.Query(ctx, "top", func(ctx context.Context) error {
		top, err = r.top(ctx, scope, n, now, dimensions)
		return err
	})
	return top, err
}

func (r *Reader) top(ctx context.Context, scope analytics.Scope, n int, now time.Time, dimensions []clicks.Dimension) ([][]analytics.Row, error) {
	if scope.From.IsZero() {
		scope.From = time.Unix(0, 0)
	}
	plan, err := scope.Plan(0, scope.From, now)
	if err != nil {
		return nil, err
	}
	top := make([][]analytics.Row, len(dimensions))
	for i := range top {
		top[i] = []analytics.Row{}
	}
	statement, args, err := r.values(ctx, scope.Key, plan.From, plan.To, now, dimensions)
	if err != nil {
		return nil, err
	}
	rows, err := r.db.Conn.Query(ctx, statement, clickdb.Named(scope.Key, append(args, clickhouse.Named("n", fmt.Sprint(max(n, 0))))...)...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var i uint8
		var value string
		var sum, humans uint64
		if err := rows.Scan(&i, &value, &sum, &humans); err != nil {
			return nil, err
		}
		top[i] = append(top[i], analytics.Row{Value: value, Clicks: sum, Humans: humans})
	}
	return top, rows.Err()
}

// values selects the values of a time, with the place of their dimension: of days that are
// finalized as they were added up, of the others, and of parts of days, from the clicks
// themselves. Where those are no longer kept, parts of days are whole.
func (r *Reader) values(ctx context.Context, k link.Key, from, to, now time.Time, dimensions []clicks.Dimension) (statement string, args []any, err error) {
	if kept := now.Add(-r.db.Config.MinRetention); from.Before(kept) {
		from = from.Truncate(clickdb.Day)
		if to.Before(kept) {
			to = to.Add(clickdb.Day - 1).Truncate(clickdb.Day)
		}
	}
	known, err := r.days.FinalizedRecently(ctx, from, to)
	if err != nil {
		return "", nil, err
	}
	var begins []uint32
	var versions []uint64
	var open []string // spans that are not finalized
	at := from
	leave := func(until time.Time) {
		if at.Before(until) {
			open = append(open, fmt.Sprintf("time >= toDateTime64(%d, 3, 'UTC') AND time < toDateTime64(%d, 3, 'UTC')", at.Unix(), until.Unix()))
		}
	}
	for _, begin := range slices.SortedFunc(maps.Keys(known), time.Time.Compare) {
		if end := begin.Add(clickdb.Day); !end.After(to) {
			begins, versions = append(begins, uint32(begin.Unix())), append(versions, known[begin].Version)
			leave(begin)
			at = end
		}
	}
	leave(to)
	var sources []string
	if len(versions) > 0 {
		sources, args = append(sources, valuesFinalized(dimensions)), append(clickdb.Span(from, to), pairs(begins, versions)...)
	}
	if len(open) > 0 {
		sources = append(sources, valuesOpen(k, strings.Join(open, " OR "), dimensions))
	}
	return `SELECT place, value, sum(n) AS c, sum(h) FROM (` + strings.Join(sources, "\nUNION ALL\n") + `)
GROUP BY place, value ORDER BY place, c DESC, value LIMIT {n:UInt32} BY place`, args, nil
}

// valuesFinalized selects the values of finalized days, as they were added up.
func valuesFinalized(dimensions []clicks.Dimension) string {
	places, numbers := make([]uint8, clicks.NumDimensions), make([]uint8, len(dimensions))
	for i, d := range dimensions {
		places[d], numbers[i] = uint8(i), uint8(d)
	}
	return fmt.Sprintf(`SELECT arrayElement(%s, dimension + 1) AS place, value, sum(clicks) AS n, sum(humans) AS h FROM day_values
WHERE %s AND dimension IN (%s) AND at >= {from:DateTime('UTC')} AND at < {to:DateTime('UTC')} AND %s
GROUP BY dimension, value`, clickdb.List(places), clickdb.OfKey, strings.Trim(clickdb.List(numbers), "[]"), live)
}

// valuesOpen counts the values of the clicks that a condition selects, all dimensions in one
// walk: in a row of one of the grouping sets the others are empty.
func valuesOpen(k link.Key, where string, dimensions []clicks.Dimension) string {
	owner := clickdb.OfKey
	if clicks.IsGroup(k) {
		owner = "workspace = {code:String}"
	}
	sets, ofOthers, texts := make([]string, len(dimensions)), make([]string, len(dimensions)), make([]string, len(dimensions))
	for i, d := range dimensions {
		sets[i], ofOthers[i], texts[i] = fmt.Sprintf("(%s)", d), fmt.Sprintf("grouping(%s)", d), fmt.Sprintf("CAST(%s, 'String')", d)
	}
	return fmt.Sprintf(`SELECT toUInt8(indexOf([%s], 0) - 1) AS place, concat(%s, '') AS value, count() AS n, countIf(NOT bot) AS h FROM clicks
WHERE %s AND %s AND (%s) GROUP BY GROUPING SETS (%s) HAVING value != ''`, strings.Join(ofOthers, ", "), strings.Join(texts, ", "), owner, clickdb.Counted(), where, strings.Join(sets, ", "))
}

// firstSeen returns when the link was first asked for; zero = never. It is read only where
// the scope leaves its beginning open.
func (r *Reader) firstSeen(ctx context.Context, scope analytics.Scope) (time.Time, error) {
	if !scope.From.IsZero() {
		return time.Time{}, nil
	}
	var first time.Time
	var days uint64
	err := r.db.Conn.QueryRow(ctx, "SELECT min(first_seen), count() FROM days WHERE "+clickdb.OfKey, clickdb.Named(scope.Key)...).Scan(&first, &days)
	if err != nil || days == 0 {
		return time.Time{}, err
	}
	return first, nil
}
