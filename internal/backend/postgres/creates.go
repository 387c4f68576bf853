package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/linkrow"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/link"
)

// createsPosition is behind a row of a transaction, in a cluster.
type createsPosition struct {
	cluster int64
	made    int64
	place   int64
	key     link.Key
}

// String returns p as a follower keeps it.
func (p createsPosition) String() link.Position {
	return link.Position(fmt.Sprintf("%d/%d/%d/%s", p.cluster, p.made, p.place, p.key))
}

func parseCreatesPosition(text link.Position) (p createsPosition, err error) {
	if text == "" {
		return p, nil
	}
	parts := strings.SplitN(string(text), "/", 5)
	if len(parts) < 5 {
		return p, fmt.Errorf("position %q: %w", text, link.ErrInvalid)
	}
	for i, to := range []*int64{&p.cluster, &p.made, &p.place} {
		if *to, err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return p, fmt.Errorf("position %q: %w", text, link.ErrInvalid)
		}
	}
	p.key = link.Key{Domain: link.Domain(parts[3]), Code: link.Code(parts[4])}
	return p, nil
}

const sqlCreates = `SELECT ` + linkrow.Columns + `, made::text::bigint FROM links
	WHERE minted AND made IS NOT NULL AND made >= $1::text::xid8 AND made < $2::text::xid8
	AND (made > $1::text::xid8 OR (place, domain, code) > ($3, $4, $5)) ORDER BY made, place, domain, code LIMIT $6`

// Creates implements link.CreateLog. It asks the primary.
func (s *linkReader) Creates(ctx context.Context, after link.Position, n int) (links []link.Link, _ link.Position, _ error) {
	next, err := s.createsAfter(ctx, after, func(ctx context.Context, q pgdb.Querier, at, head createsPosition) (next createsPosition, err error) {
		links, next = nil, head
		var made int64
		err = pgdb.Each(ctx, q, func(row pgx.Row) error {
			l, err := linkrow.Scan(row, &made)
			links = append(links, l)
			return err
		}, sqlCreates, append(at.args(head), n)...)
		if err == nil && len(links) == n {
			next.made, next.key, next.place = made, links[n-1].Key, s.place(links[n-1].Key.Code)
		}
		return next, err
	})
	if err != nil {
		return nil, "", err
	}
	return links, next, nil
}

// Of a page of creates those that ended, and the last, with how many it has.
const sqlCreatesEnded = `WITH page AS MATERIALIZED (
	SELECT domain, code, made, place, status = 1 AND expires <> 0 AND expires <= $6 AS ended FROM links
	WHERE minted AND made IS NOT NULL AND made >= $1::text::xid8 AND made < $2::text::xid8
	AND (made > $1::text::xid8 OR (place, domain, code) > ($3, $4, $5)) ORDER BY made, place, domain, code LIMIT $7
), last AS (SELECT made, place, domain, code FROM page ORDER BY made DESC, place DESC, domain DESC, code DESC LIMIT 1)
SELECT domain, code, made::text::bigint, ended, (SELECT count(*) FROM page) FROM page
WHERE ended OR (made, place, domain, code) = (SELECT made, place, domain, code FROM last) ORDER BY made, place, domain, code`

// CreatesEnded implements link.CreateLog.
func (s *linkReader) CreatesEnded(ctx context.Context, after link.Position, by time.Time, n int) (keys []link.Key, _ link.Position, more bool, _ error) {
	next, err := s.createsAfter(ctx, after, func(ctx context.Context, q pgdb.Querier, at, head createsPosition) (next createsPosition, err error) {
		var last createsPosition
		var many int
		keys, next = nil, head
		err = pgdb.Each(ctx, q, func(row pgx.Row) error {
			var ended bool
			err := row.Scan((*string)(&last.key.Domain), (*string)(&last.key.Code), &last.made, &ended, &many)
			if ended {
				keys = append(keys, last.key)
			}
			return err
		}, sqlCreatesEnded, append(at.args(head), by.UnixMilli(), n)...)
		if more = err == nil && many == n; more {
			next.made, next.key, next.place = last.made, last.key, s.place(last.key.Code)
		}
		return next, err
	})
	return keys, next, more, err
}

// createsAfter reads behind a position, up to the head.
func (s *linkReader) createsAfter(ctx context.Context, after link.Position, read func(ctx context.Context, q pgdb.Querier, at, head createsPosition) (createsPosition, error)) (link.Position, error) {
	at, err := parseCreatesPosition(after)
	if err != nil {
		return "", err
	}
	var next createsPosition
	err = s.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		head, err := visible(ctx, q)
		if err != nil {
			return err
		}
		if at.cluster != 0 && at.cluster != head.cluster || at.made > head.made {
			return fmt.Errorf("position %q is not of this database: %w", after, link.ErrConflict)
		}
		next, err = read(ctx, q, at, head)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read creates: %w", err)
	}
	return next.String(), nil
}

// args are the first arguments of a statement that reads behind a position, up to the head.
func (p createsPosition) args(head createsPosition) []any {
	return []any{strconv.FormatInt(p.made, 10), strconv.FormatInt(head.made, 10), p.place, string(p.key.Domain), string(p.key.Code)}
}

// CreatesHead implements link.CreateLog.
func (s *linkReader) CreatesHead(ctx context.Context) (link.Position, error) {
	var head createsPosition
	err := s.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) (err error) {
		head, err = visible(ctx, q)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the head of creates: %w", err)
	}
	return head.String(), nil
}

const sqlVisible = `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, (SELECT system_identifier FROM pg_control_system())`

// visible returns the position before the oldest open transaction.
func visible(ctx context.Context, q pgdb.Querier) (p createsPosition, err error) {
	p.place = -1 << 63 // before every row
	err = q.QueryRow(ctx, sqlVisible).Scan(&p.made, &p.cluster)
	return p, err
}
