package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// conn is one connection with its prepared statements, used by one goroutine at a
// time. It speaks to the driver itself: database/sql would convert every argument
// by reflection and ask for a context, for which the driver starts a goroutine per
// query. Statements here are short, so they run to their end; whoever waits for
// them watches his own context.
type conn struct {
	held  *sql.Conn
	stmts map[string]statement
	args  []driver.NamedValue // reused by each statement
}

// statement is what the driver's prepared statements offer.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

var errDriver = errors.New("the SQLite driver lacks a method")

// newConn takes a connection out of its pool for good.
func newConn(ctx context.Context, db *sql.DB) (*conn, error) {
	held, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("take a connection: %w", err)
	}
	return &conn{held: held, stmts: make(map[string]statement)}, nil
}

// do gives f the driver's connection; the methods below may be called only inside.
func (c *conn) do(f func(t *tx) error) error {
	return c.held.Raw(func(dc any) error {
		preparer, ok := dc.(driver.ConnPrepareContext)
		if !ok {
			return errDriver
		}
		return f(&tx{conn: c, preparer: preparer})
	})
}

func (c *conn) close() error {
	errs := []error{}
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	clear(c.stmts)
	return errors.Join(append(errs, c.held.Close())...)
}

// discard closes the connection for good, instead of giving it back to its pool.
func (c *conn) discard() {
	for _, s := range c.stmts {
		_ = s.Close() // what it says is known: the connection is given up because of it
	}
	clear(c.stmts)
	_ = c.held.Raw(func(any) error { return driver.ErrBadConn })
}

// tx runs statements on a connection, inside or outside of a transaction.
type tx struct {
	*conn
	preparer driver.ConnPrepareContext
}

// exec runs a statement and returns how many rows it changed. Arguments are int64,
// string or []byte.
func (t *tx) exec(query string, args ...any) (changed int64, err error) {
	r, err := t.result(query, args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// insert is exec for one row and returns the row's number.
func (t *tx) insert(query string, args ...any) (n int64, err error) {
	r, err := t.result(query, args)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

func (t *tx) result(query string, args []any) (driver.Result, error) {
	s, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.Background(), t.named(args))
}

// each calls f with every row; the values are valid during the call.
func (t *tx) each(query string, f func(row []driver.Value) error, args ...any) (err error) {
	s, err := t.prepare(query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), t.named(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
}

// one calls f with the first row and says whether there was one.
func (t *tx) one(query string, f func(row []driver.Value) error, args ...any) (found bool, err error) {
	err = t.each(query, func(row []driver.Value) error {
		if found {
			return nil
		}
		found = true
		return f(row)
	}, args...)
	return found, err
}

// number returns the first column of the first row; found is false when there is no
// row or the column is NULL.
func (t *tx) number(query string, args ...any) (n int64, found bool, err error) {
	_, err = t.one(query, func(row []driver.Value) error {
		n, found = row[0].(int64)
		return nil
	}, args...)
	return n, found, err
}

func (t *tx) prepare(query string) (statement, error) {
	if s, ok := t.stmts[query]; ok {
		return s, nil
	}
	prepared, err := t.preparer.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	s, ok := prepared.(statement)
	if !ok {
		return nil, errors.Join(errDriver, prepared.Close())
	}
	t.stmts[query] = s
	return s, nil
}

func (t *tx) named(args []any) []driver.NamedValue {
	t.args = t.args[:0]
	for i, a := range args {
		t.args = append(t.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return t.args
}
