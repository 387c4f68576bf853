package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/link"
)

const (
	// The row of change_head is taken when the link is changed already, so that whoever
	// holds it waits for nobody but the disk.
	sqlReplace = `WITH changed AS (
	UPDATE links SET (` + changingColumns + `, tags, spent, version) = ($5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
		$19, $20, $21, $22, $23::text::text[], CASE $10::smallint WHEN 3 THEN 0 ELSE spent END, version + 1)
	WHERE place = $1 AND domain = $2 AND code = $3 AND version = $4 AND status <> 3
	RETURNING id, domain, code, minted, created, spent, version, workspace
), head AS (
	UPDATE change_head SET seq = change_head.seq + news.many FROM (SELECT count(*) AS many FROM changed) AS news
	WHERE change_head.n = 1 AND news.many > 0 RETURNING change_head.seq
), logged AS (
	INSERT INTO changes (seq, domain, code, version, kind, id, workspace, principal, at, region, fields)
	SELECT head.seq, changed.domain, changed.code, changed.version, $24, changed.id, changed.workspace, $25, ` + nowMillis + `, $26, nullif($27, '')
	FROM head CROSS JOIN changed
)
SELECT id, minted, created, spent FROM changed`

	// Of a row that is locked the old value is known, so that what is granted is, too. A
	// bound beyond what a bigint counts is never reached.
	sqlSpend = `WITH bound AS (
	SELECT place, domain, code, least($4, CASE WHEN max_clicks < 0 THEN 9223372036854775807 ELSE max_clicks END - spent) AS granted
	FROM links WHERE place = $1 AND domain = $2 AND code = $3 AND status <> 3 AND max_clicks <> 0 FOR UPDATE
)
UPDATE links SET spent = links.spent + bound.granted FROM bound
WHERE links.place = bound.place AND links.domain = bound.domain AND links.code = bound.code AND bound.granted > 0
RETURNING bound.granted`

	// nowMillis is the time of an entry of the change log.
	nowMillis = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`
	sqlAppend = `WITH head AS (UPDATE change_head SET seq = seq + 1 WHERE n = 1 RETURNING seq)
	INSERT INTO changes (seq, domain, code, version, kind, workspace, principal, at, region, keys)
	SELECT seq, '', '', 0, $1, $2, $3, ` + nowMillis + `, $4, $5 FROM head`

	sqlEvents = `SELECT seq, domain, code, version, kind, id, workspace, principal, at, region, coalesce(fields, ''), coalesce(keys, '')
	FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2`
	sqlChanges = `SELECT seq, domain, code, version FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2`
	sqlHead    = `SELECT seq FROM change_head WHERE n = 1`
	// The newest row stays, whatever is kept, so that a reader at the head finds it there.
	sqlTrimChanges = `DELETE FROM changes WHERE seq <= (SELECT seq FROM change_head WHERE n = 1) - $1
	AND seq < (SELECT min(seq) FROM changes) + $2`
)

// trimStep is how many changes go at once.
const trimStep = 20_000

// Replace implements link.Store.
func (s *Links) Replace(ctx context.Context, l link.Link, e link.Edit) (link.Link, error) {
	if err := storable(&l); err != nil {
		return link.Link{}, fmt.Errorf("replace: %w", err)
	}
	var stored link.Link
	err := s.writing(ctx, func(ctx context.Context, q querier) (err error) {
		stored, err = s.replace(ctx, q, l, &e)
		return err
	})
	if err != nil {
		if !known(err) {
			s.doubts.add(l.Key, time.Now())
		}
		return link.Link{}, fmt.Errorf("replace %s: %w", l.Key, err)
	}
	return stored, nil
}

func (s *Links) replace(ctx context.Context, q querier, l link.Link, e *link.Edit) (link.Link, error) {
	kind, was := link.WasUpdated, link.Event{Fields: e.Fields}
	if l.Status == link.Deleted {
		kind, was.Fields = link.WasDeleted, nil
	}
	text, err := was.FieldsText()
	if err != nil {
		return link.Link{}, err
	}
	place, n := s.place(l.Key.Code), normal(l)
	var id [16]byte
	var counted bool
	var created, spent int64
	found, err := one(ctx, q, func(row pgx.Row) error {
		return row.Scan(&id, &counted, &created, &spent)
	}, sqlReplace, append(replaceArgs(place, l.Version, &n), string(kind), e.Principal, s.config.Region, text)...)
	if stateOf(err) == stateUnique {
		return link.Link{}, fmt.Errorf("its id is taken in workspace %s: %w", n.Workspace, link.ErrConflict)
	}
	if err != nil {
		return link.Link{}, err
	}
	if found {
		n.ID, n.CodeKind, n.Created, n.Spent, n.Version = id, kindOf(counted), timeOf(created), uint64(spent), l.Version+1
		return normal(n), nil
	}
	old, found, err := s.byKey(ctx, q, l.Key)
	switch {
	case err != nil:
		return link.Link{}, err
	case !found:
		return link.Link{}, link.ErrNotFound
	case old.Status == link.Deleted:
		return link.Link{}, fmt.Errorf("deleted: %w", link.ErrConflict)
	}
	return link.Link{}, fmt.Errorf("stored version is %d: %w", old.Version, link.ErrConflict)
}

// replaceArgs are the arguments of sqlReplace.
func replaceArgs(place int64, over link.Version, l *link.Link) []any {
	extra, _ := l.Extra() // storable has seen that it can be written
	args := append(make([]any, 0, 27), place, string(l.Key.Domain), string(l.Key.Code), int64(over),
		digest(l.Destination), int64(l.Needs()), extra)
	fields := link.Fields()
	for i := range fields {
		if f := &fields[i]; written(f) && !f.Fixed {
			args = append(args, value(f, l))
		}
	}
	return args
}

// Spend implements link.Spender. Links without a bound and exhausted ones are answered by
// a read.
func (s *Links) Spend(ctx context.Context, k link.Key, n uint64) (uint64, error) {
	var granted uint64
	decided := false
	err := s.reading(ctx, func(ctx context.Context, q querier) error {
		granted, decided = 0, false
		l, found, err := s.byKey(ctx, q, k)
		switch {
		case err != nil:
			return err
		case !found || l.Status == link.Deleted:
			return link.ErrNotFound
		case l.MaxClicks == 0 || n == 0:
			granted, decided = n, true
		case l.Spent >= l.MaxClicks:
			decided = true
		}
		return nil
	})
	if err == nil && !decided {
		err = s.writing(ctx, func(ctx context.Context, q querier) error {
			var got int64
			_, err := one(ctx, q, func(row pgx.Row) error { return row.Scan(&got) },
				sqlSpend, s.place(k.Code), string(k.Domain), string(k.Code), int64(min(n, 1<<62)))
			granted = uint64(got)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("spend %d clicks of %s: %w", n, k, err)
	}
	return granted, nil
}

// Append implements link.EventLog.
func (s *Links) Append(ctx context.Context, e link.Event) error {
	err := e.Appendable()
	if err == nil {
		err = s.writing(ctx, func(ctx context.Context, q querier) error {
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

// Changes implements link.Store.
func (s *Links) Changes(ctx context.Context, after link.Sequence, n int) ([]link.Change, error) {
	return logAfter(ctx, s, sqlChanges, after, n, func(row pgx.Row) (c link.Change, err error) {
		return c, scanChange(row, &c)
	}, func(c *link.Change) link.Sequence { return c.Sequence })
}

// Events implements link.EventLog.
func (s *Links) Events(ctx context.Context, after link.Sequence, n int) ([]link.Event, error) {
	return logAfter(ctx, s, sqlEvents, after, n, scanEvent, func(e *link.Event) link.Sequence { return e.Sequence })
}

func logAfter[T any](ctx context.Context, s *Links, statement string, after link.Sequence, n int, scan func(pgx.Row) (T, error), at func(*T) link.Sequence) ([]T, error) {
	var all []T
	err := s.reading(ctx, func(ctx context.Context, q querier) error {
		all = nil
		err := each(ctx, q, func(row pgx.Row) error {
			one, err := scan(row)
			all = append(all, one)
			return err
		}, statement, int64(after), n)
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
	e.At = timeOf(*at)
	if id != nil {
		e.ID = *id
	}
	return e, e.Parse(fields, keys)
}

// Head implements link.Store.
func (s *Links) Head(ctx context.Context) (link.Sequence, error) {
	var head int64
	err := s.reading(ctx, func(ctx context.Context, q querier) error { return q.QueryRow(ctx, sqlHead).Scan(&head) })
	if err != nil {
		return 0, fmt.Errorf("read the head of the change log: %w", err)
	}
	return link.Sequence(head), nil
}

// trimChanges shortens the change log to what is kept of it.
func (s *Links) trimChanges(ctx context.Context) error {
	for {
		var gone int64
		err := s.writing(ctx, func(ctx context.Context, q querier) error {
			tag, err := q.Exec(ctx, sqlTrimChanges, max(1, s.config.ChangeLog), trimStep)
			gone = tag.RowsAffected()
			return err
		})
		if err != nil || gone < trimStep {
			return err
		}
	}
}
