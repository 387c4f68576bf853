// Package reconcile compares clicks with what is added up of them, corrects sums that differ, and lists
// clicks for a comparison with Kafka.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/finalize"
)

// ErrGone says that clicks of the hour may no longer be kept one by one, so that nothing
// can be verified or rebuilt from them.
var ErrGone = errors.New("raw clicks of this hour are incomplete")

// Tables compares and corrects. All methods may be called by many goroutines at once.
type Tables struct {
	db   *clickdb.DB
	days *finalize.Days
}

// New returns the tables of a database.
func New(db *clickdb.DB, days *finalize.Days) *Tables { return &Tables{db: db, days: days} }

// Drift is by how much a table differs from the clicks themselves.
type Drift struct {
	Table  string
	Clicks uint64 // that should be added up there, links and workspaces together
	Rows   uint64 // that are missing, wrong, or should not be there
	Off    uint64 // how many events the rows are off by
	// More is how many clicks are added up there that are not among the clicks one by one: the
	// table has them twice, or what is kept one by one was lost. A correction takes them away.
	More uint64
}

// added are the columns that a table adds up.
func added() []string { return []string{"clicks", "humans", "previews", "fallbacks", "refused"} }

// aggregate is a table of sums.
type aggregate struct{ clickdb.Aggregate }

func aggregates() (all []aggregate) {
	for _, a := range clickdb.Aggregates() {
		all = append(all, aggregate{a})
	}
	return all
}

// buckets returns those of a table that an hour lies in.
func (a aggregate) buckets(hour time.Time) (from, to time.Time) {
	if a.Daily {
		from = hour.UTC().Truncate(clickdb.Day)
		return from, from.Add(clickdb.Day)
	}
	from = hour.UTC().Truncate(time.Hour)
	return from, from.Add(time.Hour)
}

// difference selects what has to be added to the table's rows of a span so that they are
// what the clicks add up to, one row for each that is off.
func (a aggregate) difference() string {
	return a.differenceFrom(a.Query("(SELECT * FROM clicks WHERE " + clickdb.InSpan + ")"))
}

// differenceFrom is difference with a query of what the rows should be.
func (a aggregate) differenceFrom(raw string) string {
	const rest = ", first_seen, last_clicked, visitors"
	return `SELECT domain, code, at, ` + each(added(), "sum(%s) AS off_%[1]s", ", ") + `,
    min(first_seen), max(last_clicked), uniqCombined64IfMergeState(14)(visitors) FROM (
SELECT domain, code, at, ` + strings.Join(added(), ", ") + rest + ` FROM (` + raw + `)
UNION ALL
SELECT domain, code, at, ` + each(added(), "-%s", ", ") + rest + ` FROM ` + a.Table + ` WHERE at >= {from:DateTime('UTC')} AND at < {to:DateTime('UTC')}
) GROUP BY domain, code, at HAVING ` + each(added(), "off_%s != 0", " OR ")
}

// correction inserts a difference.
func (a aggregate) correction() string {
	return "INSERT INTO " + a.Table + " (domain, code, at, " + strings.Join(added(), ", ") + ", first_seen, last_clicked, visitors) "
}

// each spells every name by a format and joins them.
func each(names []string, format, between string) string {
	spelt := make([]string, len(names))
	for i, n := range names {
		spelt[i] = fmt.Sprintf(format, n)
	}
	return strings.Join(spelt, between)
}

// Verify compares what is added up of an hour with the clicks themselves; tables of days,
// of the UTC day that the hour lies in, the values of dimensions once that day is finalized. now is the caller's present.
//
// While blocks of the hour are being inserted the answer may show what is on its way.
func (t *Tables) Verify(ctx context.Context, hour, now time.Time) ([]Drift, error) {
	return t.verify(ctx, []time.Time{hour}, now)
}

// VerifyDay is Verify for all hours of a UTC day together.
func (t *Tables) VerifyDay(ctx context.Context, at, now time.Time) ([]Drift, error) {
	return t.verify(ctx, hoursOf(at), now)
}

// hoursOf are the hours of a UTC day.
func hoursOf(at time.Time) []time.Time {
	hours := make([]time.Time, 24)
	for h := range hours {
		hours[h] = at.UTC().Truncate(clickdb.Day).Add(time.Duration(h) * time.Hour)
	}
	return hours
}

