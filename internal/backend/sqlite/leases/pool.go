package leases

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/codegen/keypool"
	"curt/internal/link"
)

// Keys are the pools of keys in curt.db. The state file has the mark of takenCounter: a curt.db that is older than that
// has keys as unused that links have by now, and loses its unused keys at the start, as every one does that is not
// certainly the newest and the only one.
type Keys struct{ leases *Leases }

var _ keypool.Store = Keys{}

// Keys are the pools of keys beside the leases.
func (s *Leases) Keys() Keys { return Keys{s} }

const (
	// batchCounter is the number of the next batch that is put, takenCounter is above that of each that was taken.
	batchCounter = "key-batches"
	takenCounter = "keys-taken"
)

const (
	sqlPutKeys     = `INSERT INTO unused_keys (batch, pool, size, keys) VALUES (?, ?, ?, ?)`
	sqlOldestKeys  = `SELECT batch, size, keys FROM unused_keys WHERE pool = ? ORDER BY batch LIMIT 1`
	sqlDropKeys    = `DELETE FROM unused_keys WHERE batch = ?`
	sqlHoldKeys    = `INSERT INTO used_keys (batch, pool, holder, size, leaked, held, taken, seen, keys) VALUES (?, ?, ?, ?, 0, 1, ?, ?, ?)`
	sqlHeldPool    = `SELECT pool FROM used_keys WHERE batch = ? AND holder = ? AND held = 1`
	sqlReleaseKeys = `UPDATE used_keys SET held = 0, keys = '', leaked = ?, size = size - ? WHERE batch = ?`
	sqlHeldBy      = `SELECT coalesce(sum(size), 0) FROM used_keys WHERE holder = ? AND held = 1`
	sqlAbandonKeys = `UPDATE used_keys SET held = 0, leaked = size WHERE holder = ? AND held = 1`
	sqlSeeKeys     = `UPDATE used_keys SET seen = ? WHERE holder = ? AND held = 1`
	sqlUnseen      = `SELECT coalesce(sum(size), 0) FROM used_keys WHERE held = 1 AND seen < ? AND holder <> ?`
	sqlLeakUnseen  = `UPDATE used_keys SET held = 0, leaked = size WHERE held = 1 AND seen < ? AND holder <> ?`
	sqlUnusedKeys  = `SELECT coalesce(sum(size), 0) FROM unused_keys WHERE pool = ?`
	sqlHeldKeys    = `SELECT coalesce(sum(size), 0) FROM used_keys WHERE held = 1 AND seen > 0 AND pool = ?`
	sqlLeakedKeys  = `SELECT coalesce(sum(leaked), 0) FROM used_keys WHERE pool = ? AND leaked > 0`
	sqlTakenKeys   = `SELECT coalesce(sum(size), 0) FROM used_keys WHERE pool = ? AND taken >= ?`
	sqlAllKeys     = `SELECT coalesce(sum(size), 0) FROM unused_keys`
	sqlDropAllKeys = `DELETE FROM unused_keys`
)

func keyStatements() map[string]string {
	return map[string]string{
		"put keys": sqlPutKeys, "oldest keys": sqlOldestKeys, "drop keys": sqlDropKeys, "hold keys": sqlHoldKeys, "held pool": sqlHeldPool,
		"release keys": sqlReleaseKeys, "held by": sqlHeldBy, "abandon keys": sqlAbandonKeys, "see keys": sqlSeeKeys, "unseen keys": sqlUnseen,
		"leak unseen": sqlLeakUnseen, "unused keys": sqlUnusedKeys, "held keys": sqlHeldKeys, "leaked keys": sqlLeakedKeys, "taken keys": sqlTakenKeys,
	}
}

// Put implements keypool.Store.
func (k Keys) Put(ctx context.Context, pool string, keys []link.Code) error {
	text, err := keypool.Encode(keys)
	if err == nil {
		err = k.leases.db.Write(ctx, 1, func(t *sqlitedb.Tx) error { return putKeys(t, pool, len(keys), text) })
	}
	if err != nil {
		return fmt.Errorf("put keys into %s: %w", pool, err)
	}
	return nil
}

func putKeys(t *sqlitedb.Tx, pool string, size int, text string) error {
	n, _, err := t.Number(SQLLeased, batchCounter)
	if err == nil {
		_, err = t.Exec(sqlLease, batchCounter, n+1)
	}
	if err == nil {
		_, err = t.Exec(sqlPutKeys, n, pool, int64(size), text)
	}
	return err
}

// Take implements keypool.Store.
func (k Keys) Take(ctx context.Context, pool, holder string) (keypool.Batch, error) {
	var batch, size int64
	var text string
	oldest := func(t *sqlitedb.Tx) error {
		found, err := t.One(sqlOldestKeys, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			batch, size, text = sc.Int(), sc.Int(), sc.Text()
			return sc.Damage()
		}, pool)
		if err == nil && !found {
			err = keypool.ErrEmpty
		}
		return err
	}
	err := k.leases.db.Read(ctx, oldest) // an empty pool costs no write
	if err == nil {
		err = k.leases.db.Write(ctx, 1, func(t *sqlitedb.Tx) error {
			err := oldest(t)
			if err == nil {
				_, err = t.Exec(sqlDropKeys, batch)
			}
			now := time.Now().UnixMilli()
			if err == nil {
				_, err = t.Exec(sqlHoldKeys, batch, pool, holder, size, now, now, text)
			}
			if err == nil {
				err = raise(t, takenCounter, batch+1)
			}
			return err
		})
	}
	if err == nil {
		err = k.leases.keepLease(takenCounter, uint64(batch)+1)
	}
	if err != nil {
		return keypool.Batch{}, fmt.Errorf("take keys of %s: %w", pool, err)
	}
	b := keypool.Batch{ID: uint64(batch), Holder: holder}
	if b.Keys, err = keypool.Decode(text); err != nil {
		return keypool.Batch{}, fmt.Errorf("take keys of %s: %w", pool, errors.Join(err, k.Release(ctx, b, nil, int(size))))
	}
	return b, nil
}

