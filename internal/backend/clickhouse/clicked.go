package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/link"
)

// ClickedSince returns the links that were clicked in a minute or later, up to a number of
// them, in no order. Minutes are kept for three days.
func (s *Store) ClickedSince(ctx context.Context, minute time.Time, most int) ([]link.Key, error) {
	return s.clicked(ctx, `SELECT DISTINCT domain, code FROM minutes
WHERE at >= {from:DateTime('UTC')} AND domain != '*' AND code != '' LIMIT {most:UInt32} SETTINGS max_threads = 1`,
		clickhouse.Named("from", seconds(minute.Truncate(time.Minute))), clickhouse.Named("most", fmt.Sprint(most)))
}

// ClickedAfter walks the links that were ever clicked in the order of their keys: up to a number
// of those that come after one, the zero key being before all.
func (s *Store) ClickedAfter(ctx context.Context, after link.Key, most int) ([]link.Key, error) {
	return s.clicked(ctx, `SELECT DISTINCT domain, code FROM days
WHERE (domain > {domain:String} OR domain = {domain:String} AND code > {code:String}) AND domain != '*' AND code != ''
ORDER BY domain, code LIMIT {most:UInt32} SETTINGS optimize_read_in_order = 1, optimize_distinct_in_order = 1, max_threads = 1`,
		clickhouse.Named("domain", string(after.Domain)), clickhouse.Named("code", string(after.Code)), clickhouse.Named("most", fmt.Sprint(most)))
}

// clicked asks for links.
func (s *Store) clicked(ctx context.Context, query string, args ...any) (keys []link.Key, err error) {
	err = s.question(ctx, "links that were clicked", func(ctx context.Context) error {
		rows, err := s.conn.Query(ctx, query, args...)
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
