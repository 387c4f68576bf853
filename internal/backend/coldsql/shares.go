package coldsql

import (
	"context"
	"fmt"

	"curt/internal/auth"
	"curt/internal/link"
)

// Shares implements auth.ShareStore.
type Shares struct{ db DB }

var _ auth.ShareStore = Shares{}

const (
	sqlShare     = `SELECT workspace, secret FROM shares WHERE domain = $1 AND code = $2`
	sqlKeepShare = `INSERT INTO shares (domain, code, workspace, secret) VALUES ($1, $2, $3, $4) ON CONFLICT (domain, code) DO NOTHING`
	sqlDropShare = `DELETE FROM shares WHERE domain = $1 AND code = $2`
)

// findShare returns the secret of a link; ErrNoShare when it has none.
func findShare(t Tx, k link.Key) (secret auth.ShareSecret, err error) {
	found, err := One(t, sqlShare, func(r *Row) {
		secret.Workspace = link.WorkspaceID(r.Text())
		r.Fill(secret.Secret[:], false)
	}, string(k.Domain), string(k.Code))
	if err == nil && !found {
		err = auth.ErrNoShare
	}
	return secret, err
}

// Secret implements auth.ShareStore.
func (s Shares) Secret(ctx context.Context, k link.Key) (secret auth.ShareSecret, err error) {
	err = s.db.Read(ctx, func(t Tx) (err error) {
		secret, err = findShare(t, k)
		return err
	})
	if err != nil {
		return auth.ShareSecret{}, fmt.Errorf("find the share of %s: %w", k, err)
	}
	return secret, nil
}

// StoreOnce implements auth.ShareStore.
func (s Shares) StoreOnce(ctx context.Context, k link.Key, secret auth.ShareSecret) (auth.ShareSecret, error) {
	var stands auth.ShareSecret
	err := s.db.Change(ctx, 1, func(t Tx) error {
		if _, err := t.Exec(sqlKeepShare, string(k.Domain), string(k.Code), string(secret.Workspace), secret.Secret[:]); err != nil {
			return err
		}
		var err error
		stands, err = findShare(t, k) // ErrNoShare when it was dropped meanwhile
		return err
	})
	if err != nil {
		return auth.ShareSecret{}, fmt.Errorf("store the share of %s: %w", k, err)
	}
	return stands, nil
}

// Drop implements auth.ShareStore.
func (s Shares) Drop(ctx context.Context, k link.Key) error {
	err := s.db.Change(ctx, 1, func(t Tx) error {
		_, err := t.Exec(sqlDropShare, string(k.Domain), string(k.Code))
		return err
	})
	if err != nil {
		return fmt.Errorf("delete the share of %s: %w", k, err)
	}
	return nil
}
