package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/postgres/accounts"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/feed"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// trimStep is how many changes go at once.
const trimStep = 20_000

// changeLog is the log of what happens to links.
type changeLog struct {
	db       *pgdb.Database
	config   LinksConfig
	heldBack repeatlog.Condition // the log, by a follower
}

// Followers returns where those stand of whom a fleet has one each.
func (s *changeLog) Followers() feed.Positions[link.Position] {
	return coldsql.NewFollowers(accounts.NewDB(s.db))
}

// CreateFollowers returns the positions of the fleet's followers of creates.
func (s *changeLog) CreateFollowers() feed.Positions[link.Position] {
	return coldsql.NewCreateFollowers(accounts.NewDB(s.db))
}

// BothFollowers returns the positions of the fleet's followers of both logs.
func (s *changeLog) BothFollowers() feed.Positions[link.Position] {
	return coldsql.NewBothFollowers(accounts.NewDB(s.db))
}

const (
	// What of the log may go, and who keeps more of it than the newest $1 entries: all that every
	// follower has read, that lies beyond so many bytes, or that is too old. The newest row stays,
	// whatever is kept, so that a reader at the head finds it there.
	sqlTrimmable = `WITH log AS (
	SELECT (SELECT seq FROM change_head WHERE n = 1) AS head, (SELECT min(seq) FROM changes) AS first
), slowest AS (
	SELECT name, seq FROM log_followers ORDER BY seq LIMIT 1
), size AS (
	SELECT coalesce(avg(60 + length(domain) + length(code) + coalesce(length(fields), 0) + coalesce(length(keys), 0)), 100)::bigint AS bytes
	FROM (SELECT * FROM changes ORDER BY seq DESC LIMIT 1000) AS newest
)
SELECT first, head - $1::bigint, coalesce((
		SELECT c.seq - 1 FROM changes AS c, size WHERE c.seq > greatest(slowest.seq, head - $2::bigint / size.bytes) AND c.at >= $3 ORDER BY c.seq LIMIT 1
	), head), coalesce(slowest.name, ''), coalesce(slowest.seq, head)
FROM log LEFT JOIN slowest ON true WHERE first IS NOT NULL`
	sqlTrimChanges = `DELETE FROM changes WHERE seq <= $1`
)

// trimChanges lets go of old entries: not of those that a follower of the fleet has not read, up to
// the bounds.
func (s *changeLog) trimChanges(ctx context.Context) error {
	for {
		var first, keep, read, at int64
		var slowest string
		var more bool
		err := s.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
			more = false
			tooOld := time.Now().Add(-s.config.LogBounds.Age).UnixMilli()
			found, err := pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&first, &keep, &read, &slowest, &at) },
				sqlTrimmable, max(1, s.config.ChangeLog), s.config.LogBounds.Bytes, tooOld)
			if err != nil || !found {
				return err
			}
			upTo := min(keep, read)
			more = first+trimStep < upTo
			_, err = q.Exec(ctx, sqlTrimChanges, min(upTo, first+trimStep))
			return err
		})
		if read < keep && err == nil {
			s.heldBack.Log(ctx, time.Now(), s.config.Log, slog.LevelWarn, "change log not trimmed: a follower is behind", nil, slog.String("follower", slowest), slog.Int64("position", at))
		}
		if err != nil || !more {
			return err
		}
	}
}

const sqlAppend = `WITH head AS (UPDATE change_head SET seq = seq + 1 WHERE n = 1 RETURNING seq)
	INSERT INTO changes (seq, domain, code, version, kind, workspace, principal, at, region, keys)
	SELECT seq, '', '', 0, $1, $2, $3, ` + pgdb.NowMillis + `, $4, $5 FROM head`

// Append implements link.EventLog.
func (s *changeLog) Append(ctx context.Context, e link.Event) error {
	err := e.Appendable()
	if err == nil {
		err = s.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
			keys, err := e.KeysText()
			if err == nil {
				_, err = q.Exec(ctx, sqlAppend, string(e.Kind), string(e.Workspace), e.Principal, s.config.Region, keys)
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("append to the change log: %w", err)
	}
	return nil
}

const sqlChanges = `SELECT seq, domain, code, version FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2`

// Changes implements link.Store.
func (s *changeLog) Changes(ctx context.Context, after link.Position, n int) ([]link.Change, link.Position, error) {
	return logAfter(ctx, s, sqlChanges, after, n, func(row pgx.Row) (c link.Change, err error) {
		return c, scanChange(row, &c)
	}, func(c *link.Change) link.Sequence { return c.Sequence })
}

const sqlEvents = `SELECT seq, domain, code, version, kind, id, workspace, principal, at, region, coalesce(fields, ''), coalesce(keys, '')
	FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2`

// Events implements link.EventLog.
func (s *changeLog) Events(ctx context.Context, after link.Position, n int) ([]link.Event, link.Position, error) {
	return logAfter(ctx, s, sqlEvents, after, n, scanEvent, func(e *link.Event) link.Sequence { return e.Sequence })
}

// ExpiryChanges implements link.EventLog.
func (s *changeLog) ExpiryChanges(ctx context.Context, after link.Position, n int) ([]link.Key, link.Position, bool, error) {
	return link.ReadExpiryChanges(ctx, s, after, n)
}

func logAfter[T any](ctx context.Context, s *changeLog, statement string, after link.Position, n int, scan func(pgx.Row) (T, error), at func(*T) link.Sequence) (all []T, _ link.Position, _ error) {
	from, err := after.Sequence()
	if err != nil {
		return nil, "", fmt.Errorf("read changes: %w", err)
	}
	to := from
	err = s.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		all = nil
		err := pgdb.Each(ctx, q, func(row pgx.Row) error {
			one, err := scan(row)
			all = append(all, one)
			return err
		}, statement, int64(from), n)
		switch {
		case err != nil:
			return err
		case len(all) > 0:
			to = at(&all[len(all)-1])
			return from.Continues(at(&all[0]), to)
		}
		var head int64
		if err := q.QueryRow(ctx, sqlHead).Scan(&head); err != nil {
			return err
		}
		return from.Continues(0, link.Sequence(head))
	})
	if err != nil {
		return nil, "", fmt.Errorf("read changes after %d: %w", from, err)
	}
	return all, to.Position(), nil
}

func scanChange(row pgx.Row, c *link.Change, more ...any) error {
	var seq, version int64
	err := row.Scan(append([]any{&seq, (*string)(&c.Key.Domain), (*string)(&c.Key.Code), &version}, more...)...)
	c.Sequence, c.Version = link.Sequence(seq), link.Version(version)
	return err
}

func scanEvent(row pgx.Row) (e link.Event, err error) {
	var kind, workspace, principal, region *string
	var id *[16]byte
	var at *int64
	var fields, keys string
	if err = scanChange(row, &e.Change, &kind, &id, &workspace, &principal, &at, &region, &fields, &keys); err != nil || kind == nil {
		return e, err
	}
	e.Kind, e.Workspace, e.Principal, e.Region = link.EventKind(*kind), link.WorkspaceID(*workspace), *principal, *region
	e.At = link.TimeOf(*at)
	if id != nil {
		e.ID = *id
	}
	return e, e.Parse(fields, keys)
}

const sqlHead = `SELECT seq FROM change_head WHERE n = 1`

// Head implements link.Store.
func (s *changeLog) Head(ctx context.Context) (link.Position, error) {
	var head int64
	err := s.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error { return q.QueryRow(ctx, sqlHead).Scan(&head) })
	if err != nil {
		return "", fmt.Errorf("read the head of the change log: %w", err)
	}
	return link.Sequence(head).Position(), nil
}
