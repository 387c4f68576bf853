package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"

	"curt/internal/backend/sqlite/linkrow"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
)

// integrityChunk bounds how long the row check keeps one state of the file open,
// which holds back checkpoints.
const integrityChunk = 10_000

// Integrity checks the structure of the file by SQLite's own check and the checksum
// of every row, and returns all damage it found wrapped in ErrCorrupt. curt doctor asks
// snapshots; this asks a store in use.
func (s *Links) Integrity(ctx context.Context) error {
	var damage []error
	err := s.db.Read(ctx, func(t *sqlitedb.Tx) error {
		return t.Each("PRAGMA quick_check(10)", func(row []driver.Value) error {
			if row[0] != "ok" {
				damage = append(damage, fmt.Errorf("%w: %v", sqlitedb.ErrCorrupt, row[0]))
			}
			return nil
		})
	})
	if errors.Is(err, sqlitedb.ErrCorrupt) { // the rows tell which links it hit
		damage, err = append(damage, err), nil
	}
	for last, more := int64(math.MinInt64), true; more && err == nil; {
		var bad []error
		last, more, bad, err = s.checkRows(ctx, last)
		damage = append(damage, bad...)
	}
	if err != nil {
		damage = append(damage, err)
	}
	if len(damage) > 0 {
		return fmt.Errorf("check curt.db: %w", errors.Join(damage...))
	}
	return nil
}

// checkRows checks the rows of one chunk: their checksum, and that their own key
// leads to them.
func (s *Links) checkRows(ctx context.Context, after int64) (last int64, more bool, damage []error, err error) {
	var keys []link.Key
	var rows []int64
	seen := 0
	err = s.db.Read(ctx, func(t *sqlitedb.Tx) error {
		return t.Each("SELECT "+linkrow.Columns+" FROM links WHERE n > ? ORDER BY n LIMIT ?", func(row []driver.Value) error {
			n, l, err := linkrow.Scan(row)
			last = n
			seen++
			if err != nil {
				damage = append(damage, err)
				return nil // the walk goes on, to find all damage
			}
			if at, ok := s.place(l.Key.Code); ok && at == n {
				return nil // a look-up begins here
			}
			keys, rows = append(keys, l.Key), append(rows, n)
			return nil
		}, after, int64(integrityChunk))
	})
	if err != nil {
		return last, false, damage, err
	}
	err = s.db.Read(ctx, func(t *sqlitedb.Tx) error {
		for i, k := range keys {
			if n, _, found, err := s.byKey(t, k); err != nil || !found || n != rows[i] {
				damage = append(damage, errors.Join(fmt.Errorf("row %d is not found by its key %s: %w", rows[i], k, sqlitedb.ErrCorrupt), err))
			}
		}
		return nil
	})
	return last, seen == integrityChunk, damage, err
}
