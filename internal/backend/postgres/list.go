package postgres

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"curt/internal/backend/postgres/linkrow"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/link"
)

// listPosition is where a walk of List stands: the last link that it has read.
type listPosition struct {
	id        link.ID
	workspace link.WorkspaceID
}

// cursor binds the position to the filter, so that it cannot be used with another one.
func (p listPosition) cursor(f link.Filter) link.Cursor {
	return link.Cursor(fmt.Sprintf("%s-%x-%x", f.Tag(), p.id[:], string(p.workspace)))
}

func parseListCursor(c link.Cursor, f link.Filter) (listPosition, error) {
	var p listPosition
	tag, rest, _ := strings.Cut(string(c), "-")
	id, workspace, ok := strings.Cut(rest, "-")
	raw, errID := hex.DecodeString(id)
	name, errName := hex.DecodeString(workspace)
	if tag != f.Tag() || !ok || errID != nil || errName != nil || len(raw) != len(p.id) || len(name) > link.MaxName {
		return p, link.BadCursor(c)
	}
	copy(p.id[:], raw)
	p.workspace = link.WorkspaceID(name)
	return p, nil
}

// listBudget bounds the rows that one List reads when its filter matches few of them.
// Then the page is short and says where it stopped.
const listBudget = 4_000

// A list reads at most $6 rows behind the position, in the order of an index, and takes
// the first $5 of them that the filter lets through. Only when that are fewer does it
// look at the last of those rows, which comes as one without a code: both from one look
// at the table, so that nothing is inserted between them.
const (
	listColumns = linkrow.Columns + `, false`
	listLast    = `SELECT id, workspace, '', '', 0, '', 0::smallint, 0::smallint, 0::smallint, 0::bigint, 0::bigint, 0::bigint, 0::bigint,
	0::bigint, 0::bigint, '', false, false, false, '', '', '{}'::text[], 0::bigint, 0::bigint, '', true`
	listFilter = ` WHERE status <> 3 AND ($3::smallint = 0 OR status = $3) AND ($4::text IS NULL OR domain = $4) LIMIT $5)`

	listOldest          = `links WHERE (id, workspace) > ($1, $2) AND id >= $7 ORDER BY id, workspace`
	listNewest          = `links WHERE (id, workspace) < ($1, $2) AND id >= $7 ORDER BY id DESC, workspace DESC`
	listWorkspaceOldest = `links WHERE workspace = $2 AND id > $1 AND id >= $7 ORDER BY id`
	listWorkspaceNewest = `links WHERE workspace = $2 AND id < $1 AND id >= $7 ORDER BY id DESC`
)

// sqlList returns the statement for a filter.
func sqlList(f link.Filter) string {
	var walk string
	switch all := f.Workspace == ""; {
	case all && f.Oldest:
		walk = listOldest
	case all:
		walk = listNewest
	case f.Oldest:
		walk = listWorkspaceOldest
	default:
		walk = listWorkspaceNewest
	}
	return `(SELECT ` + listColumns + ` FROM (SELECT * FROM ` + walk + ` LIMIT $6) AS seen` + listFilter +
		` UNION ALL (` + listLast + ` FROM ` + walk + ` LIMIT 1 OFFSET $6 - 1) LIMIT $5`
}

// List implements link.Store.
func (s *linkReader) List(ctx context.Context, f link.Filter, p link.Page) (link.Slice, error) {
	if p.Limit < 1 || p.Limit > link.MaxPage {
		return link.Slice{}, fmt.Errorf("list: limit %d: %w", p.Limit, link.ErrInvalid)
	}
	from, err := startOf(f, p.After)
	if err != nil {
		return link.Slice{}, fmt.Errorf("list: %w", err)
	}
	var domain pgtype.Text
	if f.Domain != nil {
		domain = pgtype.Text{String: string(*f.Domain), Valid: true}
	}
	links := make([]link.Link, 0, p.Limit)
	var last listPosition // of the rows that were looked at; zero = the end was
	err = s.db.ReadMany(ctx, func(ctx context.Context, q pgdb.Querier) error {
		links, last = links[:0], listPosition{}
		return pgdb.Each(ctx, q, func(row pgx.Row) error {
			var isLast bool
			l, err := linkrow.Scan(row, &isLast)
			if isLast {
				last = listPosition{l.ID, l.Workspace}
			} else {
				links = append(links, l)
			}
			return err
		}, sqlList(f), pgdb.UUID(from.id), string(from.workspace), int16(f.Status), domain, p.Limit+1, listBudget, pgdb.UUID(f.Since))
	})
	if err != nil {
		return link.Slice{}, fmt.Errorf("list: %w", err)
	}
	page := link.Slice{Links: links}
	switch {
	case len(links) > p.Limit:
		page.Links = links[:p.Limit]
		end := page.Links[p.Limit-1]
		page.Next = listPosition{end.ID, end.Workspace}.cursor(f)
	case last != listPosition{}:
		page.Next = last.cursor(f)
	}
	return page, nil
}

// startOf returns the position that a page begins behind.
func startOf(f link.Filter, after link.Cursor) (listPosition, error) {
	if after != "" {
		p, err := parseListCursor(after, f)
		if err == nil && f.Workspace != "" {
			p.workspace = f.Workspace
		}
		return p, err
	}
	p := listPosition{workspace: f.Workspace}
	if !f.Oldest {
		p.id = lastID()
	}
	return p, nil
}

// lastID is behind every id: no UUIDv7 is like it.
func lastID() link.ID { return link.ID(bytes.Repeat([]byte{0xff}, len(link.ID{}))) }