// verify compares hours of one day.
func (t *Tables) verify(ctx context.Context, hours []time.Time, now time.Time) ([]Drift, error) {
	if err := t.notImported(ctx, hours[0]); err != nil {
		return nil, fmt.Errorf("verify %s: %w", clickdb.Seconds(hours[0]), err)
	}
	small, err := t.small(ctx, hours)
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", clickdb.Seconds(hours[0]), clickdb.Unavailable(ctx, err))
	}
	all := make([]Drift, 0, len(aggregates()))
	for _, a := range aggregates() {
		if a.tooOld(hours[0], now, t.db.Config.MinRetention) {
			return nil, fmt.Errorf("verify %s: %w", clickdb.Seconds(hours[0]), ErrGone)
		}
		d, spans := Drift{Table: a.Table}, a.spans(hours, small, now)
		for _, one := range spans {
			if err := t.drift(ctx, a, one, &d); err != nil {
				return nil, fmt.Errorf("verify %s: %s: %w", clickdb.Seconds(one[0]), a.Table, clickdb.Unavailable(ctx, err))
			}
		}
		if len(spans) > 0 {
			all = append(all, d)
		}
	}
	at := hours[0].UTC().Truncate(clickdb.Day)
	known, err := t.days.Finalized(ctx, at, at.Add(clickdb.Day))
	if was, done := known[at]; err == nil && done {
		var d Drift
		d, err = t.finalizedDrift(ctx, at, was)
		all = append(all, d)
	}
	if err != nil {
		return nil, fmt.Errorf("verify %s: day_values: %w", clickdb.Seconds(at), clickdb.Unavailable(ctx, err))
	}
	return all, nil
}

// notImported returns an error that wraps ErrGone for a day whose sums another store had counted.
func (t *Tables) notImported(ctx context.Context, at time.Time) error {
	at = at.UTC().Truncate(clickdb.Day)
	known, err := t.days.Finalized(ctx, at, at.Add(clickdb.Day))
	if err == nil && known[at].Clicks == finalize.Imported {
		return ErrGone
	}
	return clickdb.Unavailable(ctx, err)
}

// small reports whether hours of a day may be added up at once: there are few clicks.
func (t *Tables) small(ctx context.Context, hours []time.Time) (bool, error) {
	if len(hours) == 1 {
		return false, nil // nothing would be gained
	}
	there, err := t.db.RowsOfDays(ctx)
	return there[hours[0].UTC().Truncate(clickdb.Day)] < finalize.ManyClicks, err
}

// spans are what is added up of a table in one statement each, for hours of a day: what is
// gone is left out.
func (a aggregate) spans(hours []time.Time, small bool, now time.Time) (all [][2]time.Time) {
	for i, hour := range hours {
		from, to := a.buckets(hour)
		switch {
		case a.Gone(hour, now), a.Daily && i > 0:
		case small && len(all) > 0:
			all[len(all)-1][1] = to
		default:
			all = append(all, [2]time.Time{from, to})
		}
	}
	return all
}

// drift adds to d what is wrong with a table in a span.
func (t *Tables) drift(ctx context.Context, a aggregate, one [2]time.Time, d *Drift) error {
	args := clickdb.Span(one[0], one[1])
	var rows, off, more, n uint64
	err := t.db.Conn.QueryRow(ctx, "SELECT count(), toUInt64(sum("+each(added(), "abs(off_%s)", " + ")+")), toUInt64(sum(greatest(-off_clicks, 0))) FROM ("+a.difference()+")", args...).Scan(&rows, &off, &more)
	if err == nil {
		err = t.db.Conn.QueryRow(ctx, "SELECT toUInt64(sum(clicks)) FROM ("+
			a.Query("(SELECT * FROM clicks WHERE "+clickdb.InSpan+")")+")", args...).Scan(&n)
	}
	d.Rows, d.Off, d.More, d.Clicks = d.Rows+rows, d.Off+off, d.More+more, d.Clicks+n
	return err
}

// Rebuild corrects what is added up of an hour by adding the difference, so that nobody
// reads zeros meanwhile. It MUST NOT run while blocks of the hour's day are being inserted:
// what is on its way would be added twice. After an error some tables may be corrected;
// calling it again corrects the others.
func (t *Tables) Rebuild(ctx context.Context, hour, now time.Time) error {
	return t.rebuild(ctx, []time.Time{hour}, now, true)
}

// RebuildDay is Rebuild for all hours of a UTC day.
func (t *Tables) RebuildDay(ctx context.Context, at, now time.Time) error {
	return t.rebuild(ctx, hoursOf(at), now, true)
}

