package clickhouse

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// watchLimit bounds a look at one table.
const watchLimit = time.Minute

// heaps are the sums that the links of an hour are put into: more than a few errors that
// cancel each other out in all of them are not by chance.
const heaps = 1024

// Watch compares what is added up of an hour with the clicks themselves, as [Store.Verify] does,
// but in sums of many links each, so that it may be done all the time: the server reads the
// clicks of the hour once for each table, in one thread and with at most a gigabyte of memory.
// Days are compared with the quarter hours of the day. Drift.Rows are sums that are off.
func (s *Store) Watch(ctx context.Context, hour, now time.Time) ([]Drift, error) {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"max_execution_time": int(watchLimit / time.Second), "max_threads": 1, "max_memory_usage": 1 << 30,
		"max_bytes_before_external_group_by": 1 << 28, "max_bytes_ratio_before_external_group_by": 0,
	}))
	var all []Drift
	for _, a := range aggregates() {
		if a.tooOld(hour, now, s.config.KeepLeast) || a.gone(hour, now) {
			continue
		}
		d := Drift{Table: a.Table}
		if err := s.conn.QueryRow(ctx, a.sums(), span(a.buckets(hour))...).Scan(&d.Clicks, &d.Rows, &d.Off); err != nil {
			return nil, fmt.Errorf("watch %s: %s: %w", seconds(hour), a.Table, unavailable(ctx, err))
		}
		all = append(all, d)
	}
	return all, nil
}

// sums compares sums of a table.
func (a aggregate) sums() string {
	heap := fmt.Sprintf("cityHash64(domain, code) %% %d AS heap, ", heaps)
	should := "(" + a.query("(SELECT * FROM clicks WHERE "+inSpan+")") + ")"
	const within = " WHERE at >= {from:DateTime('UTC')} AND at < {to:DateTime('UTC')}"
	if a.Daily {
		should = "quarters" + within
	}
	return `SELECT toUInt64(sum(whole)), countIf(` + each(added(), "off_%s != 0", " OR ") + `), toUInt64(sum(` + each(added(), "abs(off_%s)", " + ") + `)) FROM (
SELECT heap, sum(whole) AS whole, ` + each(added(), "sum(%s) AS off_%[1]s", ", ") + ` FROM (
SELECT ` + heap + `clicks AS whole, ` + strings.Join(added(), ", ") + ` FROM (SELECT CAST(domain, 'String') AS domain, code, ` + strings.Join(added(), ", ") + ` FROM ` + should + `)
UNION ALL
SELECT ` + heap + `0, ` + each(added(), "-%s", ", ") + ` FROM (SELECT CAST(domain, 'String') AS domain, code, ` + strings.Join(added(), ", ") + ` FROM ` + a.Table + within + `)
) GROUP BY heap)`
}

// Unsettled returns how many days are over that nobody has added up. now is the caller's present.
func (s *Store) Unsettled(ctx context.Context, now time.Time) (days int, err error) {
	ctx, cancel := ask(ctx)
	defer cancel()
	there, err := s.rowsOfDays(ctx)
	if err != nil {
		return 0, fmt.Errorf("days that are not settled: %w", unavailable(ctx, err))
	}
	known, err := s.settled(ctx, time.Time{}, now)
	if err != nil {
		return 0, fmt.Errorf("days that are not settled: %w", unavailable(ctx, err))
	}
	for at := range there {
		if _, done := known[at]; !done && now.Sub(at.Add(day)) >= settleAfter {
			days++
		}
	}
	return days, nil
}
