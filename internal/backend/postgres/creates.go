package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"curt/internal/link"
)

var _ link.CreateLog = (*Links)(nil)

// Numbers of transactions rise in the order of their beginnings, so that those below the oldest
// that is open are all that will ever have been below it. A transaction that stays open, also in
// another database of the server, holds up who reads creates, and nobody else.
const (
	sqlVisible = `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, (SELECT system_identifier FROM pg_control_system())`
	sqlCreates = `SELECT ` + linkColumns + `, made::text::bigint FROM links
	WHERE minted AND made IS NOT NULL AND made >= $1::text::xid8 AND made < $2::text::xid8
	AND (made > $1::text::xid8 OR (place, domain, code) > ($3, $4, $5)) ORDER BY made, place, domain, code LIMIT $6`
)

// createsPosition is behind a row of a transaction, in a cluster.
type createsPosition struct {
	cluster int64
	made    int64
	place   int64
	key     link.Key
}

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

// Creates implements link.CreateLog. It asks the primary.
func (s *Links) Creates(ctx context.Context, after link.Position, n int) ([]link.Link, link.Position, error) {
	at, err := parseCreatesPosition(after)
	if err != nil {
		return nil, "", err
	}
	var links []link.Link
	next := at
	err = s.reading(ctx, func(ctx context.Context, q querier) error {
		links = nil
		head, err := visible(ctx, q)
		if err != nil {
			return err
		}
		if at.cluster != 0 && at.cluster != head.cluster || at.made > head.made {
			return fmt.Errorf("position %q is not of this database: %w", after, link.ErrConflict)
		}
		next = createsPosition{cluster: head.cluster, made: at.made, place: at.place, key: at.key}
		err = each(ctx, q, func(row pgx.Row) error {
			l, err := scanLink(row, &next.made)
			links = append(links, l)
			return err
		}, sqlCreates, strconv.FormatInt(at.made, 10), strconv.FormatInt(head.made, 10), at.place, string(at.key.Domain), string(at.key.Code), n)
		switch {
		case err != nil:
			return err
		case len(links) == n:
			next.key = links[n-1].Key
			next.place = s.place(next.key.Code)
		default:
			next = head
		}
		return nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("read creates: %w", err)
	}
	return links, next.String(), nil
}

// CreatesHead implements link.CreateLog.
func (s *Links) CreatesHead(ctx context.Context) (link.Position, error) {
	var head createsPosition
	err := s.reading(ctx, func(ctx context.Context, q querier) (err error) {
		head, err = visible(ctx, q)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the head of creates: %w", err)
	}
	return head.String(), nil
}

// visible returns the position before the oldest open transaction.
func visible(ctx context.Context, q querier) (p createsPosition, err error) {
	p.place = -1 << 63 // before every row
	err = q.QueryRow(ctx, sqlVisible).Scan(&p.made, &p.cluster)
	return p, err
}