// raise has a counter at a number or above.
func raise(t *sqlitedb.Tx, counter string, above int64) error {
	mark, _, err := t.Number(SQLLeased, counter)
	if err == nil && mark < above {
		_, err = t.Exec(sqlLease, counter, above)
	}
	return err
}

// Release implements keypool.Store.
func (k Keys) Release(ctx context.Context, b keypool.Batch, rest []link.Code, leaked int) error {
	text, err := "", error(nil)
	if len(rest) > 0 {
		text, err = keypool.Encode(rest)
	}
	if err == nil {
		err = k.leases.db.Write(ctx, 1, func(t *sqlitedb.Tx) error {
			var pool string
			found, err := t.One(sqlHeldPool, func(row []driver.Value) error {
				sc := sqlitedb.Scanner{Row: row}
				pool = sc.Text()
				return sc.Damage()
			}, int64(b.ID), b.Holder)
			switch {
			case err != nil:
				return err
			case !found:
				return link.ErrNotFound
			case len(rest) > 0:
				err = putKeys(t, pool, len(rest), text)
			}
			if err == nil {
				_, err = t.Exec(sqlReleaseKeys, int64(leaked), int64(len(rest)), int64(b.ID))
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("release batch %d of keys: %w", b.ID, err)
	}
	return nil
}

// Abandon implements keypool.Store.
func (k Keys) Abandon(ctx context.Context, holder string) (uint64, error) {
	var leaked int64
	err := k.leases.db.Write(ctx, 1, func(t *sqlitedb.Tx) (err error) {
		if leaked, _, err = t.Number(sqlHeldBy, holder); err == nil && leaked > 0 {
			_, err = t.Exec(sqlAbandonKeys, holder)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("abandon keys of %s: %w", holder, err)
	}
	return uint64(leaked), nil
}

// Renew implements keypool.Store.
func (k Keys) Renew(ctx context.Context, holder string, silence time.Duration) (uint64, error) {
	var leaked int64
	err := k.leases.db.Write(ctx, 1, func(t *sqlitedb.Tx) error {
		now := time.Now()
		_, err := t.Exec(sqlSeeKeys, now.UnixMilli(), holder)
		before := now.Add(-silence).UnixMilli()
		if err == nil {
			leaked, _, err = t.Number(sqlUnseen, before, holder)
		}
		if err == nil && leaked > 0 {
			_, err = t.Exec(sqlLeakUnseen, before, holder)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("renew keys of %s: %w", holder, err)
	}
	return uint64(leaked), nil
}

// Level implements keypool.Store.
func (k Keys) Level(ctx context.Context, pool string) (l keypool.Level, err error) {
	err = k.leases.db.Read(ctx, func(t *sqlitedb.Tx) error {
		return t.View(func() error {
			for _, count := range []struct {
				to    *uint64
				query string
				args  []any
			}{
				{&l.Unused, sqlUnusedKeys, []any{pool}},
				{&l.Held, sqlHeldKeys, []any{pool}},
				{&l.Leaked, sqlLeakedKeys, []any{pool}},
				{&l.Taken, sqlTakenKeys, []any{pool, time.Now().Add(-keypool.RateWindow).UnixMilli()}},
			} {
				n, _, err := t.Number(count.query, count.args...)
				if err != nil {
					return err
				}
				*count.to = uint64(n)
			}
			return nil
		})
	})
	if err != nil {
		return keypool.Level{}, fmt.Errorf("read the level of %s: %w", pool, err)
	}
	return l, nil
}

// dropStale leaves a store without unused keys that may be another store's, or were taken behind its back. uncertain
// says that ids had to be skipped, or that what was confirmed is missing.
func (s *Leases) dropStale(ctx context.Context, o Outlook, uncertain bool) error {
	known := int64(o.state.Leases[takenCounter])
	var dropped int64
	err := s.db.Write(ctx, 1, func(t *sqlitedb.Tx) error {
		taken, _, err := t.Number(SQLLeased, takenCounter)
		if err != nil || !uncertain && known <= taken {
			return err
		}
		if dropped, _, err = t.Number(sqlAllKeys); err == nil && dropped > 0 { // a DELETE of nothing writes pages
			_, err = t.Exec(sqlDropAllKeys)
		}
		for _, counter := range []string{takenCounter, batchCounter} { // the next takes are above what the file knows
			if err == nil {
				err = raise(t, counter, known)
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("drop unused keys: %w", err)
	}
	if dropped > 0 {
		s.log.WarnContext(ctx, "unused keys may have been used elsewhere, dropped them", slog.Int64("keys", dropped))
	}
	return nil
}
