package reconcile

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
	"curt/internal/link"
)

// copyRows is how many rows of sums one insert has.
const copyRows = 10_000

// copySettings bound the statements of a copy, and leave larger ones to the disk.
func copySettings() clickhouse.Settings {
	return clickhouse.Settings{
		"max_execution_time": int(readLimit / time.Second), "max_threads": 1, "insert_deduplicate": 0, "async_insert": 0,
		"max_bytes_before_external_group_by": 1 << 28, "max_bytes_ratio_before_external_group_by": 0,
		"max_bytes_before_external_sort": 1 << 28, "max_bytes_ratio_before_external_sort": 0,
	}
}

// ClicksOfDay calls f with each click of a UTC day, in an order that only the clicks decide. The row
// is reused. An error of f ends it and is returned.
func (t *Tables) ClicksOfDay(ctx context.Context, day time.Time, f func(*clickdb.Row) error) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(copySettings()))
	rows, err := t.db.Conn.Query(ctx, `SELECT CAST(domain, 'String') AS domain, code, time, workspace, instance, sequence, outcome, preview, bot, bot_reason, bot_name, visitor,
    country, city, network, referrer_host, device, browser, os, language, trigger, utm_source, utm_medium, utm_campaign, utm_term, utm_content, keep_days
FROM clicks WHERE `+clickdb.InSpan+` ORDER BY clicks.domain, code, time, instance, sequence`, clickdb.Span(day, day.Add(clickdb.Day))...)
	if err != nil {
		return fmt.Errorf("read clicks of %s: %w", day.Format(time.DateOnly), clickdb.Unavailable(ctx, err))
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var r clickdb.Row
		var domain, code, reason string
		var outcome uint8
		err := rows.Scan(&domain, &code, &r.Time, &r.Workspace, &r.ID.Instance, &r.ID.Sequence, &outcome, &r.Preview, &r.Bot, &reason, &r.BotName, &r.Visitor,
			&r.Country, &r.City, &r.Network, &r.ReferrerHost, &r.Device, &r.Browser, &r.OS, &r.Language, &r.Trigger,
			&r.UTM[0], &r.UTM[1], &r.UTM[2], &r.UTM[3], &r.UTM[4], &r.RetentionDays)
		if err != nil {
			return fmt.Errorf("read clicks of %s: %w", day.Format(time.DateOnly), err)
		}
		r.Key, r.Outcome, r.BotReason = link.Key{Domain: link.Domain(domain), Code: link.Code(code)}, clicks.Outcome(outcome), clicks.BotReason(reason)
		if err := f(&r); err != nil {
			return err
		}
	}
	return clickdb.Unavailable(ctx, rows.Err())
}

// kept are the tables whose sums outlive the clicks.
func kept() (all []aggregate) {
	for _, a := range aggregates() {
		if a.Retain == 0 {
			all = append(all, a)
		}
	}
	return all
}

// StageSums copies the sums of a UTC day from another replica, under the name of a batch. Nothing
// reads them before [Tables.AdoptSums].
func (t *Tables) StageSums(ctx context.Context, source *Tables, batch string, day time.Time) error {
	for _, a := range kept() {
		query := `SELECT {batch:String}, {target:String}, CAST(domain, 'String') AS domain, code, at, ` + each(added(), "sum(%s)", ", ") + `,
    min(first_seen), max(last_clicked), CAST(uniqCombined64IfMergeState(14)(visitors), 'String')
FROM ` + a.Table + ` WHERE at >= {from:DateTime('UTC')} AND at < {to:DateTime('UTC')} GROUP BY domain, code, at`
		args := append(clickdb.Span(day, day.Add(clickdb.Day)), clickhouse.Named("batch", batch), clickhouse.Named("target", a.Table))
		into := "INSERT INTO refill_sums (batch, target, domain, code, at, " + strings.Join(added(), ", ") + ", first_seen, last_clicked, visitors)"
		if err := transfer(ctx, source.db, query, args, t.db, into); err != nil {
			return fmt.Errorf("copy the sums of %s: %s: %w", day.Format(time.DateOnly), a.Table, clickdb.Unavailable(ctx, err))
		}
	}
	return nil
}

