// Package refill fills a new data folder with what a database had: curt.db with the database's key of
// codes, so that codes and what is derived from the key stay good, and clicks.db with rows as they
// are. Read Links first. Nobody else uses the folder meanwhile.
package refill

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/counts"
)

const sqlCodeKey = `UPDATE settings SET value = $1 WHERE name = 'code_key'`

// Links makes the curt.db of a folder, with a key of codes.
func Links(ctx context.Context, folder string, key [32]byte) (*sqlite.Links, error) {
	config := sqlite.LinksConfig{Path: filepath.Join(folder, "curt.db")}
	fresh, err := sqlite.OpenLinks(ctx, config) // makes a key of its own
	if err != nil {
		return nil, err
	}
	sealed := binary.BigEndian.AppendUint32(key[:], crc32.Checksum(key[:], crc32.MakeTable(crc32.Castagnoli))) // package leases
	err = fresh.Accounts().Database().Change(ctx, 1, func(t coldsql.Tx) error {
		_, err := t.Exec(sqlCodeKey, sealed)
		return err
	})
	if err = errors.Join(err, fresh.Close()); err != nil {
		return nil, fmt.Errorf("store the key of codes: %w", err)
	}
	return sqlite.OpenLinks(ctx, config)
}

// Total and Rollup are rows of clicks.db; the columns are those of package moveout.
type (
	Total struct {
		N            int64
		Domain, Code string
		Counts       [7]int64
	}
	Rollup struct {
		ID                            int64
		Counts                        [5]int64
		Minutes, Dimensions, Visitors []byte
	}
)

// Counts is a new clicks.db that is being filled.
type Counts struct {
	db *sql.DB
	tx *sql.Tx
}

// NewCounts makes the clicks.db of a folder, which has counted nothing of its click log.
func NewCounts(ctx context.Context, folder string) (*Counts, error) {
	path := filepath.Join(folder, "clicks.db")
	empty, err := counts.Open(ctx, counts.Config{Path: path})
	if err == nil {
		err = empty.Close()
	}
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return &Counts{db, tx}, nil
}

const (
	sqlTotal = `INSERT INTO links (n, domain, code, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlRollup = `INSERT INTO rollups (id, clicks, humans, previews, fallbacks, refused, minutes, dimensions, visitors)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// Totals stores totals.
func (c *Counts) Totals(ctx context.Context, rows []Total) error {
	for _, r := range rows {
		n := r.Counts
		if _, err := c.tx.ExecContext(ctx, sqlTotal, r.N, r.Domain, r.Code, n[0], n[1], n[2], n[3], n[4], n[5], n[6]); err != nil {
			return fmt.Errorf("store totals: %w", err)
		}
	}
	return nil
}

// Rollups stores roll-ups.
func (c *Counts) Rollups(ctx context.Context, rows []Rollup) error {
	for _, r := range rows {
		n := r.Counts
		if _, err := c.tx.ExecContext(ctx, sqlRollup, r.ID, n[0], n[1], n[2], n[3], n[4], r.Minutes, r.Dimensions, r.Visitors); err != nil {
			return fmt.Errorf("store roll-ups: %w", err)
		}
	}
	return nil
}

// Close commits what was stored.
func (c *Counts) Close() error {
	if err := errors.Join(c.tx.Commit(), c.db.Close()); err != nil {
		return fmt.Errorf("store statistics: %w", err)
	}
	return nil
}
