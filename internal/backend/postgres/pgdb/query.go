package pgdb

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"curt/internal/link"
)

// NowMillis is the time of the database's clock within a statement, in Unix milliseconds.
const NowMillis = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

// Changed runs a statement and returns how many rows it changed.
func Changed(ctx context.Context, q Querier, statement string, args ...any) (int64, error) {
	tag, err := q.Exec(ctx, statement, args...)
	return tag.RowsAffected(), err
}

// One runs a query that returns one row at most.
func One(ctx context.Context, q Querier, scan func(pgx.Row) error, query string, args ...any) (found bool, err error) {
	err = scan(q.QueryRow(ctx, query, args...))
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Each runs a query and calls scan for every row.
func Each(ctx context.Context, q Querier, scan func(pgx.Row) error, query string, args ...any) error {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Querier is a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
	Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// directKey is where a connection keeps that no pooler is before the server.
const directKey = "curt direct"

// noteDirect finds out whether a connection leads to one process of the server: a pooler,
// which may give each transaction to another one, tells a number of its own at the start.
func noteDirect(ctx context.Context, c *pgx.Conn) error {
	var pid uint32
	if err := c.QueryRow(ctx, "SELECT pg_backend_pid()::bigint").Scan(&pid); err != nil {
		return err
	}
	c.PgConn().CustomData()[directKey] = pid == c.PgConn().PID()
	return nil
}

// direct reports what noteDirect found out.
func direct(c *pgx.Conn) bool {
	yes, _ := c.PgConn().CustomData()[directKey].(bool)
	return yes
}

// Prepared is how a statement is sent that many requests send: prepared where that is safe,
// because to plan it costs the server more than to run it.
func Prepared(c *pgx.Conn) pgx.QueryExecMode {
	if direct(c) {
		return pgx.QueryExecModeCacheStatement
	}
	return pgx.QueryExecModeCacheDescribe
}

// OnePrepared is one for a statement that many requests send. Within a transaction it is one.
func OnePrepared(ctx context.Context, q Querier, scan func(pgx.Row) error, query string, args ...any) (found bool, err error) {
	pool, ok := q.(*pgxpool.Pool)
	if !ok {
		return One(ctx, q, scan, query, args...)
	}
	c, err := pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer c.Release()
	return One(ctx, c, scan, query, append([]any{Prepared(c.Conn())}, args...)...)
}

// UUID is how an id is stored.
func UUID(id link.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }
