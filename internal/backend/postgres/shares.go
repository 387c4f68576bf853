package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"curt/internal/auth"
	"curt/internal/link"
)

// Shares is what share links are signed with, beside the links.
type Shares struct{ links *Links }

var _ auth.ShareStore = Shares{}

// Shares returns the store of shares beside the links.
func (s *Links) Shares() Shares { return Shares{s} }

const (
	sqlShare     = `SELECT workspace, secret FROM shares WHERE domain = $1 AND code = $2`
	sqlKeepShare = `INSERT INTO shares (domain, code, workspace, secret) VALUES ($1, $2, $3, $4) ON CONFLICT (domain, code) DO NOTHING`
	sqlDropShare = `DELETE FROM shares WHERE domain = $1 AND code = $2`
)

func findShare(ctx context.Context, q querier, k link.Key) (stands auth.ShareSecret, err error) {
	var secret []byte
	found, err := one(ctx, q, func(row pgx.Row) error { return row.Scan((*string)(&stands.Workspace), &secret) },
		sqlShare, string(k.Domain), string(k.Code))
	if copy(stands.Secret[:], secret); err == nil && !found {
		err = auth.ErrNoShare
	}
	return stands, err
}

// Secret implements auth.ShareStore.
func (s Shares) Secret(ctx context.Context, k link.Key) (secret auth.ShareSecret, err error) {
	err = s.links.reading(ctx, func(ctx context.Context, q querier) error {
		secret, err = findShare(ctx, q, k)
		return err
	})
	if err != nil {
		return auth.ShareSecret{}, fmt.Errorf("find the share of %s: %w", k, err)
	}
	return secret, nil
}

// Keep implements auth.ShareStore.
func (s Shares) Keep(ctx context.Context, k link.Key, secret auth.ShareSecret) (stands auth.ShareSecret, err error) {
	err = s.links.writing(ctx, func(ctx context.Context, q querier) error {
		if _, err := q.Exec(ctx, sqlKeepShare, string(k.Domain), string(k.Code), string(secret.Workspace), secret.Secret[:]); err != nil {
			return err
		}
		stands, err = findShare(ctx, q, k) // ErrNoShare when it was dropped meanwhile
		return err
	})
	if err != nil {
		return auth.ShareSecret{}, fmt.Errorf("keep the share of %s: %w", k, err)
	}
	return stands, nil
}

// Drop implements auth.ShareStore.
func (s Shares) Drop(ctx context.Context, k link.Key) error {
	err := s.links.writing(ctx, func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, sqlDropShare, string(k.Domain), string(k.Code))
		return err
	})
	if err != nil {
		return fmt.Errorf("drop the share of %s: %w", k, err)
	}
	return nil
}
