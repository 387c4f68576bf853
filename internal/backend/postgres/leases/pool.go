package leases

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/codegen"
	"curt/internal/codegen/keypool"
	"curt/internal/link"
)

// Keys are the pools of keys in the database. A database that was restored to a moment in the past has keys as unused
// that links had since. Whoever restores one raises the counter of the epoch (codegen.SkipRestored), and
// batches of another epoch than the present one are not there.
type Keys struct{ db *pgdb.Database }

var _ keypool.Store = Keys{}

// Keys are the pools of keys beside the leases.
func (s *Leases) Keys() Keys { return Keys{s.db} }

const (
	sqlEpoch   = `coalesce((SELECT next FROM leases WHERE counter = '` + codegen.KeysEpoch + `'), 0)`
	sqlPutKeys = `INSERT INTO unused_keys (epoch, pool, size, keys) VALUES (` + sqlEpoch + `, $1, $2, $3)`
)

// Put implements keypool.Store.
func (k Keys) Put(ctx context.Context, pool string, keys []link.Code) error {
	text, err := keypool.Encode(keys)
	if err == nil {
		err = k.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
			_, err := q.Exec(ctx, sqlPutKeys, pool, len(keys), text)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("put keys into %s: %w", pool, err)
	}
	return nil
}

const sqlNow = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

// Takers do not wait for each other: each skips the row that another one is moving.
const sqlTakeKeys = `WITH oldest AS (
		SELECT batch FROM unused_keys WHERE epoch = ` + sqlEpoch + ` AND pool = $1 ORDER BY batch LIMIT 1 FOR UPDATE SKIP LOCKED
	), moved AS (
		DELETE FROM unused_keys AS u USING oldest WHERE u.batch = oldest.batch RETURNING u.batch, u.pool, u.size, u.keys
	)
	INSERT INTO used_keys (batch, pool, holder, size, leaked, held, taken, seen, keys)
	SELECT batch, pool, $2, size, 0, true, ` + sqlNow + `, ` + sqlNow + `, keys FROM moved
	RETURNING batch, size, keys`

// Take implements keypool.Store.
func (k Keys) Take(ctx context.Context, pool, holder string) (keypool.Batch, error) {
	var batch int64
	var size int
	var text string
	found := false
	err := k.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) (err error) {
		found, err = pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&batch, &size, &text) }, sqlTakeKeys, pool, holder)
		return err
	})
	if err == nil && !found {
		err = keypool.ErrEmpty
	}
	if err != nil {
		return keypool.Batch{}, fmt.Errorf("take keys of %s: %w", pool, err)
	}
	b := keypool.Batch{ID: uint64(batch), Holder: holder}
	if b.Keys, err = keypool.Decode(text); err != nil {
		return keypool.Batch{}, fmt.Errorf("take keys of %s: %w", pool, errors.Join(err, k.Release(ctx, b, nil, size)))
	}
	return b, nil
}

const sqlReleaseKeys = `WITH ended AS (
		UPDATE used_keys SET held = false, keys = '', leaked = $3, size = size - $4::integer WHERE batch = $1 AND holder = $2 AND held RETURNING pool
	), back AS (
		INSERT INTO unused_keys (epoch, pool, size, keys) SELECT ` + sqlEpoch + `, pool, $4::integer, $5 FROM ended WHERE $4::integer > 0
	)
	SELECT true FROM ended`

// Release implements keypool.Store.
func (k Keys) Release(ctx context.Context, b keypool.Batch, rest []link.Code, leaked int) error {
	text, err := "", error(nil)
	if len(rest) > 0 {
		text, err = keypool.Encode(rest)
	}
	if err == nil {
		err = k.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
			held := false
			scan := func(row pgx.Row) error { return row.Scan(&held) }
			found, err := pgdb.One(ctx, q, scan, sqlReleaseKeys, int64(b.ID), b.Holder, leaked, len(rest), text)
			if err == nil && !found {
				err = link.ErrNotFound
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("release batch %d of keys: %w", b.ID, err)
	}
	return nil
}

const sqlAbandonKeys = `WITH stale AS (DELETE FROM unused_keys WHERE epoch < ` + sqlEpoch + `),
	lost AS (UPDATE used_keys SET held = false, leaked = size WHERE holder = $1 AND held RETURNING size)
	SELECT coalesce(sum(size), 0)::bigint FROM lost`

// Abandon implements keypool.Store.
func (k Keys) Abandon(ctx context.Context, holder string) (leaked uint64, err error) {
	if leaked, err = k.leak(ctx, sqlAbandonKeys, holder); err != nil {
		return 0, fmt.Errorf("abandon keys of %s: %w", holder, err)
	}
	return leaked, nil
}

const sqlRenewKeys = `WITH alive AS (UPDATE used_keys SET seen = ` + sqlNow + ` WHERE holder = $1 AND held),
	lost AS (UPDATE used_keys SET held = false, leaked = size WHERE held AND seen < ` + sqlNow + ` - $2 AND holder <> $1 RETURNING size)
	SELECT coalesce(sum(size), 0)::bigint FROM lost`

// Renew implements keypool.Store.
func (k Keys) Renew(ctx context.Context, holder string, silence time.Duration) (leaked uint64, err error) {
	if leaked, err = k.leak(ctx, sqlRenewKeys, holder, silence.Milliseconds()); err != nil {
		return 0, fmt.Errorf("renew keys of %s: %w", holder, err)
	}
	return leaked, nil
}

func (k Keys) leak(ctx context.Context, statement string, args ...any) (leaked uint64, err error) {
	var n int64
	err = k.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
		_, err := pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&n) }, statement, args...)
		return err
	})
	return uint64(n), err
}

const sqlLevel = `SELECT
	(SELECT coalesce(sum(size), 0)::bigint FROM unused_keys WHERE epoch = ` + sqlEpoch + ` AND pool = $1),
	(SELECT coalesce(sum(size), 0)::bigint FROM used_keys WHERE pool = $1 AND held),
	(SELECT coalesce(sum(leaked), 0)::bigint FROM used_keys WHERE pool = $1 AND leaked > 0),
	(SELECT coalesce(sum(size), 0)::bigint FROM used_keys WHERE pool = $1 AND taken >= ` + sqlNow + ` - $2)`

// Level implements keypool.Store.
func (k Keys) Level(ctx context.Context, pool string) (keypool.Level, error) {
	var unused, held, leaked, taken int64
	err := k.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		_, err := pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&unused, &held, &leaked, &taken) }, sqlLevel, pool, keypool.RateWindow.Milliseconds())
		return err
	})
	if err != nil {
		return keypool.Level{}, fmt.Errorf("read the level of %s: %w", pool, err)
	}
	return keypool.Level{Unused: uint64(unused), Held: uint64(held), Leaked: uint64(leaked), Taken: uint64(taken)}, nil
}
