package coldsql

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
)

// Keys implements auth.Store.
type Keys struct{ db DB }

var _ auth.Store = Keys{}

const (
	keyColumns = `k.id, w.name, w.plan, k.name, k.scopes, k.created, k.created_by, k.expires, k.used`
	keysOf     = ` FROM keys AS k {join} workspaces AS w ON w.{workspace} = k.workspace `

	sqlFindKey = `SELECT ` + keyColumns + `, s.sum, s.until FROM key_secrets AS s {join} keys AS k ON k.id = s.key
	{join} workspaces AS w ON w.{workspace} = k.workspace WHERE s.sum = $1`
	sqlKey = `SELECT ` + keyColumns + keysOf + `WHERE k.id = $1`
	// Whoever rotates a key keeps others from it.
	sqlLockKey       = sqlKey + ` {lock k}`
	sqlKeys          = `SELECT ` + keyColumns + keysOf + `WHERE k.id < $1 ORDER BY k.id DESC LIMIT $2`
	sqlWorkspaceKeys = `SELECT ` + keyColumns + keysOf + `
	WHERE k.id < $1 AND k.workspace = (SELECT {workspace} FROM workspaces WHERE name = $3) ORDER BY k.id DESC LIMIT $2`

	sqlAddWorkspace = `INSERT INTO workspaces (name, plan) VALUES ($1, coalesce(nullif(CAST($2 AS text), ''), CAST($3 AS text)))
	ON CONFLICT (name) DO UPDATE SET plan = CAST($2 AS text) WHERE CAST($2 AS text) <> ''`
	sqlInsertKey = `INSERT INTO keys (id, workspace, name, scopes, created, created_by, expires, used)
	VALUES ($1, (SELECT {workspace} FROM workspaces WHERE name = $2), $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`
	sqlInsertSum   = `INSERT INTO key_secrets (sum, key, until) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING`
	sqlSum         = `SELECT 1 FROM key_secrets WHERE sum = $1`
	sqlDropKey     = `DELETE FROM keys WHERE id = $1`
	sqlDropSums    = `DELETE FROM key_secrets WHERE key = $1`
	sqlDropRotated = `DELETE FROM key_secrets WHERE key = $1 AND until <> 0`
	sqlEndSums     = `UPDATE key_secrets SET until = $1 WHERE key = $2`
	sqlKeepShares  = `INSERT INTO kept_shares (key) VALUES ($1)`
	sqlVouches     = `SELECT 1 FROM keys WHERE id = $1 UNION ALL SELECT 1 FROM kept_shares WHERE key = $1 LIMIT 1`
	sqlTouchKey    = `UPDATE keys SET used = $1 WHERE id = $2 AND used < $1`
)

// readKey reads keyColumns.
func readKey(r *Row) (k auth.Key) {
	k.ID, k.Workspace, k.Plan, k.Name = r.ID(), link.WorkspaceID(r.Text()), auth.Plan(r.Text()), r.Text()
	for _, scope := range r.Words() {
		k.Scopes = append(k.Scopes, auth.Scope(scope))
	}
	k.Created, k.CreatedBy, k.Expires, k.Used = r.Time(), r.Text(), r.Time(), r.Time()
	return k
}

// oneKey reads the key of an id; ErrNoKey when there is none.
func oneKey(t Tx, query string, id link.ID) (k auth.Key, err error) {
	found, err := One(t, query, func(r *Row) { k = readKey(r) }, id)
	if err == nil && !found {
		err = auth.ErrNoKey
	}
	return k, err
}

// orExists says that an insert without effect met what is there.
func orExists(rows int64, err error) error {
	if err == nil && rows == 0 {
		err = link.ErrExists
	}
	return err
}

// Create implements auth.Store.
func (s Keys) Create(ctx context.Context, k auth.Key, plan auth.Plan, sum auth.Sum) (auth.Key, error) {
	scopes := make(Words, len(k.Scopes))
	for i, scope := range k.Scopes {
		scopes[i] = string(scope)
	}
	var stored auth.Key
	err := s.db.Write(ctx, 1, func(t Tx) error {
		if _, err := t.Exec(sqlAddWorkspace, string(k.Workspace), string(plan), string(auth.PlanRegistered)); err != nil {
			return err
		}
		if err := orExists(t.Exec(sqlInsertKey, k.ID, string(k.Workspace), Text(k.Name), scopes,
			link.Millis(k.Created), k.CreatedBy, link.Millis(k.Expires), link.Millis(k.Used))); err != nil {
			return err
		}
		if err := orExists(t.Exec(sqlInsertSum, sum[:], k.ID)); err != nil {
			return err
		}
		var err error
		stored, err = oneKey(t, sqlKey, k.ID)
		return err
	})
	if err != nil {
		return auth.Key{}, fmt.Errorf("create key %s: %w", k.ID, err)
	}
	return stored, nil
}

