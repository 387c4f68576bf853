package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

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

// often is how a statement is sent that many requests send: prepared where that is safe,
// because to plan it costs the server more than to run it.
func often(c *pgx.Conn) pgx.QueryExecMode {
	if direct(c) {
		return pgx.QueryExecModeCacheStatement
	}
	return pgx.QueryExecModeCacheDescribe
}

// oneOften is one for a statement that many requests send. Within a transaction it is one.
func oneOften(ctx context.Context, q querier, scan func(pgx.Row) error, query string, args ...any) (found bool, err error) {
	pool, ok := q.(*pgxpool.Pool)
	if !ok {
		return one(ctx, q, scan, query, args...)
	}
	c, err := pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer c.Release()
	return one(ctx, c, scan, query, append([]any{often(c.Conn())}, args...)...)
}
