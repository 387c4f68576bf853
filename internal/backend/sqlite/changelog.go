package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/sqlite/accounts"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/feed"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// trimEvery spreads the trimming of the change log: that many rows go at once, or trimStep of them
// where more are left over.
const (
	trimEvery = 256
	trimStep  = 8 * trimEvery
)

// changeLog is the log of what happens to links.
type changeLog struct {
	db       *sqlitedb.Store
	accounts accounts.DB
	config   LinksConfig
	heldBack repeatlog.Condition // the log, by a follower
}

// Followers returns where those stand of whom a fleet has one each.
func (s *changeLog) Followers() feed.Positions[link.Position] {
	return coldsql.NewFollowers(s.accounts)
}

// CreateFollowers returns the positions of the fleet's followers of creates.
func (s *changeLog) CreateFollowers() feed.Positions[link.Position] {
	return coldsql.NewCreateFollowers(s.accounts)
}

// BothFollowers returns the positions of the fleet's followers of both logs.
func (s *changeLog) BothFollowers() feed.Positions[link.Position] {
	return coldsql.NewBothFollowers(s.accounts)
}

// trimmed is a log of which old entries go, by its statements.
type trimmed struct{ name, slowest, size, kept, first, trim string }

func trimmedChanges() trimmed {
	return trimmed{"changes", sqlSlowest, sqlEntrySize, sqlKeptFor, sqlFirstChange, sqlTrimChanges}
}

const (
	// What the newest entries take, about.
	sqlEntrySize = `SELECT CAST(coalesce(max(100, avg(60 + length(domain) + length(code) + coalesce(length(fields), 0) + coalesce(length(keys), 0))), 100) AS INTEGER)
	FROM (SELECT * FROM changes ORDER BY seq DESC LIMIT 1000)`
	sqlSlowest = `SELECT name, seq FROM log_followers ORDER BY seq LIMIT 1`
	// The first entry behind a position that is not too old.
	sqlKeptFor     = `SELECT seq FROM changes WHERE seq > ? AND at >= ? ORDER BY seq LIMIT 1`
	sqlTrimChanges = `DELETE FROM changes WHERE seq <= ?`
	sqlFirstChange = `SELECT coalesce(min(seq), 0) FROM changes`
)

// trim lets go of old entries behind seq: not of those that a follower of the fleet has not read,
// up to the bounds.
func (s *changeLog) trim(t *sqlitedb.Tx, seq int64, of trimmed) error {
	upTo := seq - s.config.ChangeLog
	var slowest string
	read := upTo
	found, err := t.One(of.slowest, func(row []driver.Value) error {
		sc := sqlitedb.Scanner{Row: row}
		slowest, read = sc.Text(), sc.Int()
		return sc.Damage()
	})
	if err != nil {
		return err
	}
	if found && read < upTo {
		size, _, err := t.Number(of.size)
		if err != nil {
			return err
		}
		tooOld := time.Now().Add(-s.config.LogBounds.Age).UnixMilli()
		kept, known, err := t.Number(of.kept, max(read, seq-s.config.LogBounds.Bytes/max(1, size)), tooOld)
		if err != nil {
			return err
		}
		if known {
			upTo = min(upTo, kept-1)
		}
		s.heldBack.Log(context.Background(), time.Now(), s.config.Log, slog.LevelWarn, "change log not trimmed: a follower is behind", nil, slog.String("log", of.name), slog.String("follower", slowest), slog.Int64("entries", seq-read))
	}
	first, _, err := t.Number(of.first)
	if err == nil {
		_, err = t.Exec(of.trim, min(upTo, first+trimStep))
	}
	return err
}

// logWrite appends a write of a link to the change log.
func (s *changeLog) logWrite(t *sqlitedb.Tx, l *link.Link, kind link.EventKind, edit *link.Edit) error {
	if l.Status == link.Deleted {
		kind, edit = link.WasDeleted, &link.Edit{Principal: edit.Principal}
	}
	return s.log(t, &link.Event{
		Change: link.Change{Key: l.Key, Version: l.Version},
		Kind:   kind, ID: l.ID, Workspace: l.Workspace, Principal: edit.Principal, Fields: edit.Fields,
	})
}

