package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"curt/internal/auth"
	"curt/internal/link"
)

// Keys is the API keys beside the links. It shares their connections and ends with them.
type Keys struct{ links *Links }

var _ auth.Store = (*Keys)(nil)

// Keys returns the store of API keys.
func (s *Links) Keys() *Keys { return &Keys{links: s} }

const (
	keyColumns = `k.id, k.workspace, w.plan, k.name, k.scopes, k.created, k.created_by, k.expires, k.used`
	keysOf     = ` FROM keys AS k JOIN workspaces AS w ON w.name = k.workspace `

	sqlFindKey = `SELECT ` + keyColumns + `, s.sum, s.until` + keysOf + `JOIN key_secrets AS s ON s.key = k.id WHERE s.sum = $1`
	sqlKey     = `SELECT ` + keyColumns + keysOf + `WHERE k.id = $1`
	// Whoever rotates a key keeps others from it.
	sqlLockKey       = sqlKey + ` FOR UPDATE OF k`
	sqlKeys          = `SELECT ` + keyColumns + keysOf + `WHERE k.id < $1 ORDER BY k.id DESC LIMIT $2`
	sqlWorkspaceKeys = `SELECT ` + keyColumns + keysOf + `WHERE k.id < $1 AND k.workspace = $3 ORDER BY k.id DESC LIMIT $2`

	sqlAddWorkspace = `INSERT INTO workspaces (name, plan) VALUES ($1, coalesce(nullif($2::text, ''), $3::text))
	ON CONFLICT (name) DO UPDATE SET plan = $2::text WHERE $2::text <> ''`
	sqlInsertKey = `INSERT INTO keys (id, workspace, name, scopes, created, created_by, expires, used)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`
	sqlInsertSum   = `INSERT INTO key_secrets (sum, key, until) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING`
	sqlKeepShares  = `INSERT INTO kept_shares (key) VALUES ($1)`
	sqlVouches     = `SELECT 1 FROM keys WHERE id = $1 UNION ALL SELECT 1 FROM kept_shares WHERE key = $1 LIMIT 1`
	sqlDropKey     = `DELETE FROM keys WHERE id = $1`
	sqlDropSums    = `DELETE FROM key_secrets WHERE key = $1`
	sqlDropRotated = `DELETE FROM key_secrets WHERE key = $1 AND until <> 0`
	sqlEndSums     = `UPDATE key_secrets SET until = $1 WHERE key = $2`
	sqlTouchKeys   = `UPDATE keys SET used = t.at FROM unnest($1::uuid[], $2::bigint[]) AS t (id, at)
	WHERE keys.id = t.id AND keys.used < t.at`
)

// scanKey reads keyColumns and then whatever else a query returns.
func scanKey(row pgx.Row, more ...any) (k auth.Key, err error) {
	var id pgtype.UUID
	var name []byte
	var scopes []string
	var created, expires, used int64
	err = row.Scan(append([]any{
		&id, (*string)(&k.Workspace), (*string)(&k.Plan), &name, &scopes, &created, &k.CreatedBy, &expires, &used,
	}, more...)...)
	for _, scope := range scopes {
		k.Scopes = append(k.Scopes, auth.Scope(scope))
	}
	k.ID, k.Name = id.Bytes, string(name)
	k.Created, k.Expires, k.Used = timeOf(created), timeOf(expires), timeOf(used)
	return k, err
}

// oneKey reads the key of a query; ErrNoKey when it finds none.
func oneKey(ctx context.Context, q querier, query string, id link.ID) (k auth.Key, err error) {
	found, err := one(ctx, q, func(row pgx.Row) (err error) {
		k, err = scanKey(row)
		return err
	}, query, uuid(id))
	if err == nil && !found {
		err = auth.ErrNoKey
	}
	return k, err
}

