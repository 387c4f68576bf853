package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"curt/internal/auth"
	"curt/internal/link"
)

// Shares is the table of what share links are signed with, in curt.db. It shares the
// group commit of Links and ends with it.
type Shares struct{ links *Links }

var _ auth.ShareStore = Shares{}

// Shares returns the store of shares beside the links.
func (s *Links) Shares() Shares { return Shares{s} }

const (
	sqlShare     = `SELECT workspace, secret FROM shares WHERE domain = ? AND code = ?`
	sqlPutShare  = `INSERT INTO shares (domain, code, workspace, secret) VALUES (?, ?, ?, ?)`
	sqlDropShare = `DELETE FROM shares WHERE domain = ? AND code = ?`
)

func findShare(t *tx, k link.Key) (secret auth.ShareSecret, found bool, err error) {
	found, err = t.one(sqlShare, func(row []driver.Value) error {
		s := scanner{row: row}
		secret.Workspace = link.WorkspaceID(s.text())
		b := next[[]byte](&s)
		s.bad = s.bad || copy(secret.Secret[:], b) != len(secret.Secret) || len(b) != len(secret.Secret)
		return s.damage()
	}, string(k.Domain), string(k.Code))
	return secret, found, err
}

// Secret implements auth.ShareStore.
func (s Shares) Secret(ctx context.Context, k link.Key) (secret auth.ShareSecret, err error) {
	err = s.links.read(ctx, func(t *tx) error {
		var found bool
		if secret, found, err = findShare(t, k); err == nil && !found {
			return auth.ErrNoShare
		}
		return err
	})
	if err != nil {
		return auth.ShareSecret{}, fmt.Errorf("find the share of %s: %w", k, err)
	}
	return secret, nil
}

// Keep implements auth.ShareStore.
func (s Shares) Keep(ctx context.Context, k link.Key, secret auth.ShareSecret) (auth.ShareSecret, error) {
	var stands auth.ShareSecret // no named result: a write that the caller left may still set it
	err := s.links.writer.write(ctx, 1, func(t *tx) error {
		old, found, err := findShare(t, k)
		if err != nil || found {
			stands = old
			return err
		}
		stands = secret
		_, err = t.exec(sqlPutShare, string(k.Domain), string(k.Code), string(secret.Workspace), secret.Secret[:])
		return err
	})
	if err != nil {
		return auth.ShareSecret{}, fmt.Errorf("keep the share of %s: %w", k, err)
	}
	return stands, nil
}

// Drop implements auth.ShareStore.
func (s Shares) Drop(ctx context.Context, k link.Key) error {
	err := s.links.writer.write(ctx, 1, func(t *tx) error {
		_, err := t.exec(sqlDropShare, string(k.Domain), string(k.Code))
		return err
	})
	if err != nil {
		return fmt.Errorf("drop the share of %s: %w", k, err)
	}
	return nil
}
