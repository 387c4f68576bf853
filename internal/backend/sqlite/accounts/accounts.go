// Package accounts keeps API keys, shares, cases and the journal of moderation in curt.db, by the
// statements of package coldsql. Read accounts.go first.
package accounts

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
)

// Accounts are the accounts in curt.db. They share the group commit of the Links that they were
// taken from, and end with them.
type Accounts struct {
	coldsql.Accounts
	db *sqlitedb.Store
}

// New returns the accounts in db.
func New(c DB) Accounts { return Accounts{coldsql.New(c), c.db} }

// Journal returns the journal of moderation, and how much of it has taken effect.
func (a Accounts) Journal() Journal { return Journal{a.Accounts.Journal(), a.db} }

// DB is curt.db as a coldsql.DB.
type DB struct {
	db      *sqlitedb.Store
	dialect *coldsql.Dialect
}

// NewDB returns curt.db as a coldsql.DB.
func NewDB(db *sqlitedb.Store) DB { return DB{db, coldsql.SQLite()} }

// Dialect implements coldsql.DB.
func (c DB) Dialect() *coldsql.Dialect { return c.dialect }

// Read implements coldsql.DB.
func (c DB) Read(ctx context.Context, f func(coldsql.Tx) error) error {
	return c.db.Read(ctx, func(t *sqlitedb.Tx) error { return f(accountsTx{t, c.dialect}) })
}

// ReadMany implements coldsql.DB.
func (c DB) ReadMany(ctx context.Context, f func(coldsql.Tx) error) error {
	return c.db.ReadMany(ctx, func(t *sqlitedb.Tx) error { return f(accountsTx{t, c.dialect}) })
}

const (
	sqlSavepoint = `SAVEPOINT cold`
	sqlUndo      = `ROLLBACK TO cold`
	sqlRelease   = `RELEASE cold`
)

// Write implements coldsql.DB. It undoes what f did by a savepoint: the transaction goes on with what others write.
func (c DB) Write(ctx context.Context, rows int, f func(coldsql.Tx) error) error {
	return c.db.Write(ctx, rows, func(t *sqlitedb.Tx) error {
		if _, err := t.Exec(sqlSavepoint); err != nil {
			return err
		}
		err := f(accountsTx{t, c.dialect})
		if sqlitedb.ResultCode(err) != 0 {
			return err // the writer undoes it
		}
		if err != nil {
			if _, err := t.Exec(sqlUndo); err != nil {
				return err
			}
		}
		if _, err := t.Exec(sqlRelease); err != nil {
			return err
		}
		return err
	})
}

// Change implements coldsql.DB.
func (c DB) Change(ctx context.Context, rows int, f func(coldsql.Tx) error) error {
	return c.db.Write(ctx, rows, func(t *sqlitedb.Tx) error { return f(accountsTx{t, c.dialect}) })
}

// accountsTx is a tx as a coldsql.Tx.
type accountsTx struct {
	t       *sqlitedb.Tx
	dialect *coldsql.Dialect
}

func (c accountsTx) Exec(statement string, args ...any) (int64, error) {
	return c.t.Exec(c.dialect.SQL(statement), coldArgs(args)...)
}

func (c accountsTx) ExecMany(statement string, args [][]any) error {
	for _, of := range args {
		if _, err := c.Exec(statement, of...); err != nil {
			return err
		}
	}
	return nil
}

func (c accountsTx) Each(query string, f func(row []driver.Value) error, args ...any) error {
	err := c.t.Each(c.dialect.SQL(query), f, coldArgs(args)...)
	if errors.Is(err, coldsql.ErrDamaged) {
		err = fmt.Errorf("%w: %w", err, sqlitedb.ErrCorrupt)
	}
	return err
}

// coldArgs are arguments as the tables of accounts have them.
func coldArgs(args []any) []any {
	all := make([]any, len(args))
	for i, a := range args {
		switch v := a.(type) {
		case bool:
			a = sqlitedb.Bit(v)
		case link.ID:
			a = v[:]
		case coldsql.OptionalID:
			if a = []byte{}; v != (coldsql.OptionalID{}) {
				a = v[:]
			}
		case coldsql.Text:
			a = string(v)
		case coldsql.Words:
			a = strings.Join(v, " ")
		}
		all[i] = a
	}
	return all
}
