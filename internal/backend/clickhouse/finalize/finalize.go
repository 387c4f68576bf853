// Package finalize adds up the values of days that are over: countries, referrers and the other
// dimensions, and visitors.
package finalize

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
)

const (
	// finalizeAfter is how long after its end a day is added up first: most of what was on its
	// way has come by then.
	finalizeAfter = 15 * time.Minute
	// repeatAfter is how long it stays as it is although clicks of it came late.
	repeatAfter = time.Hour
	// finalizeLimit bounds one statement: of a dimension of a day.
	finalizeLimit = time.Hour
	// ManyClicks are those of a day whose dimensions are added up one after the other.
	ManyClicks = 2_000_000
	// forgetAfter is when rows go that a later version took the place of, or that nobody
	// finished: who writes them has long ended.
	forgetAfter = 24 * time.Hour
)

// Days finalizes days. All methods may be called by many goroutines at once.
type Days struct {
	db     *clickdb.DB
	lately atomic.Pointer[recent]
}

// New returns the days of a database.
func New(db *clickdb.DB) *Days { return &Days{db: db} }

// Day is what a day was added up to.
type Day struct {
	Version uint64 // when it began, in nanoseconds, the last million of them at random
	Clicks  uint64 // rows of clicks that there were
}

// FinalizeDays adds up what the clicks of days that are over are told apart by, where that was not
// done yet or clicks came since, and returns of how many days. Until then it is counted from
// the clicks themselves. A day is added up whole and shown at once, so that several may do
// it at the same time, and who is killed leaves nothing behind that counts. now is the
// caller's present.
//
// The values of a dimension are too many to be added up block by block, as counts are: a
// click has nine of them, for its link and for its workspace.
func (d *Days) FinalizeDays(ctx context.Context, now time.Time) (days int, err error) {
	there, err := d.db.RowsOfDays(ctx)
	if err != nil {
		return 0, fmt.Errorf("finalize days: %w", clickdb.Unavailable(ctx, err))
	}
	known, err := d.Finalized(ctx, time.Time{}, now)
	if err != nil {
		return 0, fmt.Errorf("finalize days: %w", clickdb.Unavailable(ctx, err))
	}
	for _, at := range slices.SortedFunc(maps.Keys(there), time.Time.Compare) {
		was, done := known[at]
		switch {
		case now.Sub(at.Add(clickdb.Day)) < finalizeAfter:
			continue
		case !done:
		case there[at] <= was.Clicks || at.Before(now.Add(-d.db.Config.MinRetention)):
			continue // nothing came; or some have gone, and adding up would lose them
		case now.Sub(time.Unix(0, int64(was.Version))) < repeatAfter:
			continue
		}
		if err := d.FinalizeDay(ctx, at, Day{was.Version, there[at]}, now); err != nil {
			return days, err
		}
		days++
	}
	return days, nil
}

