package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/link"
)

const (
	sqlTarget = `SELECT ` + targetColumns + ` FROM links WHERE place = $1 AND domain = $2 AND code = $3`
	sqlLink   = `SELECT ` + linkColumns + ` FROM links WHERE place = $1 AND domain = $2 AND code = $3`
	sqlLinks  = `SELECT ` + linkColumns + `, turn FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[]) AS t (turn, at, host, name)
	JOIN links ON place = at AND domain = host AND code = name`

	sqlExpired = `SELECT expires, domain, code FROM links
	WHERE expires <> 0 AND status = 1 AND (expires, domain, code) > ($1, $2, $3) AND expires <= $4
	ORDER BY expires, domain, code LIMIT $5`
	sqlChosen = `SELECT place, domain, code FROM links WHERE NOT minted AND (place, domain, code) > ($1, $2, $3)
	ORDER BY place, domain, code LIMIT $4`
)

// Lookup implements link.Store. Where there are replicas it lags behind by MaxLag at most; that
// there is no such link is the primary's word.
func (s *Links) Lookup(ctx context.Context, k link.Key) (target link.Target, err error) {
	place := s.place(k.Code)
	if s.ready(ctx) == nil {
		if found, answered := s.replicas.lookup(ctx, place, string(k.Domain), string(k.Code)); answered {
			return found, nil
		}
	}
	err = s.reading(ctx, func(ctx context.Context, q querier) error {
		t, needs, found, err := oneTarget(ctx, q, place, string(k.Domain), string(k.Code))
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
func (s *Links) Get(ctx context.Context, k link.Key) (l link.Link, err error) {
	err = s.reading(ctx, func(ctx context.Context, q querier) error {
		var found bool
		if l, found, err = s.byKey(ctx, q, k); err == nil && !found {
			err = link.ErrNotFound
		}
		if err == nil && s.doubts.about(k, time.Now()) {
			err = confirm(ctx, s.write)
		}
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("get %s: %w", k, err)
	}
	return l, nil
}

// byKey returns the link of a key.
func (s *Links) byKey(ctx context.Context, q querier, k link.Key) (l link.Link, found bool, err error) {
	found, err = oneOften(ctx, q, func(row pgx.Row) (err error) {
		l, err = scanLink(row)
		return err
	}, sqlLink, s.place(k.Code), string(k.Domain), string(k.Code))
	return l, found, err
}

// GetMany implements link.ManyGetter.
func (s *Links) GetMany(ctx context.Context, keys []link.Key) ([]link.Link, error) {
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
	err := s.readingMany(ctx, func(ctx context.Context, q querier) error {
		clear(links)
		doubtful = false
		err := each(ctx, q, func(row pgx.Row) error {
			var turn int32
			l, err := scanLink(row, &turn)
			links[turn] = l
			doubtful = doubtful || s.doubts.about(l.Key, time.Now())
			return err
		}, sqlLinks, s.keyArgs(turns, func(i int) link.Key { return keys[i] })...)
		if err == nil && doubtful {
			err = confirm(ctx, s.write)
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
func (s *Links) keyArgs(turns []int, key func(turn int) link.Key) []any {
	n := len(turns)
	number, place, domain, code := make([]int32, n), make([]int64, n), make([]string, n), make([]string, n)
	for at, turn := range turns {
		k := key(turn)
		number[at], place[at], domain[at], code[at] = int32(turn), s.place(k.Code), string(k.Domain), string(k.Code)
	}
	return []any{number, place, domain, code}
}

// Expired implements link.Store.
func (s *Links) Expired(ctx context.Context, after link.Cursor, before time.Time, n int) ([]link.Key, link.Cursor, error) {
	at, err := parseKeyCursor(after)
	if err != nil {
		return nil, "", err
	}
	keys, err := s.keys(ctx, &at, sqlExpired, at.n, string(at.key.Domain), string(at.key.Code), before.UnixMilli(), n)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("walk expired links: %w", err)
	case len(keys) == 0:
		return nil, after, nil
	}
	return keys, at.cursor(), nil
}

// Chosen implements link.Store: in the order of places.
func (s *Links) Chosen(ctx context.Context, after link.Cursor, n int) ([]link.Key, link.Cursor, error) {
	at, err := parseKeyCursor(after)
	if err != nil {
		return nil, "", err
	}
	keys, err := s.keys(ctx, &at, sqlChosen, at.n, string(at.key.Domain), string(at.key.Code), n)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("walk codes that were not minted: %w", err)
	case len(keys) < n:
		return keys, "", nil
	}
	return keys, at.cursor(), nil
}

// keys runs a walk over keys and moves its position.
func (s *Links) keys(ctx context.Context, at *keyPosition, query string, args ...any) (keys []link.Key, err error) {
	err = s.readingMany(ctx, func(ctx context.Context, q querier) error {
		keys = nil
		return each(ctx, q, func(row pgx.Row) error {
			err := row.Scan(&at.n, (*string)(&at.key.Domain), (*string)(&at.key.Code))
			keys = append(keys, at.key)
			return err
		}, query, args...)
	})
	return keys, err
}

// firstPosition is before every key.
func firstPosition() keyPosition { return keyPosition{n: math.MinInt64} }
