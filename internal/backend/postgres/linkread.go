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

	sqlExpired = `SELECT expires, domain, code FROM links
	WHERE expires <> 0 AND status = 1 AND (expires, domain, code) > ($1, $2, $3) AND expires <= $4
	ORDER BY expires, domain, code LIMIT $5`
	sqlUnminted = `SELECT place, domain, code FROM links WHERE NOT minted AND (place, domain, code) > ($1, $2, $3)
	ORDER BY place, domain, code LIMIT $4`
)

// Lookup implements link.Store. It asks the primary, and never lags behind.
func (s *Links) Lookup(ctx context.Context, k link.Key) (target link.Target, err error) {
	err = s.reading(ctx, func(ctx context.Context, q querier) error {
		found, err := one(ctx, q, func(row pgx.Row) (err error) {
			target, err = scanTarget(row)
			return err
		}, sqlTarget, s.place(k.Code), string(k.Domain), string(k.Code))
		if err == nil && !found {
			err = link.ErrNotFound
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
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("get %s: %w", k, err)
	}
	return l, nil
}

// byKey returns the link of a key.
func (s *Links) byKey(ctx context.Context, q querier, k link.Key) (l link.Link, found bool, err error) {
	found, err = one(ctx, q, func(row pgx.Row) (err error) {
		l, err = scanLink(row)
		return err
	}, sqlLink, s.place(k.Code), string(k.Domain), string(k.Code))
	return l, found, err
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

// Unminted implements link.Store: in the order of places.
func (s *Links) Unminted(ctx context.Context, after link.Cursor, n int) ([]link.Key, link.Cursor, error) {
	at, err := parseKeyCursor(after)
	if err != nil {
		return nil, "", err
	}
	keys, err := s.keys(ctx, &at, sqlUnminted, at.n, string(at.key.Domain), string(at.key.Code), n)
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
	err = s.reading(ctx, func(ctx context.Context, q querier) error {
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