// Finalized returns the days from a time on, and before another, that are added up.
func (d *Days) Finalized(ctx context.Context, from, to time.Time) (map[time.Time]Day, error) {
	if from.Before(time.Unix(0, 0)) {
		from = time.Unix(0, 0)
	}
	rows, err := d.db.Conn.Query(ctx, `SELECT at, max(version), argMax(clicks, version) FROM settled
WHERE at >= {from:DateTime('UTC')} AND at < {to:DateTime('UTC')} GROUP BY at`,
		clickhouse.Named("from", clickdb.Seconds(from)), clickhouse.Named("to", clickdb.Seconds(to)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	all := map[time.Time]Day{}
	for rows.Next() {
		var at time.Time
		var one Day
		if err := rows.Scan(&at, &one.Version, &one.Clicks); err != nil {
			return nil, err
		}
		all[at.UTC()] = one
	}
	return all, rows.Err()
}

// FinalizedRecently is Finalized for queries, which may be a second late: what a version left behind is
// kept for a day, and what is not known to be finalized is counted from the clicks.
func (d *Days) FinalizedRecently(ctx context.Context, from, to time.Time) (map[time.Time]Day, error) {
	known := d.lately.Load()
	if known == nil || time.Since(known.asked) > time.Second {
		asked := time.Now()
		days, err := d.Finalized(ctx, time.Time{}, time.UnixMilli(clickdb.MostMillis))
		if err != nil {
			return nil, err
		}
		known = &recent{days, asked}
		d.lately.Store(known)
	}
	within := map[time.Time]Day{}
	for at, one := range known.days {
		if !at.Before(from) && at.Before(to) {
			within[at] = one
		}
	}
	return within, nil
}

// recent are all of them, and when that was asked.
type recent struct {
	days  map[time.Time]Day
	asked time.Time
}

// FinalizeDay adds up a day; was has the version of before and the rows that there are now.
func (d *Days) FinalizeDay(ctx context.Context, at time.Time, was Day, now time.Time) error {
	settings := clickhouse.Settings{
		"max_execution_time": int(finalizeLimit / time.Second), "insert_deduplicate": 0,
		// Of a large day some work goes to the disk.
		"max_bytes_before_external_group_by": 1 << 30, "max_bytes_before_external_sort": 1 << 30,
		"max_bytes_ratio_before_external_group_by": 0, "max_bytes_ratio_before_external_sort": 0,
	}
	version := nextVersion(was, now)
	args := append(clickdb.Span(at, at.Add(clickdb.Day)), clickhouse.Named("version", fmt.Sprint(version)))
	err := func() error {
		ctx := clickhouse.Context(ctx, clickhouse.WithSettings(settings))
		statements := ValuesOfDay()
		if was.Clicks < ManyClicks { // all of it fits into memory at once
			statements = []string{strings.Join(statements, "\nUNION ALL\n")}
		}
		for _, statement := range statements {
			err := d.db.Conn.Exec(ctx, "INSERT INTO day_values (domain, code, dimension, at, value, clicks, humans, version) SELECT *, {version:UInt64} FROM ("+statement+")", args...)
			if err != nil {
				return err
			}
		}
		err := d.db.Conn.Exec(ctx, "INSERT INTO settled SELECT {from:DateTime('UTC')}, {version:UInt64}, {clicks:UInt64}",
			append(args, clickhouse.Named("clicks", fmt.Sprint(was.Clicks)))...)
		d.lately.Store(nil)
		return errors.Join(err, d.forget(ctx, at, version))
	}()
	if err != nil {
		return fmt.Errorf("finalize %s: %w", at.Format(time.DateOnly), clickdb.Unavailable(ctx, err))
	}
	return nil
}

// nextVersion is one that nobody else takes, later than another.
func nextVersion(was Day, now time.Time) uint64 {
	return max(was.Version+1, uint64(now.UnixNano())&^(1<<20-1)|rand.Uint64N(1<<20))
}

// Adopt finalizes a day with the values that write inserts under a version, instead of those of its
// clicks, which may be gone. was is what another replica has added up.
func (d *Days) Adopt(ctx context.Context, at time.Time, was Day, now time.Time, write func(version uint64) error) error {
	version := nextVersion(was, now)
	if err := write(version); err != nil {
		return err
	}
	err := d.db.Conn.Exec(ctx, "INSERT INTO settled SELECT {from:DateTime('UTC')}, {version:UInt64}, {clicks:UInt64}",
		clickhouse.Named("from", clickdb.Seconds(at)), clickhouse.Named("version", fmt.Sprint(version)), clickhouse.Named("clicks", fmt.Sprint(was.Clicks)))
	d.lately.Store(nil)
	return err
}

// forget removes rows of a day that no version names any more.
func (d *Days) forget(ctx context.Context, at time.Time, version uint64) error {
	args := append(clickdb.Span(at, at.Add(clickdb.Day)), clickhouse.Named("before", fmt.Sprint(version-uint64(forgetAfter))))
	var n uint64
	err := d.db.Conn.QueryRow(ctx, "SELECT count() FROM day_values WHERE at = {from:DateTime('UTC')} AND version < {before:UInt64}", args...).Scan(&n)
	if err != nil || n == 0 {
		return err
	}
	return d.db.Conn.Exec(ctx, "ALTER TABLE day_values DELETE WHERE at = {from:DateTime('UTC')} AND version < {before:UInt64}", args...)
}

// ValuesOfDay select what the clicks of a span, which is a day, come to: of each dimension, and
// in visitors, by link and by workspace.
func ValuesOfDay() (all []string) {
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
// rollup.LimitValues does: strangers choose referrers.
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
GROUP BY domain, code, value`, d, clicks.MaxValues, clicks.Other, domain, code, d, clickdb.InSpan, clickdb.Counted(), where)
}

// Imported is the Clicks of a [Day] whose sums and values another store had counted: it has no clicks one by one
// that they could be compared with, or added up of again.
const Imported = math.MaxInt64

// SeenDimension is where day_values has how many visitors a finalized day had, without a value. A
// busy link has states of 12 KiB, and merging a year of them takes longer than all the rest.
const SeenDimension = 255

// visitorsOf counts the visitors of a span, which is a day, by link or by workspace, from the
// clicks, as the views do.
func visitorsOf(domain, code, where string) string {
	return fmt.Sprintf(`SELECT %s AS domain, %s AS code, toUInt8(%d) AS dimension, {from:DateTime('UTC')} AS at, '' AS value,
    uniqCombined64(14)(visitor) AS clicks, toUInt64(0) AS humans
FROM clicks
WHERE %s AND %s AND %s AND NOT bot AND visitor != 0
GROUP BY domain, code`, domain, code, SeenDimension, clickdb.InSpan, where, clickdb.Counted())
}

// UnfinalizedDays returns how many days are over that nobody has added up. now is the caller's present.
func (d *Days) UnfinalizedDays(ctx context.Context, now time.Time) (days int, err error) {
	ctx, cancel := clickdb.Bound(ctx)
	defer cancel()
	there, err := d.db.RowsOfDays(ctx)
	if err != nil {
		return 0, fmt.Errorf("days that are not finalized: %w", clickdb.Unavailable(ctx, err))
	}
	known, err := d.Finalized(ctx, time.Time{}, now)
	if err != nil {
		return 0, fmt.Errorf("days that are not finalized: %w", clickdb.Unavailable(ctx, err))
	}
	for at := range there {
		if _, done := known[at]; !done && now.Sub(at.Add(clickdb.Day)) >= finalizeAfter {
			days++
		}
	}
	return days, nil
}
