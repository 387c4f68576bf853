package sqlitedb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strings"
	"time"

	"modernc.org/sqlite"

	"curt/internal/link"
)

// Conn is one connection with its prepared statements, used by one goroutine at a
// time. It speaks to the driver itself: database/sql would convert every argument
// by reflection and ask for a context, for which the driver starts a goroutine per
// query. Statements here are short, so they run to their end; whoever waits for
// them watches his own context.
type Conn struct {
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

// NewConn takes a connection out of its pool for good.
func NewConn(ctx context.Context, db *sql.DB) (*Conn, error) {
	held, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("take a connection: %w", err)
	}
	return &Conn{held: held, stmts: make(map[string]statement)}, nil
}

// Do gives f the driver's connection; the methods below may be called only inside.
func (c *Conn) Do(f func(t *Tx) error) error {
	return c.held.Raw(func(dc any) error {
		preparer, ok := dc.(driver.ConnPrepareContext)
		if !ok {
			return errDriver
		}
		return f(&Tx{Conn: c, preparer: preparer})
	})
}

// Close closes the statements, and gives the connection back to its pool.
func (c *Conn) Close() error {
	errs := []error{}
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	clear(c.stmts)
	return errors.Join(append(errs, c.held.Close())...)
}

// discard closes the connection for good, instead of giving it back to its pool.
func (c *Conn) discard() {
	for _, s := range c.stmts {
		_ = s.Close() // what it says is known: the connection is given up because of it
	}
	clear(c.stmts)
	_ = c.held.Raw(func(any) error { return driver.ErrBadConn })
}

// Backup lends f a backup of what the connection sees, to the database that dsn names.
func (c *Conn) Backup(dsn string, f func(*sqlite.Backup) error) error {
	return c.held.Raw(func(dc any) error {
		from, ok := dc.(interface {
			NewBackup(to string) (*sqlite.Backup, error)
		})
		if !ok {
			return errDriver
		}
		b, err := from.NewBackup(dsn)
		if err != nil {
			return err
		}
		if err := f(b); err != nil {
			_ = b.Finish() // says the same again
			return err
		}
		return b.Finish()
	})
}

// Tx runs statements on a connection, inside or outside of a transaction.
type Tx struct {
	*Conn
	preparer driver.ConnPrepareContext
}

// Exec runs a statement and returns how many rows it changed. Arguments are int64,
// string or []byte.
func (t *Tx) Exec(query string, args ...any) (changed int64, err error) {
	r, err := t.result(query, args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Insert is exec for one row and returns the row's number.
func (t *Tx) Insert(query string, args ...any) (n int64, err error) {
	r, err := t.result(query, args)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

func (t *Tx) result(query string, args []any) (driver.Result, error) {
	s, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.Background(), t.named(args))
}

// Each calls f with every row; the values are valid during the call.
func (t *Tx) Each(query string, f func(row []driver.Value) error, args ...any) (err error) {
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

// One calls f with the first row and says whether there was one.
func (t *Tx) One(query string, f func(row []driver.Value) error, args ...any) (found bool, err error) {
	err = t.Each(query, func(row []driver.Value) error {
		if found {
			return nil
		}
		found = true
		return f(row)
	}, args...)
	return found, err
}

// Number returns the first column of the first row; found is false when there is no
// row or the column is NULL.
func (t *Tx) Number(query string, args ...any) (n int64, found bool, err error) {
	_, err = t.One(query, func(row []driver.Value) error {
		n, found = row[0].(int64)
		return nil
	}, args...)
	return n, found, err
}

// View runs f in a transaction that only reads: all that f reads is of one moment.
func (t *Tx) View(f func() error) error {
	if _, err := t.Exec(SQLBeginRead); err != nil {
		return err
	}
	err := f()
	_, end := t.Exec(SQLRollback) // nothing was written; releases the view
	return errors.Join(err, end)
}

func (t *Tx) prepare(query string) (statement, error) {
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

func (t *Tx) named(args []any) []driver.NamedValue {
	t.args = t.args[:0]
	for i, a := range args {
		t.args = append(t.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return t.args
}

// Ignore drops a row that a pragma returns.
func Ignore([]driver.Value) error { return nil }

// Scanner reads the columns of a row in order. The first column of another type than
// asked for makes it bad; SQLite's STRICT tables allow none, so that is damage.
type Scanner struct {
	Row []driver.Value
	Bad bool
}

// Next reads a column as it is.
func Next[T any](s *Scanner) T {
	var v T
	if len(s.Row) == 0 {
		s.Bad = true
		return v
	}
	v, ok := s.Row[0].(T)
	s.Bad = s.Bad || !ok
	s.Row = s.Row[1:]
	return v
}

// Optional reads a number that may be missing.
func (s *Scanner) Optional() (n int64, there bool) {
	if len(s.Row) > 0 && s.Row[0] == nil {
		s.Row = s.Row[1:]
		return 0, false
	}
	return s.Int(), true
}

// Maybe reads a text that may be missing.
func (s *Scanner) Maybe() (text string, there bool) {
	if len(s.Row) > 0 && s.Row[0] == nil {
		s.Row = s.Row[1:]
		return "", false
	}
	return s.Text(), true
}

// Text reads a text.
func (s *Scanner) Text() string { return Next[string](s) }

// Int reads an integer.
func (s *Scanner) Int() int64 { return Next[int64](s) }

// Bool reads an integer that is 0 or not.
func (s *Scanner) Bool() bool { return Next[int64](s) != 0 }

// Time reads milliseconds.
func (s *Scanner) Time() time.Time { return link.TimeOf(Next[int64](s)) }

// Blob reads a column that may be NULL. The bytes are the driver's, valid during
// the call that the row came in.
func (s *Scanner) Blob() []byte {
	if len(s.Row) > 0 && s.Row[0] == nil {
		s.Row = s.Row[1:]
		return nil
	}
	return Next[[]byte](s)
}

var errShortRow = errors.New("a column has another type")

// Damage says whether a column was missing or of another type.
func (s *Scanner) Damage() error {
	if s.Bad {
		return fmt.Errorf("%w: %w: %w", link.ErrUnavailable, ErrCorrupt, errShortRow)
	}
	return nil
}

// Bit is how a boolean is stored.
func Bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// RowsAtOnce is how many rows one statement takes at most. Beyond it the
// saving per row is below a tenth.
const RowsAtOnce = 64

// Groups returns n groups of placeholders: (?,?),(?,?).
func Groups(n, width int) string {
	group := "(" + strings.TrimSuffix(strings.Repeat("?,", width), ",") + ")"
	return strings.TrimSuffix(strings.Repeat(group+",", n), ",")
}

// Portions yields the sizes of the statements that take n rows, each at the most so many: powers
// of two, so that few statements have to be prepared.
func Portions(n, most int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for n > 0 {
			size := min(most, 1<<(bits.Len(uint(n))-1))
			if !yield(size) {
				return
			}
			n -= size
		}
	}
}

const SQLBeginRead = `BEGIN DEFERRED`
