package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"curt/internal/backend/coldsql"
	"curt/internal/feed"
	"curt/internal/link"
)

// trimEvery spreads the trimming of the change log: that many rows go at once, or trimStep of them
// where more are left over.
const (
	trimEvery = 256
	trimStep  = 8 * trimEvery
)

// Followers returns where those stand of whom a fleet has one each.
func (s *Links) Followers() feed.Positions[link.Sequence] { return coldsql.NewFollowers(cold{s}) }

// trim lets go of old entries behind seq: not of those that a follower of the fleet has not read,
// up to the bounds.
func (s *Links) trim(t *tx, seq int64) error {
	upTo := seq - s.config.ChangeLog
	var slowest string
	read := upTo
	found, err := t.one(sqlSlowest, func(row []driver.Value) error {
		sc := scanner{row: row}
		slowest, read = sc.text(), sc.int()
		return sc.damage()
	})
	if err != nil {
		return err
	}
	if found && read < upTo {
		size, _, err := t.number(sqlEntrySize)
		if err != nil {
			return err
		}
		tooOld := time.Now().Add(-s.config.LogBounds.Age).UnixMilli()
		kept, known, err := t.number(sqlKeptFor, max(read, seq-s.config.LogBounds.Bytes/max(1, size)), tooOld)
		if err != nil {
			return err
		}
		if known {
			upTo = min(upTo, kept-1)
		}
		if again, due := s.heldBack.Met(time.Now()); due {
			s.config.Log.WarnContext(context.Background(), "the change log is kept for one that is behind", slog.String("follower", slowest), slog.Int64("entries", seq-read), again)
		}
	}
	first, _, err := t.number(sqlFirstChange)
	if err == nil {
		_, err = t.exec(sqlTrimChanges, min(upTo, first+trimStep))
	}
	return err
}

// logWrite appends a write of a link to the change log.
func (s *Links) logWrite(t *tx, l *link.Link, kind link.EventKind, edit *link.Edit) error {
	if l.Status == link.Deleted {
		kind, edit = link.WasDeleted, &link.Edit{Principal: edit.Principal}
	}
	return s.log(t, &link.Event{
		Change: link.Change{Key: l.Key, Version: l.Version},
		Kind:   kind, ID: l.ID, Workspace: l.Workspace, Principal: edit.Principal, Fields: edit.Fields,
	})
}

// log appends to the change log and keeps its length.
func (s *Links) log(t *tx, e *link.Event) error {
	fields, err := e.FieldsText()
	if err != nil {
		return err
	}
	keys, err := e.KeysText()
	if err != nil {
		return err
	}
	seq, err := t.insert(sqlInsertChange, string(e.Key.Domain), string(e.Key.Code), int64(e.Version), string(e.Kind), e.ID[:],
		string(e.Workspace), e.Principal, time.Now().UnixMilli(), s.config.Region, fields, keys)
	if err == nil && seq%trimEvery == 0 {
		err = s.trim(t, seq)
	}
	return err
}

// Append implements link.EventLog.
func (s *Links) Append(ctx context.Context, e link.Event) error {
	err := e.Appendable()
	if err == nil {
		err = s.writer.write(ctx, 1, func(t *tx) error { return s.log(t, &e) })
	}
	if err != nil {
		return fmt.Errorf("append to the change log: %w", err)
	}
	return nil
}

// Changes implements link.Store.
func (s *Links) Changes(ctx context.Context, after link.Sequence, n int) ([]link.Change, error) {
	return logAfter(ctx, s, sqlChanges, after, n, scanChange, func(c *link.Change) link.Sequence { return c.Sequence })
}

// Events implements link.EventLog.
func (s *Links) Events(ctx context.Context, after link.Sequence, n int) ([]link.Event, error) {
	return logAfter(ctx, s, sqlEvents, after, n, scanEvent, func(e *link.Event) link.Sequence { return e.Sequence })
}

func logAfter[T any](ctx context.Context, s *Links, statement string, after link.Sequence, n int, scan func(*scanner) (T, error), at func(*T) link.Sequence) ([]T, error) {
	var all []T
	err := s.read(ctx, func(t *tx) error {
		err := t.each(statement, func(row []driver.Value) error {
			sc := scanner{row: row}
			one, err := scan(&sc)
			all = append(all, one)
			return errors.Join(err, sc.damage())
		}, int64(after), int64(n))
		if err != nil || len(all) == 0 || at(&all[0]) == after+1 {
			return err
		}
		// The log has no holes but the one that trimming leaves at its start.
		return fmt.Errorf("changes up to %d were trimmed: %w", at(&all[0])-1, link.ErrConflict)
	})
	if err != nil {
		return nil, fmt.Errorf("read changes after %d: %w", after, err)
	}
	return all, nil
}

func scanChange(sc *scanner) (link.Change, error) {
	return link.Change{
		Sequence: link.Sequence(sc.int()),
		Key:      link.Key{Domain: link.Domain(sc.text()), Code: link.Code(sc.text())},
		Version:  link.Version(sc.int()),
	}, nil
}

func scanEvent(sc *scanner) (e link.Event, err error) {
	e.Change, _ = scanChange(sc)
	kind, known := sc.maybe()
	if !known {
		return e, nil
	}
	e.Kind = link.EventKind(kind)
	copy(e.ID[:], next[[]byte](sc))
	e.Workspace, e.Principal, e.At, e.Region = link.WorkspaceID(sc.text()), sc.text(), sc.time(), sc.text()
	fields, _ := sc.maybe()
	keys, _ := sc.maybe()
	return e, e.Parse(fields, keys)
}
