package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
)

// Keys is the API keys of curt.db. It shares the connections of the Links that it
// was taken from, and ends with them.
type Keys struct{ links *Links }

var _ auth.Store = (*Keys)(nil)

// Keys returns the store of API keys.
func (s *Links) Keys() *Keys { return &Keys{links: s} }

const (
	keyColumns = `k.id, w.name, w.plan, k.name, k.scopes, k.created, k.created_by, k.expires, k.used`
	keysOf     = ` FROM keys AS k CROSS JOIN workspaces AS w ON w.n = k.workspace `

	sqlFindKey = `SELECT ` + keyColumns + `, s.sum, s.until FROM key_secrets AS s CROSS JOIN keys AS k ON k.id = s.key
	CROSS JOIN workspaces AS w ON w.n = k.workspace WHERE s.sum = ?`
	sqlKey           = `SELECT ` + keyColumns + keysOf + `WHERE k.id = ?`
	sqlKeys          = `SELECT ` + keyColumns + keysOf + `WHERE k.id < ? ORDER BY k.id DESC LIMIT ?`
	sqlWorkspaceKeys = `SELECT ` + keyColumns + keysOf + `
	WHERE k.workspace = (SELECT n FROM workspaces WHERE name = ?) AND k.id < ? ORDER BY k.id DESC LIMIT ?`

	sqlInsertKey = `INSERT INTO keys (id, workspace, name, scopes, created, created_by, expires, used)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	sqlInsertSum   = `INSERT INTO key_secrets (sum, key, until) VALUES (?, ?, 0)`
	sqlSum         = `SELECT 1 FROM key_secrets WHERE sum = ?`
	sqlSetPlan     = `UPDATE workspaces SET plan = ? WHERE n = ?`
	sqlDropKey     = `DELETE FROM keys WHERE id = ?`
	sqlDropSums    = `DELETE FROM key_secrets WHERE key = ?`
	sqlDropRotated = `DELETE FROM key_secrets WHERE key = ? AND until <> 0`
	sqlEndSums     = `UPDATE key_secrets SET until = ? WHERE key = ?`
	sqlKeepShares  = `INSERT INTO kept_shares (key) VALUES (?)`
	sqlVouches     = `SELECT 1 FROM keys WHERE id = ?1 UNION ALL SELECT 1 FROM kept_shares WHERE key = ?1 LIMIT 1`
	sqlTouchKey    = `UPDATE keys SET used = ? WHERE id = ? AND used < ?`
)

// scanKey reads keyColumns.
func scanKey(s *scanner) (auth.Key, error) {
	var k auth.Key
	copy(k.ID[:], next[[]byte](s))
	k.Workspace, k.Plan, k.Name = link.WorkspaceID(s.text()), auth.Plan(s.text()), s.text()
	for scope := range strings.FieldsSeq(s.text()) {
		k.Scopes = append(k.Scopes, auth.Scope(scope))
	}
	k.Created, k.CreatedBy, k.Expires, k.Used = s.time(), s.text(), s.time(), s.time()
	return k, s.damage()
}

// keyAt reads the key of an id.
func keyAt(t *tx, id link.ID) (k auth.Key, err error) {
	found, err := t.one(sqlKey, func(row []driver.Value) error {
		k, err = scanKey(&scanner{row: row})
		return err
	}, id[:])
	if err == nil && !found {
		err = auth.ErrNoKey
	}
	return k, err
}

// Create implements auth.Store.
func (s *Keys) Create(ctx context.Context, k auth.Key, plan auth.Plan, sum auth.Sum) (auth.Key, error) {
	var stored auth.Key
	err := s.links.writer.write(ctx, 1, func(t *tx) error {
		// Whatever is there already is found before anything is written: an error that
		// is no fault of the disk does not undo the transaction.
		if _, err := keyAt(t, k.ID); !errors.Is(err, auth.ErrNoKey) {
			return orExists(err)
		}
		if taken, err := t.one(sqlSum, ignore, sum[:]); taken || err != nil {
			return orExists(err)
		}
		workspace, err := s.links.workspace(t, k.Workspace)
		if err != nil {
			return err
		}
		if plan != "" {
			if _, err := t.exec(sqlSetPlan, string(plan), workspace); err != nil {
				return err
			}
		}
		if err := insertKey(t, workspace, k, sum); err != nil {
			return err
		}
		stored, err = keyAt(t, k.ID)
		return err
	})
	if err != nil {
		return auth.Key{}, fmt.Errorf("create key %s: %w", k.ID, err)
	}
	return stored, nil
}

func insertKey(t *tx, workspace int64, k auth.Key, sum auth.Sum) error {
	var scopes []string
	for _, scope := range k.Scopes {
		scopes = append(scopes, string(scope))
	}
	if _, err := t.exec(sqlInsertKey, k.ID[:], workspace, k.Name, strings.Join(scopes, " "),
		millis(k.Created), k.CreatedBy, millis(k.Expires), millis(k.Used)); err != nil {
		return err
	}
	_, err := t.exec(sqlInsertSum, sum[:], k.ID[:])
	return err
}

func orExists(err error) error {
	if err != nil {
		return err
	}
	return link.ErrExists
}

// Find implements auth.Store.
func (s *Keys) Find(ctx context.Context, sum auth.Sum) (auth.Found, error) {
	var f auth.Found
	err := s.links.read(ctx, func(t *tx) error {
		found, err := t.one(sqlFindKey, func(row []driver.Value) (err error) {
			sc := scanner{row: row}
			f.Key, err = scanKey(&sc)
			copy(f.Sum[:], next[[]byte](&sc))
			f.Until = sc.time()
			if err == nil {
				err = sc.damage()
			}
			return err
		}, sum[:])
		if err == nil && !found {
			err = auth.ErrNoKey
		}
		return err
	})
	if err != nil {
		return auth.Found{}, fmt.Errorf("find a key: %w", err)
	}
	return f, nil
}

// Get implements auth.Store.
func (s *Keys) Get(ctx context.Context, id link.ID) (k auth.Key, err error) {
	err = s.links.read(ctx, func(t *tx) (err error) {
		k, err = keyAt(t, id)
		return err
	})
	if err != nil {
		return auth.Key{}, fmt.Errorf("get key %s: %w", id, err)
	}
	return k, nil
}

// List implements auth.Store.
func (s *Keys) List(ctx context.Context, f auth.KeyFilter, p auth.KeyPage) ([]auth.Key, error) {
	before := p.Before[:]
	if p.Before.IsZero() {
		before = bytes.Repeat([]byte{0xff}, len(p.Before)) // no UUIDv7
	}
	query, args := sqlKeys, []any{before, int64(p.Limit)}
	if f.Workspace != "" {
		query, args = sqlWorkspaceKeys, []any{string(f.Workspace), before, int64(p.Limit)}
	}
	var keys []auth.Key
	err := s.links.readMany(ctx, func(t *tx) error {
		return t.each(query, func(row []driver.Value) error {
			k, err := scanKey(&scanner{row: row})
			keys = append(keys, k)
			return err
		}, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return keys, nil
}

// Revoke implements auth.Store.
func (s *Keys) Revoke(ctx context.Context, id link.ID, keepShares bool) error {
	err := s.links.writer.write(ctx, 1, func(t *tx) error {
		changed, err := t.exec(sqlDropKey, id[:])
		if err == nil && changed == 0 {
			err = auth.ErrNoKey
		}
		if err == nil {
			_, err = t.exec(sqlDropSums, id[:])
		}
		if err == nil && keepShares {
			_, err = t.exec(sqlKeepShares, id[:])
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("revoke key %s: %w", id, err)
	}
	return nil
}

// Vouches implements auth.Store.
func (s *Keys) Vouches(ctx context.Context, id link.ID) (stands bool, err error) {
	err = s.links.read(ctx, func(t *tx) error {
		stands, err = t.one(sqlVouches, ignore, id[:])
		return err
	})
	if err != nil {
		return false, fmt.Errorf("ask whether the shares of key %s stand: %w", id, err)
	}
	return stands, nil
}

// Rotate implements auth.Store.
func (s *Keys) Rotate(ctx context.Context, id link.ID, sum auth.Sum, until time.Time) (auth.Key, error) {
	var k auth.Key // no named result: a write that the caller left may still set it
	err := s.links.writer.write(ctx, 1, func(t *tx) (err error) {
		if k, err = keyAt(t, id); err != nil {
			return err
		}
		if taken, err := t.one(sqlSum, ignore, sum[:]); taken || err != nil {
			return orExists(err)
		}
		if until.IsZero() {
			_, err = t.exec(sqlDropSums, id[:])
		} else if _, err = t.exec(sqlDropRotated, id[:]); err == nil {
			_, err = t.exec(sqlEndSums, millis(until), id[:])
		}
		if err == nil {
			_, err = t.exec(sqlInsertSum, sum[:], id[:])
		}
		return err
	})
	if err != nil {
		return auth.Key{}, fmt.Errorf("rotate key %s: %w", id, err)
	}
	return k, nil
}

// Touch implements auth.Store.
func (s *Keys) Touch(ctx context.Context, used map[link.ID]time.Time) error {
	if len(used) == 0 {
		return nil
	}
	err := s.links.writer.write(ctx, len(used), func(t *tx) error {
		for id, at := range used {
			if _, err := t.exec(sqlTouchKey, millis(at), id[:], millis(at)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note the use of keys: %w", err)
	}
	return nil
}
