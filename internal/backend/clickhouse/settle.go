package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/clicks"
)

const (
	// settleAfter is how long after its end a day is added up first: most of what was on its
	// way has come by then.
	settleAfter = 15 * time.Minute
	// settleAgain is how long it stays as it is although clicks of it came late.
	settleAgain = time.Hour
	// settleLimit bounds one statement: of a dimension of a day.
	settleLimit = time.Hour
	// manyClicks are those of a day whose dimensions are added up one after the other.
	manyClicks = 2_000_000
	// forgetAfter is when rows go that a later version took the place of, or that nobody
	// finished: who writes them has long ended.
	forgetAfter = 24 * time.Hour
)

// settlement is what a day was added up to.
type settlement struct {
	version uint64 // when it began, in nanoseconds, the last million of them at random
	clicks  uint64 // rows of clicks that there were
}

// Settle adds up what the clicks of days that are over are told apart by, where that was not
// done yet or clicks came since, and returns of how many days. Until then it is counted from
// the clicks themselves. A day is added up whole and shown at once, so that several may do
// it at the same time, and who is killed leaves nothing behind that counts. now is the
// caller's present.
//
// The values of a dimension are too many to be added up block by block, as counts are: a
// click has nine of them, for its link and for its workspace.
func (s *Store) Settle(ctx context.Context, now time.Time) (days int, err error) {
	there, err := s.rowsOfDays(ctx)
	if err != nil {
		return 0, fmt.Errorf("settle days: %w", unavailable(ctx, err))
	}
	known, err := s.settled(ctx, time.Time{}, now)
	if err != nil {
		return 0, fmt.Errorf("settle days: %w", unavailable(ctx, err))
	}
	for _, at := range slices.SortedFunc(maps.Keys(there), time.Time.Compare) {
		was, done := known[at]
		switch {
		case now.Sub(at.Add(day)) < settleAfter:
			continue
		case !done:
		case there[at] <= was.clicks || at.Before(now.Add(-s.config.KeepLeast)):
			continue // nothing came; or some have gone, and adding up would lose them
		case now.Sub(time.Unix(0, int64(was.version))) < settleAgain:
			continue
		}
		if err := s.settleDay(ctx, at, settlement{was.version, there[at]}, now); err != nil {
			return days, err
		}
		days++
	}
	return days, nil
}