// Find implements auth.Store.
func (s Keys) Find(ctx context.Context, sum auth.Sum) (f auth.Found, err error) {
	err = s.db.Read(ctx, func(t Tx) error {
		found, err := One(t, sqlFindKey, func(r *Row) {
			f.Key = readKey(r)
			r.Fill(f.Sum[:], false)
			f.Until = r.Time()
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
func (s Keys) Get(ctx context.Context, id link.ID) (k auth.Key, err error) {
	err = s.db.Read(ctx, func(t Tx) (err error) {
		k, err = oneKey(t, sqlKey, id)
		return err
	})
	if err != nil {
		return auth.Key{}, fmt.Errorf("get key %s: %w", id, err)
	}
	return k, nil
}

// List implements auth.Store.
func (s Keys) List(ctx context.Context, f auth.KeyFilter, p auth.KeyPage) (keys []auth.Key, err error) {
	before := p.Before
	if before.IsZero() {
		before = link.ID(bytes.Repeat([]byte{0xff}, len(before))) // no UUIDv7
	}
	query, args := sqlKeys, []any{before, int64(p.Limit)}
	if f.Workspace != "" {
		query, args = sqlWorkspaceKeys, append(args, string(f.Workspace))
	}
	err = s.db.ReadMany(ctx, func(t Tx) error {
		keys = nil
		return Each(t, query, func(r *Row) { keys = append(keys, readKey(r)) }, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return keys, nil
}

// Revoke implements auth.Store.
func (s Keys) Revoke(ctx context.Context, id link.ID, keepShares bool) error {
	err := s.db.Write(ctx, 1, func(t Tx) error {
		gone, err := t.Exec(sqlDropKey, id)
		if err == nil && gone == 0 {
			err = auth.ErrNoKey
		}
		if err == nil {
			_, err = t.Exec(sqlDropSums, id)
		}
		if err == nil && keepShares {
			_, err = t.Exec(sqlKeepShares, id)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("revoke key %s: %w", id, err)
	}
	return nil
}

// Vouches implements auth.Store.
func (s Keys) Vouches(ctx context.Context, id link.ID) (stands bool, err error) {
	err = s.db.Read(ctx, func(t Tx) (err error) {
		stands, err = Exists(t, sqlVouches, id)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("check the shares of key %s: %w", id, err)
	}
	return stands, nil
}

// Rotate implements auth.Store.
func (s Keys) Rotate(ctx context.Context, id link.ID, sum auth.Sum, until time.Time) (auth.Key, error) {
	var k auth.Key
	err := s.db.Write(ctx, 1, func(t Tx) (err error) {
		if k, err = oneKey(t, sqlLockKey, id); err != nil {
			return err
		}
		if taken, err := Exists(t, sqlSum, sum[:]); taken || err != nil {
			return orExists(0, err) // also one that would be dropped
		}
		if until.IsZero() {
			_, err = t.Exec(sqlDropSums, id)
		} else if _, err = t.Exec(sqlDropRotated, id); err == nil {
			_, err = t.Exec(sqlEndSums, link.Millis(until), id)
		}
		if err != nil {
			return err
		}
		return orExists(t.Exec(sqlInsertSum, sum[:], id))
	})
	if err != nil {
		return auth.Key{}, fmt.Errorf("rotate key %s: %w", id, err)
	}
	return k, nil
}

// Touch implements auth.Store. The order of ids keeps two that touch the same keys from a deadlock.
func (s Keys) Touch(ctx context.Context, used map[link.ID]time.Time) error {
	if len(used) == 0 {
		return nil
	}
	var all [][]any
	for _, id := range slices.SortedFunc(maps.Keys(used), func(a, b link.ID) int { return bytes.Compare(a[:], b[:]) }) {
		all = append(all, []any{link.Millis(used[id]), id})
	}
	if err := s.db.Write(ctx, len(used), func(t Tx) error { return t.ExecMany(sqlTouchKey, all) }); err != nil {
		return fmt.Errorf("record the use of keys: %w", err)
	}
	return nil
}