// AdoptSums makes the sums of a UTC day those of a batch, by adding the difference: repeated, it
// changes nothing. Sums of which the batch has less stay, because the other replica lacks clicks.
func (t *Tables) AdoptSums(ctx context.Context, batch string, day time.Time) error {
	return t.adoptSums(ctx, batch, day, "CAST(visitors, 'AggregateFunction(uniqCombined64If(14), UInt64, UInt8)')")
}

// adoptSums is AdoptSums with an expression for the states of visitors.
func (t *Tables) adoptSums(ctx context.Context, batch string, day time.Time, visitors string) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(copySettings()))
	for _, a := range kept() {
		staged := `SELECT domain, code, at, ` + strings.Join(added(), ", ") + `, first_seen, last_clicked, ` + visitors + ` AS visitors
FROM refill_sums WHERE batch = {batch:String} AND target = {target:String} AND refill_sums.at >= {from:DateTime('UTC')} AND refill_sums.at < {to:DateTime('UTC')}`
		args := append(clickdb.Span(day, day.Add(clickdb.Day)), clickhouse.Named("batch", batch), clickhouse.Named("target", a.Table))
		statement := a.correction() + "SELECT * FROM (" + a.differenceFrom(staged) + ") WHERE " + each(added(), "off_%s >= 0", " AND ")
		if err := t.db.Conn.Exec(ctx, statement, args...); err != nil {
			return fmt.Errorf("adopt the sums of %s: %s: %w", day.Format(time.DateOnly), a.Table, clickdb.Unavailable(ctx, err))
		}
	}
	return nil
}

// AdoptValues copies the finalized values of a UTC day from another replica, as a version of its own.
func (t *Tables) AdoptValues(ctx context.Context, source *Tables, day, now time.Time) error {
	all, err := source.days.Finalized(ctx, day, day.Add(clickdb.Day))
	was, done := all[day]
	if err != nil || !done {
		return clickdb.Unavailable(ctx, err)
	}
	err = t.days.Adopt(ctx, day, was, now, func(version uint64) error {
		return transfer(ctx, source.db, `SELECT CAST(domain, 'String'), code, dimension, at, value, clicks, humans, {as:UInt64} FROM day_values
WHERE at = {from:DateTime('UTC')} AND version = {version:UInt64}`,
			append(clickdb.Span(day, day.Add(clickdb.Day)), clickhouse.Named("version", fmt.Sprint(was.Version)), clickhouse.Named("as", fmt.Sprint(version))),
			t.db, "INSERT INTO day_values (domain, code, dimension, at, value, clicks, humans, version)")
	})
	if err != nil {
		return fmt.Errorf("copy the values of %s: %w", day.Format(time.DateOnly), clickdb.Unavailable(ctx, err))
	}
	return nil
}

// transfer inserts what a query of one server returns into another.
func transfer(ctx context.Context, from *clickdb.DB, query string, args []any, to *clickdb.DB, into string) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(copySettings()))
	rows, err := from.Conn.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	types := rows.ColumnTypes()
	for more := rows.Next(); more; {
		batch, err := to.Conn.PrepareBatch(ctx, into)
		if err != nil {
			return err
		}
		for n := 0; more && n < copyRows; n++ {
			row, at := make([]any, len(types)), make([]any, len(types))
			for i, kind := range types {
				at[i] = reflect.New(kind.ScanType()).Interface()
			}
			err := rows.Scan(at...)
			for i := range at {
				row[i] = reflect.ValueOf(at[i]).Elem().Interface()
			}
			if err == nil {
				err = batch.Append(row...)
			}
			if err != nil {
				_ = batch.Close()
				return err
			}
			more = rows.Next()
		}
		if err := batch.Send(); err != nil {
			return err
		}
	}
	return rows.Err()
}