const sqlInsertChange = `INSERT INTO changes (domain, code, version, kind, id, workspace, principal, at, region, fields, keys)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// log appends to the change log and keeps its length.
func (s *changeLog) log(t *sqlitedb.Tx, e *link.Event) error {
	fields, err := e.FieldsText()
	if err != nil {
		return err
	}
	keys, err := e.KeysText()
	if err != nil {
		return err
	}
	seq, err := t.Insert(sqlInsertChange, string(e.Key.Domain), string(e.Key.Code), int64(e.Version), string(e.Kind), e.ID[:],
		string(e.Workspace), e.Principal, time.Now().UnixMilli(), s.config.Region, orNull(fields), orNull(keys))
	if err == nil && seq%trimEvery == 0 {
		err = s.trim(t, seq, trimmedChanges())
	}
	return err
}

// orNull is text as a column keeps it that is NULL without one.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// Append implements link.EventLog.
func (s *changeLog) Append(ctx context.Context, e link.Event) error {
	err := e.Appendable()
	if err == nil {
		err = s.db.Write(ctx, 1, func(t *sqlitedb.Tx) error { return s.log(t, &e) })
	}
	if err != nil {
		return fmt.Errorf("append to the change log: %w", err)
	}
	return nil
}

const sqlLastChange = `SELECT coalesce(max(seq), 0) FROM changes`

// Head implements link.Store.
func (s *changeLog) Head(ctx context.Context) (link.Position, error) {
	var head int64
	err := s.db.Read(ctx, func(t *sqlitedb.Tx) (err error) {
		head, _, err = t.Number(sqlLastChange)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the head of the change log: %w", err)
	}
	return link.Sequence(head).Position(), nil
}

const sqlChanges = `SELECT seq, domain, code, version FROM changes WHERE seq > ? ORDER BY seq LIMIT ?`

// Changes implements link.Store.
func (s *changeLog) Changes(ctx context.Context, after link.Position, n int) ([]link.Change, link.Position, error) {
	return logAfter(ctx, s.db, sqlChanges, after, n, scanChange, func(c *link.Change) link.Sequence { return c.Sequence })
}

const sqlEvents = `SELECT seq, domain, code, version, kind, id, workspace, principal, at, region, fields, keys FROM changes
	WHERE seq > ? ORDER BY seq LIMIT ?`

// Events implements link.EventLog.
func (s *changeLog) Events(ctx context.Context, after link.Position, n int) ([]link.Event, link.Position, error) {
	return logAfter(ctx, s.db, sqlEvents, after, n, scanEvent, func(e *link.Event) link.Sequence { return e.Sequence })
}

const (
	sqlFirstAfter = `SELECT coalesce(min(seq), 0) FROM changes WHERE seq > ?`
	// The entry of most creates says that the link has no end (the last parameter): it is passed over without being read.
	sqlExpiryChanges = `SELECT domain, code, kind, fields FROM changes
	WHERE seq > ? AND seq <= ? AND (kind IS NULL OR kind = 'updated' OR kind = 'created' AND fields IS NOT ?) ORDER BY seq`
)

// ExpiryChanges implements link.EventLog.
func (s *changeLog) ExpiryChanges(ctx context.Context, after link.Position, n int) (keys []link.Key, next link.Position, more bool, err error) {
	from, err := after.Sequence()
	if err != nil {
		return nil, "", false, fmt.Errorf("read changes: %w", err)
	}
	endless := link.Event{Fields: link.CreatedFields(&link.Link{})}
	without, err := endless.FieldsText()
	if err != nil {
		return nil, "", false, err
	}
	to := from
	err = s.db.Read(ctx, func(t *sqlitedb.Tx) error {
		return t.View(func() error { // else entries might be trimmed between the look at the first one and the walk
			first, _, err := t.Number(sqlFirstAfter, int64(from))
			if err != nil {
				return err
			}
			last, _, err := t.Number(sqlLastChange)
			head := link.Sequence(last)
			if err = errors.Join(err, from.Continues(link.Sequence(first), head)); err != nil {
				return err
			}
			var events []link.Event
			to = min(from+link.Sequence(n), head)
			err = t.Each(sqlExpiryChanges, func(row []driver.Value) error {
				sc := sqlitedb.Scanner{Row: row}
				e := link.Event{Change: link.Change{Key: link.Key{Domain: link.Domain(sc.Text()), Code: link.Code(sc.Text())}}}
				kind, _ := sc.Maybe()
				fields, _ := sc.Maybe()
				e.Kind = link.EventKind(kind)
				err := errors.Join(e.Parse(fields, ""), sc.Damage())
				events = append(events, e)
				return err
			}, int64(from), int64(to), without)
			keys = link.ExpiryChangesIn(events)
			return err
		})
	})
	if err != nil {
		return nil, "", false, fmt.Errorf("read changes after %d: %w", from, err)
	}
	return keys, to.Position(), to == from+link.Sequence(n), nil
}

func logAfter[T any](ctx context.Context, db *sqlitedb.Store, statement string, after link.Position, n int, scan func(*sqlitedb.Scanner) (T, error), at func(*T) link.Sequence) (all []T, _ link.Position, _ error) {
	from, err := after.Sequence()
	if err != nil {
		return nil, "", fmt.Errorf("read changes: %w", err)
	}
	to := from
	err = db.Read(ctx, func(t *sqlitedb.Tx) error {
		err := t.Each(statement, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			one, err := scan(&sc)
			all = append(all, one)
			return errors.Join(err, sc.Damage())
		}, int64(from), int64(n))
		switch {
		case err != nil:
			return err
		case len(all) > 0:
			to = at(&all[len(all)-1])
			return from.Continues(at(&all[0]), to)
		}
		head, _, err := t.Number(sqlLastChange)
		return errors.Join(err, from.Continues(0, link.Sequence(head)))
	})
	if err != nil {
		return nil, "", fmt.Errorf("read changes after %d: %w", from, err)
	}
	return all, to.Position(), nil
}

func scanChange(sc *sqlitedb.Scanner) (link.Change, error) {
	return link.Change{
		Sequence: link.Sequence(sc.Int()),
		Key:      link.Key{Domain: link.Domain(sc.Text()), Code: link.Code(sc.Text())},
		Version:  link.Version(sc.Int()),
	}, nil
}

func scanEvent(sc *sqlitedb.Scanner) (e link.Event, err error) {
	e.Change, _ = scanChange(sc)
	kind, known := sc.Maybe()
	if !known {
		return e, nil
	}
	e.Kind = link.EventKind(kind)
	copy(e.ID[:], sqlitedb.Next[[]byte](sc))
	e.Workspace, e.Principal, e.At, e.Region = link.WorkspaceID(sc.Text()), sc.Text(), sc.Time(), sc.Text()
	fields, _ := sc.Maybe()
	keys, _ := sc.Maybe()
	return e, e.Parse(fields, keys)
}