// Create implements auth.Store.
func (s *Keys) Create(ctx context.Context, k auth.Key, plan auth.Plan, sum auth.Sum) (stored auth.Key, err error) {
	scopes := make([]string, len(k.Scopes))
	for i, scope := range k.Scopes {
		scopes[i] = string(scope)
	}
	err = s.links.transaction(ctx, func(ctx context.Context, t pgx.Tx) error {
		if _, err := t.Exec(ctx, sqlAddWorkspace, string(k.Workspace), string(plan), string(auth.PlanRegistered)); err != nil {
			return err
		}
		if err := orExists(changed(ctx, t, sqlInsertKey, uuid(k.ID), string(k.Workspace), []byte(k.Name), scopes,
			millis(k.Created), k.CreatedBy, millis(k.Expires), millis(k.Used))); err != nil {
			return err
		}
		if err := orExists(changed(ctx, t, sqlInsertSum, sum[:], uuid(k.ID))); err != nil {
			return err
		}
		stored, err = oneKey(ctx, t, sqlKey, k.ID)
		return err
	})
	if err != nil {
		return auth.Key{}, fmt.Errorf("create key %s: %w", k.ID, err)
	}
	return stored, nil
}

// orExists says that an insert without effect met what is there.
func orExists(rows int64, err error) error {
	if err == nil && rows == 0 {
		err = link.ErrExists
	}
	return err
}

// Find implements auth.Store.
func (s *Keys) Find(ctx context.Context, sum auth.Sum) (f auth.Found, err error) {
	err = s.links.reading(ctx, func(ctx context.Context, q querier) error {
		var stored []byte
		var until int64
		found, err := one(ctx, q, func(row pgx.Row) (err error) {
			f.Key, err = scanKey(row, &stored, &until)
			return err
		}, sqlFindKey, sum[:])
		copy(f.Sum[:], stored)
		if f.Until = timeOf(until); err == nil && !found {
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
	err = s.links.reading(ctx, func(ctx context.Context, q querier) error {
		k, err = oneKey(ctx, q, sqlKey, id)
		return err
	})
	if err != nil {
		return auth.Key{}, fmt.Errorf("get key %s: %w", id, err)
	}
	return k, nil
}

// List implements auth.Store.
func (s *Keys) List(ctx context.Context, f auth.KeyFilter, p auth.KeyPage) (keys []auth.Key, err error) {
	before := p.Before
	if before.IsZero() {
		before = lastID()
	}
	query, args := sqlKeys, []any{uuid(before), p.Limit}
	if f.Workspace != "" {
		query, args = sqlWorkspaceKeys, append(args, string(f.Workspace))
	}
	err = s.links.readingMany(ctx, func(ctx context.Context, q querier) error {
		keys = nil
		return each(ctx, q, func(row pgx.Row) error {
			k, err := scanKey(row)
			keys = append(keys, k)
			return err
		}, query, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return keys, nil
}

// Revoke implements auth.Store.
func (s *Keys) Revoke(ctx context.Context, id link.ID, keepShares bool) error {
	err := s.links.transaction(ctx, func(ctx context.Context, t pgx.Tx) error {
		gone, err := changed(ctx, t, sqlDropKey, uuid(id))
		if err == nil && gone == 0 {
			err = auth.ErrNoKey
		}
		if err == nil && keepShares {
			_, err = t.Exec(ctx, sqlKeepShares, uuid(id))
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
	err = s.links.reading(ctx, func(ctx context.Context, q querier) error {
		var there int
		stands, err = one(ctx, q, func(row pgx.Row) error { return row.Scan(&there) }, sqlVouches, uuid(id))
		return err
	})
	if err != nil {
		return false, fmt.Errorf("ask whether the shares of key %s stand: %w", id, err)
	}
	return stands, nil
}

// Rotate implements auth.Store.
func (s *Keys) Rotate(ctx context.Context, id link.ID, sum auth.Sum, until time.Time) (k auth.Key, err error) {
	err = s.links.transaction(ctx, func(ctx context.Context, t pgx.Tx) error {
		if k, err = oneKey(ctx, t, sqlLockKey, id); err != nil {
			return err
		}
		if until.IsZero() {
			_, err = t.Exec(ctx, sqlDropSums, uuid(id))
		} else if _, err = t.Exec(ctx, sqlDropRotated, uuid(id)); err == nil {
			_, err = t.Exec(ctx, sqlEndSums, millis(until), uuid(id))
		}
		if err != nil {
			return err
		}
		return orExists(changed(ctx, t, sqlInsertSum, sum[:], uuid(id)))
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
	var ids []pgtype.UUID
	var times []int64
	for id, at := range used {
		ids, times = append(ids, uuid(id)), append(times, millis(at))
	}
	err := s.links.writing(ctx, func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, sqlTouchKeys, ids, times)
		return err
	})
	if err != nil {
		return fmt.Errorf("note the use of keys: %w", err)
	}
	return nil
}
