package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"curt/internal/backend/coldsql"
	"curt/internal/link"
)

// Accounts are the accounts in curt.db. They share the group commit of the Links that they were
// taken from, and end with them.
type Accounts struct {
	coldsql.Accounts
	links *Links
}

// Accounts returns the accounts beside the links.
func (s *Links) Accounts() Accounts { return Accounts{coldsql.New(cold{s}), s} }

// Journal returns the journal of moderation, and how much of it has taken effect.
func (a Accounts) Journal() Journal { return Journal{a.Accounts.Journal(), a.links} }

const (
	sqlSavepoint = `SAVEPOINT cold`
	sqlUndo      = `ROLLBACK TO cold`
	sqlRelease   = `RELEASE cold`
)

// cold is curt.db as a coldsql.DB.
type cold struct{ links *Links }

func (c cold) Dialect() *coldsql.Dialect { return c.links.dialect }

func (c cold) Read(ctx context.Context, f func(coldsql.Tx) error) error {
	return c.links.read(ctx, func(t *tx) error { return f(coldTx{t, c.links.dialect}) })
}

func (c cold) ReadMany(ctx context.Context, f func(coldsql.Tx) error) error {
	return c.links.readMany(ctx, func(t *tx) error { return f(coldTx{t, c.links.dialect}) })
}

// Write undoes what f did by a savepoint: the transaction goes on with what others write.
func (c cold) Write(ctx context.Context, rows int, f func(coldsql.Tx) error) error {
	return c.links.writer.write(ctx, rows, func(t *tx) error {
		if _, err := t.exec(sqlSavepoint); err != nil {
			return err
		}
		err := f(coldTx{t, c.links.dialect})
		if resultCode(err) != 0 {
			return err // the writer undoes it
		}
		if err != nil {
			if _, err := t.exec(sqlUndo); err != nil {
				return err
			}
		}
		if _, err := t.exec(sqlRelease); err != nil {
			return err
		}
		return err
	})
}

func (c cold) Change(ctx context.Context, rows int, f func(coldsql.Tx) error) error {
	return c.links.writer.write(ctx, rows, func(t *tx) error { return f(coldTx{t, c.links.dialect}) })
}

// coldTx is a tx as a coldsql.Tx.
type coldTx struct {
	t       *tx
	dialect *coldsql.Dialect
}

func (c coldTx) Exec(statement string, args ...any) (int64, error) {
	return c.t.exec(c.dialect.SQL(statement), coldArgs(args)...)
}

func (c coldTx) ExecMany(statement string, args [][]any) error {
	for _, of := range args {
		if _, err := c.Exec(statement, of...); err != nil {
			return err
		}
	}
	return nil
}

func (c coldTx) Each(query string, f func(row []driver.Value) error, args ...any) error {
	err := c.t.each(c.dialect.SQL(query), f, coldArgs(args)...)
	if errors.Is(err, coldsql.ErrDamaged) {
		err = fmt.Errorf("%w: %w", err, ErrCorrupt)
	}
	return err
}

// coldArgs are arguments as the tables of accounts have them.
func coldArgs(args []any) []any {
	all := make([]any, len(args))
	for i, a := range args {
		switch v := a.(type) {
		case bool:
			a = bit(v)
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