// rebuild corrects hours of one day, and with daily the sums of the day.
func (t *Tables) rebuild(ctx context.Context, hours []time.Time, now time.Time, daily bool) error {
	for _, a := range aggregates() {
		if a.tooOld(hours[0], now, t.db.Config.MinRetention) {
			return fmt.Errorf("rebuild %s: %w", clickdb.Seconds(hours[0]), ErrGone)
		}
	}
	if err := t.notImported(ctx, hours[0]); err != nil {
		return fmt.Errorf("rebuild %s: %w", clickdb.Seconds(hours[0]), err)
	}
	small, err := t.small(ctx, hours)
	if err != nil {
		return fmt.Errorf("rebuild %s: %w", clickdb.Seconds(hours[0]), clickdb.Unavailable(ctx, err))
	}
	for _, a := range aggregates() {
		if a.Daily && !daily {
			continue
		}
		for _, one := range a.spans(hours, small, now) {
			err := t.db.Conn.Exec(ctx, a.correction()+a.difference(), clickdb.Span(one[0], one[1])...)
			if err != nil {
				return fmt.Errorf("rebuild %s: %s: %w", clickdb.Seconds(one[0]), a.Table, clickdb.Unavailable(ctx, err))
			}
		}
	}
	if !daily {
		return nil
	}
	at := hours[0].UTC().Truncate(clickdb.Day)
	known, err := t.days.Finalized(ctx, at, at.Add(clickdb.Day))
	if err != nil {
		return fmt.Errorf("rebuild %s: %w", clickdb.Seconds(at), clickdb.Unavailable(ctx, err))
	}
	if was, done := known[at]; done {
		return t.days.FinalizeDay(ctx, at, was, now)
	}
	return nil
}

// tooOld reports whether a click of the span may be gone from where clicks are kept one by
// one: the first of them went when it was keep old.
func (a aggregate) tooOld(hour, now time.Time, keep time.Duration) bool {
	from, _ := a.buckets(hour)
	return from.Before(now.Add(-keep))
}

// watchLimit bounds a look at one table.
const watchLimit = time.Minute

// heaps are the sums that the links of an hour are put into: more than a few errors that
// cancel each other out in all of them are not by chance.
const heaps = 1024

// Watch compares what is added up of an hour with the clicks themselves, as [Tables.Verify] does,
// but in sums of many links each, so that it may be done all the time: the server reads the
// clicks of the hour once for each table, in one thread and with at most a gigabyte of memory.
// Days are compared with the quarter hours of the day. Drift.Rows are sums that are off.
func (t *Tables) Watch(ctx context.Context, hour, now time.Time) ([]Drift, error) {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"max_execution_time": int(watchLimit / time.Second), "max_threads": 1, "max_memory_usage": 1 << 30,
		"max_bytes_before_external_group_by": 1 << 28, "max_bytes_ratio_before_external_group_by": 0,
	}))
	var all []Drift
	for _, a := range aggregates() {
		if a.tooOld(hour, now, t.db.Config.MinRetention) || a.Gone(hour, now) {
			continue
		}
		d := Drift{Table: a.Table}
		if err := t.db.Conn.QueryRow(ctx, a.sums(), clickdb.Span(a.buckets(hour))...).Scan(&d.Clicks, &d.Rows, &d.Off); err != nil {
			return nil, fmt.Errorf("watch %s: %s: %w", clickdb.Seconds(hour), a.Table, clickdb.Unavailable(ctx, err))
		}
		all = append(all, d)
	}
	return all, nil
}

// sums compares sums of a table.
func (a aggregate) sums() string {
	heap := fmt.Sprintf("cityHash64(domain, code) %% %d AS heap, ", heaps)
	should := "(" + a.Query("(SELECT * FROM clicks WHERE "+clickdb.InSpan+")") + ")"
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

// finalizedDrift is what is wrong with a day that was added up; "" is not off.
func (t *Tables) finalizedDrift(ctx context.Context, at time.Time, was finalize.Day) (d Drift, err error) {
	whole := strings.Join(finalize.ValuesOfDay(), "\nUNION ALL\n")
	err = t.db.Conn.QueryRow(ctx, `SELECT toUInt64(sum(whole)), countIf(n != 0 OR h != 0), toUInt64(sum(abs(n) + abs(h))) FROM (
    SELECT sum(n) AS n, sum(h) AS h, sum(whole) AS whole FROM (
        SELECT domain, code, dimension, value, toInt64(clicks) AS n, toInt64(humans) AS h, if(dimension = {seen:UInt8}, 0, clicks) AS whole FROM (`+whole+`)
        UNION ALL
        SELECT domain, code, dimension, value, -toInt64(clicks), -toInt64(humans), 0 FROM day_values
        WHERE at = {from:DateTime('UTC')} AND version = {version:UInt64}
    ) GROUP BY domain, code, dimension, value)`,
		append(clickdb.Span(at, at.Add(clickdb.Day)), clickhouse.Named("version", fmt.Sprint(was.Version)), clickhouse.Named("seen", fmt.Sprint(finalize.SeenDimension)))...).Scan(&d.Clicks, &d.Rows, &d.Off)
	d.Table = "day_values"
	return d, err
}
