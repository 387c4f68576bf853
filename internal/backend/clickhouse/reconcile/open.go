package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/backend/clickhouse/clickdb"
)

// RebuildOpen is [Tables.RebuildDay] for a day that workers insert clicks of. Its minutes and quarter
// hours are corrected up to a time before which all clicks are inserted, which is the end of an
// hour. The sums of the day cannot be read without blocks that are on their way; they are
// corrected by the differences to quarter hours that stay the same while wait waits, which is for
// longer than any block is on its way, or returns an error.
func (t *Tables) RebuildOpen(ctx context.Context, day, complete, now time.Time, wait func(context.Context) error) error {
	hours := slices.DeleteFunc(hoursOf(day), func(at time.Time) bool { return !at.Before(complete) })
	if len(hours) == 0 {
		return nil
	}
	if err := t.rebuild(ctx, hours, now, false); err != nil {
		return err
	}
	i := slices.IndexFunc(aggregates(), func(a aggregate) bool { return a.Daily })
	days := aggregates()[i]
	before, err := t.openDifferences(ctx, days, day)
	if err != nil || len(before) == 0 {
		return err
	}
	if err := wait(ctx); err != nil {
		return err
	}
	after, err := t.openDifferences(ctx, days, day)
	if err != nil {
		return err
	}
	stay := slices.DeleteFunc(after, func(o openOff) bool { return !slices.Contains(before, o) })
	if len(stay) == 0 {
		return nil
	}
	where, args := openTuples(stay)
	if err := t.db.Conn.Exec(ctx, days.correction()+"SELECT * FROM ("+openDifference(days)+") WHERE "+where, append(args, clickdb.Span(days.buckets(day))...)...); err != nil {
		return fmt.Errorf("rebuild %s: %s: %w", clickdb.Seconds(day), days.Table, clickdb.Unavailable(ctx, err))
	}
	return nil
}

// openOff is by how much the sums of a link or workspace are off.
type openOff struct {
	domain, code string
	by           [5]int64
}

// mostOpen bounds the links that are corrected before their day is over.
const mostOpen = 5_000

// openDifference compares the sums of days with those of their quarter hours.
func openDifference(days aggregate) string {
	return days.differenceFrom(`SELECT domain, code, toStartOfDay(at, 'UTC') AS at, ` + strings.Join(added(), ", ") + `, first_seen, last_clicked, visitors FROM quarters
WHERE at >= {from:DateTime('UTC')} AND at < {to:DateTime('UTC')}`)
}

func (t *Tables) openDifferences(ctx context.Context, days aggregate, day time.Time) (all []openOff, err error) {
	rows, err := t.db.Conn.Query(ctx, fmt.Sprintf("SELECT CAST(domain, 'String'), code, %s FROM (%s) LIMIT %d", each(added(), "off_%s", ", "), openDifference(days), mostOpen),
		clickdb.Span(days.buckets(day))...)
	if err != nil {
		return nil, fmt.Errorf("compare %s: %w", clickdb.Seconds(day), clickdb.Unavailable(ctx, err))
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var o openOff
		if err := rows.Scan(&o.domain, &o.code, &o.by[0], &o.by[1], &o.by[2], &o.by[3], &o.by[4]); err != nil {
			return nil, fmt.Errorf("compare %s: %w", clickdb.Seconds(day), err)
		}
		all = append(all, o)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("compare %s: %w", clickdb.Seconds(day), clickdb.Unavailable(ctx, err))
	}
	return all, nil
}

// openTuples is a condition that is true of some differences.
func openTuples(list []openOff) (where string, args []any) {
	domains, codes := make([]string, len(list)), make([]string, len(list))
	by := make([][]int64, len(added()))
	for i, o := range list {
		domains[i], codes[i] = o.domain, o.code
		for j := range by {
			by[j] = append(by[j], o.by[j])
		}
	}
	args = []any{clickhouse.Named("domains", domains), clickhouse.Named("codes", codes)}
	lists := []string{"{domains:Array(String)}", "{codes:Array(String)}"}
	for j := range by {
		args = append(args, clickhouse.Named(fmt.Sprint("by", j), strings.Join(strings.Fields(fmt.Sprint(by[j])), ",")))
		lists = append(lists, fmt.Sprintf("{by%d:Array(Int64)}", j))
	}
	return "(CAST(domain, 'String'), code, " + each(added(), "off_%s", ", ") + ") IN (SELECT arrayJoin(arrayZip(" + strings.Join(lists, ", ") + ")))", args
}
