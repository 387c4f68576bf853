// Package accounts keeps API keys, shares, cases and the journal of moderation in PostgreSQL, by
// the statements of package coldsql: beside the links, or in a database of their own. Read
// accounts.go first.
package accounts

import (
	"context"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/moderation"
)

// Accounts are the accounts of a database. They end with what they were taken from.
type Accounts struct {
	coldsql.Accounts
	db       *pgdb.Database
	instance string
}

// New returns the accounts of a database, for an instance.
func New(db *pgdb.Database, instance string) Accounts {
	return Accounts{coldsql.New(NewDB(db)), db, instance}
}

// Journal returns the journal of moderation, and how much of it has taken effect. Erased texts
// live on in the write-ahead log and in backups as long as those are kept.
func (a Accounts) Journal() Journal { return Journal{a.Accounts.Journal(), a.db, a.instance} }

// Journal is the journal of moderation, with what each instance has done of it.
type Journal struct {
	coldsql.Journal
	db       *pgdb.Database
	instance string
}

// The contracts that Journal keeps.
var (
	_ moderation.Journal       = Journal{}
	_ moderation.ProgressStore = Journal{}
	_ moderation.Peers         = Journal{}
)

// DB is the database as a coldsql.DB.
type DB struct{ db *pgdb.Database }

// NewDB returns a database as a coldsql.DB.
func NewDB(db *pgdb.Database) DB { return DB{db} }

// Dialect implements coldsql.DB.
func (c DB) Dialect() *coldsql.Dialect { return c.db.Dialect }

// Read implements coldsql.DB.
func (c DB) Read(ctx context.Context, f func(coldsql.Tx) error) error {
	return c.db.Read(ctx, c.on(f))
}

// ReadMany implements coldsql.DB.
func (c DB) ReadMany(ctx context.Context, f func(coldsql.Tx) error) error {
	return c.db.ReadMany(ctx, c.on(f))
}

// batchRows are so many that a busy database may take longer for them than a caller of one row waits.
const batchRows = 100

// Write implements coldsql.DB.
func (c DB) Write(ctx context.Context, rows int, f func(coldsql.Tx) error) error {
	transact := c.db.Transact
	if rows >= batchRows {
		transact = c.db.TransactMany
	}
	return transact(ctx, func(ctx context.Context, t pgx.Tx) error { return c.on(f)(ctx, t) })
}

// Change implements coldsql.DB.
func (c DB) Change(ctx context.Context, _ int, f func(coldsql.Tx) error) error {
	return c.db.Write(ctx, c.on(f))
}

func (c DB) on(f func(coldsql.Tx) error) func(ctx context.Context, q pgdb.Querier) error {
	return func(ctx context.Context, q pgdb.Querier) error { return f(accountsTx{ctx, q, c.db.Dialect}) }
}

// accountsTx is a querier as a coldsql.Tx.
type accountsTx struct {
	ctx     context.Context //nolint:containedctx // a coldTx ends with the call that it was made for
	q       pgdb.Querier
	dialect *coldsql.Dialect
}

// Exec implements coldsql.Tx.
func (c accountsTx) Exec(statement string, args ...any) (int64, error) {
	return pgdb.Changed(c.ctx, c.q, c.dialect.SQL(statement), coldArgs(args)...)
}

// ExecMany takes one round trip.
func (c accountsTx) ExecMany(statement string, args [][]any) error {
	var all pgx.Batch
	for _, of := range args {
		all.Queue(c.dialect.SQL(statement), coldArgs(of)...)
	}
	return c.q.SendBatch(c.ctx, &all).Close()
}

// Each implements coldsql.Tx.
func (c accountsTx) Each(query string, f func(row []driver.Value) error, args ...any) error {
	rows, err := c.q.Query(c.ctx, c.dialect.SQL(query), coldArgs(args)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var row []driver.Value
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return err
		}
		row = row[:0]
		for _, v := range values {
			row = append(row, v)
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// coldArgs are arguments as the tables of accounts have them.
func coldArgs(args []any) []any {
	all := make([]any, len(args))
	for i, a := range args {
		switch v := a.(type) {
		case link.ID:
			a = pgdb.UUID(v)
		case coldsql.OptionalID:
			a = pgtype.UUID{Bytes: v, Valid: v != coldsql.OptionalID{}}
		case coldsql.Text:
			a = []byte(v)
		case coldsql.Words:
			a = []string(v)
		}
		all[i] = a
	}
	return all
}

// Config says which database of accounts is opened, and how.
type Config struct {
	URL      string // as that of links
	Instance string // as that of links
	Of       []byte // says whose accounts they are
	Log      *slog.Logger
}

// Store is a database of accounts whose links are elsewhere. Its schema is that of links,
// whose tables stay empty.
//
// Run must be running for Healthy to say something.
type Store struct {
	Accounts

	closing sync.Once
}

// readConns and accountWriters bound the connections: accounts are asked once for a write of
// links, at the most, and never for a visitor.
const readConns, writeConns = 4, 2

// Open connects and brings the schema up to date.
func Open(ctx context.Context, config Config) (*Store, error) {
	db := pgdb.New(pgdb.AccountsHealth(config.Of), readConns, config.Log)
	if err := db.Connect(ctx, config.URL, readConns, writeConns); err != nil {
		db.ClosePools()
		return nil, fmt.Errorf("open accounts: %w", err)
	}
	return &Store{Accounts: New(db, config.Instance)}, nil
}

// Run looks after the database until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	for range background.Every(ctx, pgdb.HealthEvery) {
		s.db.CheckHealth(ctx)
	}
	return context.Cause(ctx)
}

// Close waits for calls under way and closes the connections. A second Close does nothing.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.db.Closed.Store(true)
		s.db.ClosePools()
	})
	return nil
}

// Healthy returns nil while the server takes writes, and why not otherwise. It does no I/O.
func (s *Store) Healthy() error { return s.db.Healthy() }

// Tables returns nil while this process can work there, and why not otherwise. It does no I/O.
func (s *Store) Tables() error { return s.db.Tables() }
