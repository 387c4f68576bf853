package postgres

import (
	"context"
	"database/sql/driver"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"curt/internal/backend/coldsql"
	"curt/internal/link"
	"curt/internal/moderation"
)

// Accounts are the accounts of a database. They end with what they were taken from.
type Accounts struct {
	coldsql.Accounts
	db       *database
	instance string
}

// Accounts returns the accounts beside the links.
func (s *Links) Accounts() Accounts { return accountsOf(s.database, s.config.Instance) }

func accountsOf(db *database, instance string) Accounts {
	return Accounts{coldsql.New(cold{db}), db, instance}
}

// Journal returns the journal of moderation, and how much of it has taken effect. Erased texts
// live on in the write-ahead log and in backups as long as those are kept.
func (a Accounts) Journal() Journal { return Journal{a.Accounts.Journal(), a.db, a.instance} }

// Journal is the journal of moderation, with what each instance has done of it.
type Journal struct {
	coldsql.Journal
	db       *database
	instance string
}

// The contracts that Journal keeps.
var (
	_ moderation.Journal       = Journal{}
	_ moderation.ProgressStore = Journal{}
	_ moderation.Peers         = Journal{}
)

// cold is the database as a coldsql.DB.
type cold struct{ db *database }

func (c cold) Dialect() *coldsql.Dialect { return c.db.dialect }

func (c cold) Read(ctx context.Context, f func(coldsql.Tx) error) error {
	return c.db.reading(ctx, c.on(f))
}

func (c cold) ReadMany(ctx context.Context, f func(coldsql.Tx) error) error {
	return c.db.readingMany(ctx, c.on(f))
}

func (c cold) Write(ctx context.Context, _ int, f func(coldsql.Tx) error) error {
	return c.db.transaction(ctx, func(ctx context.Context, t pgx.Tx) error { return c.on(f)(ctx, t) })
}

func (c cold) Change(ctx context.Context, _ int, f func(coldsql.Tx) error) error {
	return c.db.writing(ctx, c.on(f))
}

func (c cold) on(f func(coldsql.Tx) error) func(ctx context.Context, q querier) error {
	return func(ctx context.Context, q querier) error { return f(coldTx{ctx, q, c.db.dialect}) }
}

// coldTx is a querier as a coldsql.Tx.
type coldTx struct {
	ctx     context.Context //nolint:containedctx // a coldTx ends with the call that it was made for
	q       querier
	dialect *coldsql.Dialect
}

func (c coldTx) Exec(statement string, args ...any) (int64, error) {
	return changed(c.ctx, c.q, c.dialect.SQL(statement), coldArgs(args)...)
}

// ExecMany takes one round trip.
func (c coldTx) ExecMany(statement string, args [][]any) error {
	var all pgx.Batch
	for _, of := range args {
		all.Queue(c.dialect.SQL(statement), coldArgs(of)...)
	}
	return c.q.SendBatch(c.ctx, &all).Close()
}

func (c coldTx) Each(query string, f func(row []driver.Value) error, args ...any) error {
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
			a = uuid(v)
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
