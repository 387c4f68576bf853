// Package statistics reads the statistics of links and workspaces, from what is added up, and clicks
// one by one.
package statistics

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/finalize"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// Reader reads statistics. All methods may be called by many goroutines at once.
type Reader struct {
	db         *clickdb.DB
	days       *finalize.Days
	watermarks *watermarks.Table
}

var _ analytics.Reader = (*Reader)(nil)

// New returns the reader of a database.
func New(db *clickdb.DB, days *finalize.Days, w *watermarks.Table) *Reader {
	return &Reader{db: db, days: days, watermarks: w}
}

// life is what is known of a link's whole life.
type life struct {
	counts      rollup.Counts
	first, last time.Time // zero = never
}

const countColumns = "at, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked"

// sum adds the rows of a source up, which may be of two tables: a bucket of one never overlaps
// with one of the other, so that no click is in both.
func (r *Reader) sum(ctx context.Context, source string, args []any) (l life, err error) {
	var clicks, humans, previews, fallbacks, refused int64
	var rows uint64
	err = r.db.Conn.QueryRow(ctx, `SELECT sum(clicks), sum(humans), sum(previews), sum(fallbacks), sum(refused), min(first_seen), max(last_clicked), count()
FROM (`+source+`)`, args...).Scan(&clicks, &humans, &previews, &fallbacks, &refused, &l.first, &l.last, &rows)
	if err != nil {
		return life{}, err
	}
	l.counts.Clicks, l.counts.Humans, l.counts.Previews = count(clicks), count(humans), count(previews)
	l.counts.Fallbacks, l.counts.Refused = count(fallbacks), count(refused)
	if rows == 0 {
		return life{}, nil
	}
	if l.last.UnixMilli() == 0 {
		l.last = time.Time{}
	}
	return l, nil
}

// count reads a sum. One below zero is a correction without what it corrects, which an
// insert into another table is about to bring.
func count(sum int64) uint64 { return uint64(max(sum, 0)) }

// Totals implements analytics.Reader.
func (r *Reader) Totals(ctx context.Context, scope analytics.Scope, now time.Time) (t analytics.Totals, err error) {
	err = r.db.Query(ctx, "totals", func(ctx context.Context) error {
		t, err = r.totals(ctx, scope, now)
		return err
	})
	return t, err
}

// totals asks at once for what does not depend on each other: most of a small question is the
// server's work to understand it.
func (r *Reader) totals(ctx context.Context, scope analytics.Scope, now time.Time) (t analytics.Totals, err error) {
	fresh, err := r.watermarks.Progress(ctx, now) // before the counts: they are at least as fresh
	if err != nil {
		return t, err
	}
	t.LastUpdated, t.CompleteUntil = fresh.Updated, fresh.Complete
	spans, wrong := spansOf(scope, now)
	unbounded := scope.From.IsZero() && scope.To.IsZero()
	var whole, part life
	var days uint64
	var asked errgroup.Group // that one fails ends no other: what is given up costs a connection
	asked.Go(func() (err error) { t.Clicks24h, err = r.lastDay(ctx, scope.Key, now); return err })
	asked.Go(func() (err error) {
		whole, err = r.sum(ctx, "SELECT "+countColumns+" FROM days WHERE "+clickdb.OfKey, clickdb.Named(scope.Key))
		return err
	})
	if wrong == nil {
		asked.Go(func() (err error) { days, err = r.visitorDays(ctx, scope.Key, spans); return err })
	}
	if wrong == nil && !unbounded {
		asked.Go(func() (err error) {
			source, args := within(spans, countColumns, "days", "quarters", clickdb.OfKey)
			part, err = r.sum(ctx, source, clickdb.Named(scope.Key, args...))
			return err
		})
	}
	if err := asked.Wait(); err != nil {
		return t, err
	}
	t.LastClicked = whole.last.UTC()
	switch {
	case whole.first.IsZero():
		return t, nil // never seen: every range is zero
	case wrong != nil:
		return t, wrong
	case unbounded:
		part = whole
		t.Clicks24h = min(t.Clicks24h, whole.counts.Clicks) // some may have come between two answers
	}
	t.Counts, t.VisitorDays = part.counts, days
	return t, nil
}

// spansOf is what covers a scope: where it is open at both ends, also what clocks have put
// after now.
func spansOf(scope analytics.Scope, now time.Time) ([]rollup.Span, error) {
	first, last := time.Unix(0, 0).UTC(), time.UnixMilli(clickdb.MostMillis)
	if scope.From.IsZero() && scope.To.IsZero() {
		return []rollup.Span{{Granularity: rollup.Day, First: rollup.BucketAt(rollup.Day, first).Ordinal, Last: rollup.BucketAt(rollup.Day, last).Ordinal}}, nil
	}
	if scope.From.IsZero() {
		scope.From = first
	}
	plan, err := scope.Plan(0, first, now)
	return plan.Buckets(), err
}

