package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/linkrow"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/backend/postgres/replicas"
	"curt/internal/codegen"
	"curt/internal/link"
)

// place returns where a code lies.
func (s *linkReader) place(c link.Code) int64 {
	if place, ok := s.codes.Position(c); ok {
		return place
	}
	return linkrow.Nowhere
}

// FindSame implements link.Deduper.
func (s *linkReader) FindSame(ctx context.Context, wanted link.Link, now time.Time) (same link.Link, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		var found bool
		if same, found, err = findSame(ctx, q, wanted, now); err == nil && !found {
			err = link.ErrNotFound
		}
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("find an equivalent link: %w", err)
	}
	return same, nil
}

// errEnough ends a walk over rows that found what it was for.
var errEnough = errors.New("enough rows")

const sqlTwins = `SELECT ` + linkrow.Columns + ` FROM links
	WHERE workspace = $1 AND digest = $2 AND expires = $3 AND status = 1 AND safety = 1 AND max_clicks = 0
	ORDER BY id LIMIT $4`

// findSame walks the links that may stand in for wanted, oldest first.
func findSame(ctx context.Context, q pgdb.Querier, wanted link.Link, now time.Time) (same link.Link, found bool, err error) {
	err = pgdb.Each(ctx, q, func(row pgx.Row) error {
		l, err := linkrow.Scan(row)
		if err == nil && l.Equivalent(wanted, now) {
			same, found, err = l, true, errEnough
		}
		return err
	}, sqlTwins, string(wanted.Workspace), link.Digest(wanted.Destination), link.Millis(wanted.Expires), link.MaxTwins)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return same, found, err
}

// linkReader reads links.
type linkReader struct {
	db        *pgdb.Database
	codes     *codegen.Permutation
	replicas  *replicas.Replicas
	uncertain uncertain // about changes of this process
}

// Lookup implements link.Store. Where there are replicas it lags behind by MaxLag at most; that
// there is no such link is the primary's word.
func (s *linkReader) Lookup(ctx context.Context, k link.Key) (target link.Target, err error) {
	place := s.place(k.Code)
	if s.db.Ready(ctx) == nil {
		if found, answered := s.replicas.Lookup(ctx, place, string(k.Domain), string(k.Code)); answered {
			return found, nil
		}
	}
	err = s.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		t, needs, found, err := linkrow.Target(ctx, q, place, string(k.Domain), string(k.Code))
		switch target = t; {
		case err != nil:
		case !found:
			err = link.ErrNotFound
		case needs != 0: // which only the whole link shows
			var l link.Link
			if l, _, err = s.byKey(ctx, q, k); err == nil {
				target, err = l.Leads()
			}
		}
		return err
	})
	if err != nil {
		return link.Target{}, fmt.Errorf("look up %s: %w", k, err)
	}
	return target, nil
}

// Get implements link.Store.
func (s *linkReader) Get(ctx context.Context, k link.Key) (l link.Link, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		var found bool
		if l, found, err = s.byKey(ctx, q, k); err == nil && !found {
			err = link.ErrNotFound
		}
		if err == nil && s.uncertain.about(k, time.Now()) {
			err = confirm(ctx, s.db.WritePool)
		}
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("get %s: %w", k, err)
	}
	return l, nil
}

const sqlLink = `SELECT ` + linkrow.Columns + ` FROM links WHERE place = $1 AND domain = $2 AND code = $3`

// byKey returns the link of a key. A reservation is none.
func (s *linkReader) byKey(ctx context.Context, q pgdb.Querier, k link.Key) (l link.Link, found bool, err error) {
	found, err = pgdb.OnePrepared(ctx, q, func(row pgx.Row) (err error) {
		l, err = linkrow.Scan(row)
		return err
	}, sqlLink, s.place(k.Code), string(k.Domain), string(k.Code))
	if l.Version == 0 {
		return link.Link{}, false, err
	}
	return l, found, err
}

const sqlLinks = `SELECT ` + linkrow.Columns + `, turn FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[]) AS t (turn, at, host, name)
	JOIN links ON place = at AND domain = host AND code = name`

