package coldsql

import (
	"context"
	"database/sql/driver"
	"fmt"

	"curt/internal/link"
)

// DB is a database with the tables of accounts. Its errors are those of package link, and what
// f returns passes through. A DB may call f more than once, and a caller whose context ended may
// be gone while f of a write still runs: f sets anew all that it returns, and nothing of what a
// caller has returned.
type DB interface {
	Dialect() *Dialect

	// Read lends f a connection for a few single rows, ReadMany for lists.
	Read(ctx context.Context, f func(t Tx) error) error
	ReadMany(ctx context.Context, f func(t Tx) error) error

	// Write runs f in a transaction that writes up to some rows, durable when it returns nil.
	// An error of f undoes all that it did.
	Write(ctx context.Context, rows int, f func(t Tx) error) error

	// Change is Write for an f with one statement that changes anything, which needs no
	// transaction around it.
	Change(ctx context.Context, rows int, f func(t Tx) error) error
}

// Tx runs statements. Those of this package have the words of a Dialect in them. Arguments are
// int64, bool, string, []byte, link.ID, OptionalID, Text or Words.
type Tx interface {
	// Exec returns how many rows a statement changed.
	Exec(statement string, args ...any) (changed int64, err error)

	// ExecMany runs a statement once for each of several lists of arguments.
	ExecMany(statement string, args [][]any) error

	// Each calls f with every row, whose values are good during the call. What a driver says
	// of a column may be an int of any size, bool, string, []byte, [16]byte or []any.
	Each(query string, f func(row []driver.Value) error, args ...any) error
}

// The kinds of arguments that databases keep differently.
type (
	Text       string   // what people write, with any bytes
	Words      []string // none has a space in it
	OptionalID link.ID  // zero = none
)

// ErrDamaged means that a row is not what was written.
var ErrDamaged = fmt.Errorf("an account row is damaged: %w", link.ErrUnavailable)

// Accounts are all contracts over one database. They end with it.
type Accounts struct{ db DB }

// New returns the accounts of a database.
func New(db DB) Accounts { return Accounts{db} }

// DB is the database of all contracts.
func (a Accounts) DB() DB { return a.db }

// Database is where the accounts are, for other tables beside them.
func (a Accounts) Database() DB { return a.db }

// Keys are the API keys and their workspaces.
func (a Accounts) Keys() Keys { return Keys(a) }

// Shares are what share links are signed with.
func (a Accounts) Shares() Shares { return Shares(a) }

// Idempotency are the idempotency keys.
func (a Accounts) Idempotency() Idempotency { return Idempotency(a) }

// JobLeases say which server does what one of a fleet does.
func (a Accounts) JobLeases() JobLeases { return JobLeases(a) }

// Journal is the journal of moderation, without how much of it has taken effect.
func (a Accounts) Journal() Journal { return Journal(a) }

// Lists are the lists that moderators maintain, beside the journal.
func (a Accounts) Lists() Lists { return Lists(a) }

// Together runs f in one transaction over all contracts: whatever f does by the Accounts that it
// is given is durable when Together returns nil, and undone by an error of f. It writes up to some
// rows.
func (a Accounts) Together(ctx context.Context, rows int, f func(all Accounts) error) error {
	return a.db.Write(ctx, rows, func(t Tx) error { return f(Accounts{within{t, a.db.Dialect()}}) })
}

// within is a DB whose calls are all in one transaction.
type within struct {
	tx      Tx
	dialect *Dialect
}

func (w within) Dialect() *Dialect                                       { return w.dialect }
func (w within) Read(_ context.Context, f func(Tx) error) error          { return f(w.tx) }
func (w within) ReadMany(_ context.Context, f func(Tx) error) error      { return f(w.tx) }
func (w within) Write(_ context.Context, _ int, f func(Tx) error) error  { return f(w.tx) }
func (w within) Change(_ context.Context, _ int, f func(Tx) error) error { return f(w.tx) }

// One calls f with the first row of a query and says whether there was one.
func One(t Tx, query string, f func(r *Row), args ...any) (found bool, err error) {
	err = Each(t, query, func(r *Row) {
		if !found {
			found = true
			f(r)
		}
	}, args...)
	return found, err
}

// Each calls f with every row of a query.
func Each(t Tx, query string, f func(r *Row), args ...any) error {
	return t.Each(query, func(values []driver.Value) error {
		r := Row{values: values}
		f(&r)
		return r.damage()
	}, args...)
}

// Exists reports whether a query has a row.
func Exists(t Tx, query string, args ...any) (bool, error) {
	found := false
	err := t.Each(query, func([]driver.Value) error {
		found = true
		return nil
	}, args...)
	return found, err
}