// lastDay counts the clicks since the minute 24 hours ago.
func (r *Reader) lastDay(ctx context.Context, k link.Key, now time.Time) (uint64, error) {
	var recent int64
	err := r.db.Conn.QueryRow(ctx, "SELECT sum(clicks) FROM minutes WHERE "+clickdb.OfKey+" AND at >= {since:DateTime('UTC')}",
		clickdb.Named(k, clickhouse.Named("since", clickdb.Seconds(now.UTC().Add(-clickdb.Day).Truncate(time.Minute))))...).Scan(&recent)
	return count(recent), err
}

// within is the source of the rows of spans: of whole days one table, of quarter hours
// another.
func within(spans []rollup.Span, columns, days, quarters, where string) (source string, args []any) {
	parts := make([]string, len(spans))
	for i, span := range spans {
		table := quarters
		if span.Granularity == rollup.Day {
			table = days
		}
		from := rollup.Bucket{Granularity: span.Granularity, Ordinal: span.First}.Start()
		to := rollup.Bucket{Granularity: span.Granularity, Ordinal: span.Last}.End()
		parts[i] = fmt.Sprintf("SELECT %s FROM %s WHERE %s AND at >= {from%d:DateTime('UTC')} AND at < {to%d:DateTime('UTC')}", columns, table, where, i, i)
		args = append(args, clickhouse.Named(fmt.Sprint("from", i), clickdb.Seconds(from)), clickhouse.Named(fmt.Sprint("to", i), clickdb.Seconds(to)))
	}
	return strings.Join(parts, " UNION ALL "), args
}

// Clicks implements analytics.Reader.
func (r *Reader) Clicks(ctx context.Context, keys []link.Key) (found []uint64, err error) {
	if len(keys) == 0 {
		return []uint64{}, nil
	}
	err = r.db.Query(ctx, "clicks of links", func(ctx context.Context) error {
		found, err = r.clicksOf(ctx, keys)
		return err
	})
	return found, err
}

func (r *Reader) clicksOf(ctx context.Context, keys []link.Key) ([]uint64, error) {
	found := make([]uint64, len(keys))
	places := map[link.Key][]int{}
	domains, codes := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		places[k] = append(places[k], i)
		domains[i], codes[i] = string(k.Domain), string(k.Code)
	}
	rows, err := r.db.Conn.Query(ctx, `SELECT domain, code, sum(clicks) FROM days
WHERE (domain, code) IN (SELECT pair.1, pair.2 FROM (SELECT arrayJoin(arrayZip({domains:Array(String)}, {codes:Array(String)})) AS pair))
GROUP BY domain, code`, clickhouse.Named("domains", domains), clickhouse.Named("codes", codes))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var domain, code string
		var sum int64
		if err := rows.Scan(&domain, &code, &sum); err != nil {
			return nil, err
		}
		for _, i := range places[link.Key{Domain: link.Domain(domain), Code: link.Code(code)}] {
			found[i] = count(sum)
		}
	}
	return found, rows.Err()
}

// ClickedSince returns the links that were clicked in a minute or later, up to a number of
// them, in no order. Minutes are kept for three days.
func (r *Reader) ClickedSince(ctx context.Context, minute time.Time, most int) ([]link.Key, error) {
	return r.clicked(ctx, `SELECT DISTINCT domain, code FROM minutes
WHERE at >= {from:DateTime('UTC')} AND domain != '*' AND code != '' LIMIT {most:UInt32} SETTINGS max_threads = 1`,
		clickhouse.Named("from", clickdb.Seconds(minute.Truncate(time.Minute))), clickhouse.Named("most", fmt.Sprint(most)))
}

// ClickedAfter walks the links that were ever clicked in the order of their keys: up to a number
// of those that come after one, the zero key being before all.
func (r *Reader) ClickedAfter(ctx context.Context, after link.Key, most int) ([]link.Key, error) {
	return r.clicked(ctx, `SELECT DISTINCT domain, code FROM days
WHERE (domain > {domain:String} OR domain = {domain:String} AND code > {code:String}) AND domain != '*' AND code != ''
ORDER BY domain, code LIMIT {most:UInt32} SETTINGS optimize_read_in_order = 1, optimize_distinct_in_order = 1, max_threads = 1`,
		clickhouse.Named("domain", string(after.Domain)), clickhouse.Named("code", string(after.Code)), clickhouse.Named("most", fmt.Sprint(most)))
}

// clicked asks for links.
func (r *Reader) clicked(ctx context.Context, query string, args ...any) (keys []link.Key, err error) {
	err = r.db.Query(ctx, "links that were clicked", func(ctx context.Context) error {
		rows, err := r.db.Conn.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var domain, code string
			if err := rows.Scan(&domain, &code); err != nil {
				return err
			}
			keys = append(keys, link.Key{Domain: link.Domain(domain), Code: link.Code(code)})
		}
		return rows.Err()
	})
	return keys, err
}