// GetMany implements link.ManyGetter.
func (s *linkReader) GetMany(ctx context.Context, keys []link.Key) ([]link.Link, error) {
	if len(keys) > link.MaxPage {
		return nil, fmt.Errorf("get %d links: %w", len(keys), link.ErrInvalid)
	}
	var turns []int
	for i, k := range keys {
		if link.ValidCode(k.Code) { // else nobody has it, and a NUL would be refused
			turns = append(turns, i)
		}
	}
	links, doubtful := make([]link.Link, len(keys)), false
	err := s.db.ReadMany(ctx, func(ctx context.Context, q pgdb.Querier) error {
		clear(links)
		doubtful = false
		err := pgdb.Each(ctx, q, func(row pgx.Row) error {
			var turn int32
			l, err := linkrow.Scan(row, &turn)
			if l.Version == 0 { // a reservation, or an error
				return err
			}
			links[turn] = l
			doubtful = doubtful || s.uncertain.about(l.Key, time.Now())
			return err
		}, sqlLinks, s.keyArgs(turns, func(i int) link.Key { return keys[i] })...)
		if err == nil && doubtful {
			err = confirm(ctx, s.db.WritePool)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get %d links: %w", len(keys), err)
	}
	return links, nil
}

// keyArgs are the arguments of a statement about many keys: a column each of the turns and
// of what a key is found by.
func (s *linkReader) keyArgs(turns []int, key func(turn int) link.Key) []any {
	n := len(turns)
	number, place, domain, code := make([]int32, n), make([]int64, n), make([]string, n), make([]string, n)
	for at, turn := range turns {
		k := key(turn)
		number[at], place[at], domain[at], code[at] = int32(turn), s.place(k.Code), string(k.Domain), string(k.Code)
	}
	return []any{number, place, domain, code}
}

const sqlExpired = `SELECT expires, domain, code FROM links
	WHERE expires <> 0 AND status = 1 AND (expires, domain, code) > ($1, $2, $3) AND expires <= $4
	ORDER BY expires, domain, code LIMIT $5`

// Expired implements link.Store.
func (s *linkReader) Expired(ctx context.Context, after link.Cursor, before time.Time, n int) ([]link.Key, link.Cursor, error) {
	at, err := link.ParseNumberedKey(after)
	if err != nil {
		return nil, "", err
	}
	keys, err := s.keys(ctx, &at, sqlExpired, at.N, string(at.Key.Domain), string(at.Key.Code), before.UnixMilli(), n)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("walk expired links: %w", err)
	case len(keys) == 0:
		return nil, after, nil
	}
	return keys, at.Cursor(), nil
}

const sqlChosen = `SELECT place, domain, code FROM links WHERE NOT minted AND version > 0 AND (place, domain, code) > ($1, $2, $3)
	ORDER BY place, domain, code LIMIT $4`

// Chosen implements link.Store: in the order of places.
func (s *linkReader) Chosen(ctx context.Context, after link.Cursor, n int) ([]link.Key, link.Cursor, error) {
	at, err := link.ParseNumberedKey(after)
	if err != nil {
		return nil, "", err
	}
	keys, err := s.keys(ctx, &at, sqlChosen, at.N, string(at.Key.Domain), string(at.Key.Code), n)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("walk chosen codes: %w", err)
	case len(keys) < n:
		return keys, "", nil
	}
	return keys, at.Cursor(), nil
}

// keys runs a walk over keys and moves its position.
func (s *linkReader) keys(ctx context.Context, at *link.NumberedKey, query string, args ...any) (keys []link.Key, err error) {
	err = s.db.ReadMany(ctx, func(ctx context.Context, q pgdb.Querier) error {
		keys = nil
		return pgdb.Each(ctx, q, func(row pgx.Row) error {
			err := row.Scan(&at.N, (*string)(&at.Key.Domain), (*string)(&at.Key.Code))
			keys = append(keys, at.Key)
			return err
		}, query, args...)
	})
	return keys, err
}