// rowsOfDays returns how many rows of clicks each day has, from what the server knows of its
// files.
func (s *Store) rowsOfDays(ctx context.Context) (map[time.Time]uint64, error) {
	rows, err := s.conn.Query(ctx, `SELECT partition, sum(rows) FROM system.parts
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

// settled returns the days from a time on, and before another, that are added up.
func (s *Store) settled(ctx context.Context, from, to time.Time) (map[time.Time]settlement, error) {
	if from.Before(time.Unix(0, 0)) {
		from = time.Unix(0, 0)
	}
	rows, err := s.conn.Query(ctx, `SELECT at, max(version), argMax(clicks, version) FROM settled
WHERE at >= {from:DateTime('UTC')} AND at < {to:DateTime('UTC')} GROUP BY at`,
		clickhouse.Named("from", seconds(from)), clickhouse.Named("to", seconds(to)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	all := map[time.Time]settlement{}
	for rows.Next() {
		var at time.Time
		var one settlement
		if err := rows.Scan(&at, &one.version, &one.clicks); err != nil {
			return nil, err
		}
		all[at.UTC()] = one
	}
	return all, rows.Err()
}

// settledLately is settled for questions, which may be a second late: what a version left behind is
// kept for a day, and what is not known to be settled is counted from the clicks.
func (s *Store) settledLately(ctx context.Context, from, to time.Time) (map[time.Time]settlement, error) {
	known := s.lately.Load()
	if known == nil || time.Since(known.asked) > time.Second {
		asked := time.Now()
		days, err := s.settled(ctx, time.Time{}, time.UnixMilli(mostMillis))
		if err != nil {
			return nil, err
		}
		known = &settledDays{days, asked}
		s.lately.Store(known)
	}
	within := map[time.Time]settlement{}
	for at, one := range known.days {
		if !at.Before(from) && at.Before(to) {
			within[at] = one
		}
	}
	return within, nil
}

// settledDays are all of them, and when that was asked.
type settledDays struct {
	days  map[time.Time]settlement
	asked time.Time
}

// settleDay adds up a day; was has the version of before and the rows that there are now.
func (s *Store) settleDay(ctx context.Context, at time.Time, was settlement, now time.Time) error {
	settings := clickhouse.Settings{
		"max_execution_time": int(settleLimit / time.Second), "insert_deduplicate": 0,
		// Of a large day some work goes to the disk.
		"max_bytes_before_external_group_by": 1 << 30, "max_bytes_before_external_sort": 1 << 30,
		"max_bytes_ratio_before_external_group_by": 0, "max_bytes_ratio_before_external_sort": 0,
	}
	version := max(was.version+1, uint64(now.UnixNano())&^(1<<20-1)|rand.Uint64N(1<<20))
	args := append(span(at, at.Add(day)), clickhouse.Named("version", fmt.Sprint(version)))
	err := func() error {
		ctx := clickhouse.Context(ctx, clickhouse.WithSettings(settings))
		statements := valuesOfDay()
		if was.clicks < manyClicks { // all of it fits into memory at once
			statements = []string{strings.Join(statements, "\nUNION ALL\n")}
		}
		for _, statement := range statements {
			err := s.conn.Exec(ctx, "INSERT INTO day_values (domain, code, dimension, at, value, clicks, humans, version) SELECT *, {version:UInt64} FROM ("+statement+")", args...)
			if err != nil {
				return err
			}
		}
		err := s.conn.Exec(ctx, "INSERT INTO settled SELECT {from:DateTime('UTC')}, {version:UInt64}, {clicks:UInt64}",
			append(args, clickhouse.Named("clicks", fmt.Sprint(was.clicks)))...)
		s.lately.Store(nil)
		return errors.Join(err, s.forget(ctx, at, version))
	}()
	if err != nil {
		return fmt.Errorf("settle %s: %w", at.Format(time.DateOnly), unavailable(ctx, err))
	}
	return nil
}

// forget removes rows of a day that no version names any more.
func (s *Store) forget(ctx context.Context, at time.Time, version uint64) error {
	args := append(span(at, at.Add(day)), clickhouse.Named("before", fmt.Sprint(version-uint64(forgetAfter))))
	var n uint64
	err := s.conn.QueryRow(ctx, "SELECT count() FROM day_values WHERE at = {from:DateTime('UTC')} AND version < {before:UInt64}", args...).Scan(&n)
	if err != nil || n == 0 {
		return err
	}
	return s.conn.Exec(ctx, "ALTER TABLE day_values DELETE WHERE at = {from:DateTime('UTC')} AND version < {before:UInt64}", args...)
}

// valuesOfDay select what the clicks of a span, which is a day, come to: of each dimension, and
// in visitors, by link and by workspace.
func valuesOfDay() (all []string) {
	for _, owner := range [][3]string{
		{"CAST(clicks.domain, 'String')", "clicks.code", "1"}, {"'*'", "CAST(workspace, 'String')", "workspace != ''"},
	} {
		for d := range clicks.Dimension(clicks.NumDimensions) {
			all = append(all, valuesOf(d, owner[0], owner[1], owner[2]))
		}
		all = append(all, visitorsOf(owner[0], owner[1], owner[2]))
	}
	return all
}

// valuesOf keeps the most clicked values of an owner and sums the rest up, as
// clicks.LimitValues does: strangers choose referrers.
func valuesOf(d clicks.Dimension, domain, code, where string) string {
	return fmt.Sprintf(`SELECT domain, code, toUInt8(%d) AS dimension, {from:DateTime('UTC')} AS at, value, sum(n) AS clicks, sum(h) AS humans
FROM (
    SELECT domain, code, if(row_number() OVER (PARTITION BY domain, code ORDER BY n DESC, of) <= %d, of, '%s') AS value, n, h
    FROM (
        SELECT %s AS domain, %s AS code, CAST(%s, 'String') AS of, count() AS n, countIf(NOT bot) AS h
        FROM clicks
        WHERE %s AND %s AND %s AND of != ''
        GROUP BY domain, code, of
    )
)
GROUP BY domain, code, value`, d, clicks.MaxValues, clicks.Other, domain, code, d, inSpan, told(), where)
}

// told are the clicks that values are counted of.
func told() string { return fmt.Sprintf("outcome = %d AND NOT preview", clicks.Redirected) }

// inSpan are the clicks of a span. Its ends are as fine as the time of a click: compared with
// whole seconds, the index of the server leaves out parts of which all clicks are in the last
// second before the end.
const inSpan = "time >= {from:DateTime64(3, 'UTC')} AND time < {to:DateTime64(3, 'UTC')}"

// span spells times as parameters.
func span(from, to time.Time) []any {
	return []any{clickhouse.Named("from", seconds(from)), clickhouse.Named("to", seconds(to))}
}

// settledDrift is what is wrong with a day that was added up; "" is not off.
func (s *Store) settledDrift(ctx context.Context, at time.Time, was settlement) (d Drift, err error) {
	whole := strings.Join(valuesOfDay(), "\nUNION ALL\n")
	err = s.conn.QueryRow(ctx, `SELECT toUInt64(sum(whole)), countIf(n != 0 OR h != 0), toUInt64(sum(abs(n) + abs(h))) FROM (
    SELECT sum(n) AS n, sum(h) AS h, sum(whole) AS whole FROM (
        SELECT domain, code, dimension, value, toInt64(clicks) AS n, toInt64(humans) AS h, if(dimension = {seen:UInt8}, 0, clicks) AS whole FROM (`+whole+`)
        UNION ALL
        SELECT domain, code, dimension, value, -toInt64(clicks), -toInt64(humans), 0 FROM day_values
        WHERE at = {from:DateTime('UTC')} AND version = {version:UInt64}
    ) GROUP BY domain, code, dimension, value)`,
		append(span(at, at.Add(day)), clickhouse.Named("version", fmt.Sprint(was.version)), clickhouse.Named("seen", fmt.Sprint(seenDimension)))...).Scan(&d.Clicks, &d.Rows, &d.Off)
	d.Table = "day_values"
	return d, err
}
