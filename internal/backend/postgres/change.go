package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/linkrow"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/link"
)

// Replace implements link.Store.
func (s *Links) Replace(ctx context.Context, l link.Link, e link.Edit) (link.Link, error) {
	if err := linkrow.Storable(&l); err != nil {
		return link.Link{}, fmt.Errorf("replace: %w", err)
	}
	var stored link.Link
	err := s.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) (err error) {
		stored, err = s.replace(ctx, q, l, &e)
		return err
	})
	if err != nil {
		if !pgdb.HasSentinel(err) {
			s.uncertain.add(l.Key, time.Now())
		}
		return link.Link{}, fmt.Errorf("replace %s: %w", l.Key, err)
	}
	return stored, nil
}

// The row of change_head is taken when the link is changed already, so that whoever
// holds it waits for nobody but the disk.
const sqlReplace = `WITH changed AS (
	UPDATE links SET (` + linkrow.ChangingColumns + `, tags, spent, version) = ($5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
		$19, $20, $21, $22, $23::text::text[], CASE $10::smallint WHEN 3 THEN 0 ELSE spent END, version + 1)
	WHERE place = $1 AND domain = $2 AND code = $3 AND version = $4 AND status <> 3
	RETURNING id, domain, code, minted, created, spent, version, workspace
), head AS (
	UPDATE change_head SET seq = change_head.seq + news.many FROM (SELECT count(*) AS many FROM changed) AS news
	WHERE change_head.n = 1 AND news.many > 0 RETURNING change_head.seq
), logged AS (
	INSERT INTO changes (seq, domain, code, version, kind, id, workspace, principal, at, region, fields)
	SELECT head.seq, changed.domain, changed.code, changed.version, $24, changed.id, changed.workspace, $25, ` + pgdb.NowMillis + `, $26, nullif($27, '')
	FROM head CROSS JOIN changed
)
SELECT id, minted, created, spent FROM changed`

func (s *Links) replace(ctx context.Context, q pgdb.Querier, l link.Link, e *link.Edit) (link.Link, error) {
	kind, was := link.WasUpdated, link.Event{Fields: e.Fields}
	if l.Status == link.Deleted {
		kind, was.Fields = link.WasDeleted, nil
	}
	text, err := was.FieldsText()
	if err != nil {
		return link.Link{}, err
	}
	place, n := s.place(l.Key.Code), l.Normal()
	var id [16]byte
	var counted bool
	var created, spent int64
	found, err := pgdb.One(ctx, q, func(row pgx.Row) error {
		return row.Scan(&id, &counted, &created, &spent)
	}, sqlReplace, append(replaceArgs(place, l.Version, &n), string(kind), e.Principal, s.config.Region, text)...)
	if pgdb.StateOf(err) == pgdb.StateUnique {
		return link.Link{}, fmt.Errorf("its id exists in workspace %s: %w", n.Workspace, link.ErrConflict)
	}
	if err != nil {
		return link.Link{}, err
	}
	if found {
		n.ID, n.CodeKind, n.Created, n.Spent, n.Version = id, linkrow.KindOf(counted), link.TimeOf(created), uint64(spent), l.Version+1
		return n.Normal(), nil
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
		link.Digest(l.Destination), int64(l.Needs()), extra)
	fields := link.Fields()
	for i := range fields {
		if f := &fields[i]; linkrow.Written(f) && !f.Fixed {
			args = append(args, linkrow.Value(f, l))
		}
	}
	return args
}

// Of a row that is locked the old value is known, so that what is granted is, too. A
// bound beyond what a bigint counts is never reached.
const sqlSpend = `WITH bound AS (
	SELECT place, domain, code, least($4, CASE WHEN max_clicks < 0 THEN 9223372036854775807 ELSE max_clicks END - spent) AS granted
	FROM links WHERE place = $1 AND domain = $2 AND code = $3 AND status <> 3 AND max_clicks <> 0 FOR UPDATE
)
UPDATE links SET spent = links.spent + bound.granted FROM bound
WHERE links.place = bound.place AND links.domain = bound.domain AND links.code = bound.code AND bound.granted > 0
RETURNING bound.granted`

// Spend implements link.Spender. Links without a bound and exhausted ones are answered by
// a read.
func (s *Links) Spend(ctx context.Context, k link.Key, n uint64) (uint64, error) {
	var granted uint64
	decided := false
	err := s.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
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
		err = s.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
			var got int64
			_, err := pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&got) },
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
