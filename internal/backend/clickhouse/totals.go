package clickhouse

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"curt/internal/analytics"
	"curt/internal/clicks"
	"curt/internal/link"
)

const day = 24 * time.Hour

// ofKey is where the rows of a link lie, or of a group.
const ofKey = "domain = {domain:String} AND code = {code:String}"

func named(k link.Key, more ...any) []any {
	return append(more, clickhouse.Named("domain", string(k.Domain)), clickhouse.Named("code", string(k.Code)))
}

// life is what is known of a link's whole life.
type life struct {
	counts      clicks.Counts
	first, last time.Time // zero = never
}

const countColumns = "at, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked"

// sum adds the rows of a source up, which may be of two tables: a bucket of one never overlaps
// with one of the other, so that no click is in both.
func (s *Store) sum(ctx context.Context, source string, args []any) (l life, err error) {
	var clicks, humans, previews, fallbacks, refused int64
	var rows uint64
	err = s.conn.QueryRow(ctx, `SELECT sum(clicks), sum(humans), sum(previews), sum(fallbacks), sum(refused), min(first_seen), max(last_clicked), count()
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
func (s *Store) Totals(ctx context.Context, scope analytics.Scope, now time.Time) (t analytics.Totals, err error) {
	err = s.question(ctx, "totals", func(ctx context.Context) error {
		t, err = s.totals(ctx, scope, now)
		return err
	})
	return t, err
}

// totals asks at once for what does not depend on each other: most of a small question is the
// server's work to understand it.
func (s *Store) totals(ctx context.Context, scope analytics.Scope, now time.Time) (t analytics.Totals, err error) {
	fresh, err := s.Progress(ctx, now) // before the counts: they are at least as fresh
	if err != nil {
		return t, err
	}
	t.LastUpdated, t.CompleteUntil = fresh.Updated, fresh.Complete
	spans, wrong := spansOf(scope, now)
	unbounded := scope.From.IsZero() && scope.To.IsZero()
	var whole, part life
	var days uint64
	var asked errgroup.Group // that one fails ends no other: what is given up costs a connection
	asked.Go(func() (err error) { t.Clicks24h, err = s.lastDay(ctx, scope.Key, now); return err })
	asked.Go(func() (err error) {
		whole, err = s.sum(ctx, "SELECT "+countColumns+" FROM days WHERE "+ofKey, named(scope.Key))
		return err
	})
	if wrong == nil {
		asked.Go(func() (err error) { days, err = s.visitorDays(ctx, scope.Key, spans); return err })
	}
	if wrong == nil && !unbounded {
		asked.Go(func() (err error) {
			source, args := within(spans, countColumns, "days", "quarters", ofKey)
			part, err = s.sum(ctx, source, named(scope.Key, args...))
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
func spansOf(scope analytics.Scope, now time.Time) ([]clicks.Span, error) {
	first, last := time.Unix(0, 0).UTC(), time.UnixMilli(mostMillis)
	if scope.From.IsZero() && scope.To.IsZero() {
		return []clicks.Span{{Granularity: clicks.Day, First: clicks.BucketAt(clicks.Day, first).Ordinal, Last: clicks.BucketAt(clicks.Day, last).Ordinal}}, nil
	}
	if scope.From.IsZero() {
		scope.From = first
	}
	plan, err := scope.Plan(0, first, now)
	return plan.Buckets(), err
}

// lastDay counts the clicks since the minute 24 hours ago.
func (s *Store) lastDay(ctx context.Context, k link.Key, now time.Time) (uint64, error) {
	var recent int64
	err := s.conn.QueryRow(ctx, "SELECT sum(clicks) FROM minutes WHERE "+ofKey+" AND at >= {since:DateTime('UTC')}",
		named(k, clickhouse.Named("since", seconds(now.UTC().Add(-day).Truncate(time.Minute))))...).Scan(&recent)
	return count(recent), err
}

// within is the source of the rows of spans: of whole days one table, of quarter hours
// another.
func within(spans []clicks.Span, columns, days, quarters, where string) (source string, args []any) {
	parts := make([]string, len(spans))
	for i, span := range spans {
		table := quarters
		if span.Granularity == clicks.Day {
			table = days
		}
		from := clicks.Bucket{Granularity: span.Granularity, Ordinal: span.First}.Start()
		to := clicks.Bucket{Granularity: span.Granularity, Ordinal: span.Last}.End()
		parts[i] = fmt.Sprintf("SELECT %s FROM %s WHERE %s AND at >= {from%d:DateTime('UTC')} AND at < {to%d:DateTime('UTC')}", columns, table, where, i, i)
		args = append(args, clickhouse.Named(fmt.Sprint("from", i), seconds(from)), clickhouse.Named(fmt.Sprint("to", i), seconds(to)))
	}
	return strings.Join(parts, " UNION ALL "), args
}

// seconds spells a time as a parameter.
func seconds(t time.Time) string { return t.UTC().Format(time.DateTime) }

// Clicks implements analytics.Reader.
func (s *Store) Clicks(ctx context.Context, keys []link.Key) (found []uint64, err error) {
	if len(keys) == 0 {
		return []uint64{}, nil
	}
	err = s.question(ctx, "clicks of links", func(ctx context.Context) error {
		found, err = s.clicksOf(ctx, keys)
		return err
	})
	return found, err
}

func (s *Store) clicksOf(ctx context.Context, keys []link.Key) ([]uint64, error) {
	found := make([]uint64, len(keys))
	places := map[link.Key][]int{}
	domains, codes := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		places[k] = append(places[k], i)
		domains[i], codes[i] = string(k.Domain), string(k.Code)
	}
	rows, err := s.conn.Query(ctx, `SELECT domain, code, sum(clicks) FROM days
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
