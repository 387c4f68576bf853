package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// transaction runs f in a transaction, within the limit of a call, and again when the
// server undid it because of others: f must set all that it returns anew. An error of f
// undoes everything.
func (s *database) transaction(ctx context.Context, f func(ctx context.Context, t pgx.Tx) error) error {
	return s.writing(ctx, func(ctx context.Context, _ querier) error {
		return pgx.BeginFunc(ctx, s.write, func(t pgx.Tx) error { return f(ctx, t) })
	})
}

// changed runs a statement and returns how many rows it changed.
func changed(ctx context.Context, q querier, statement string, args ...any) (int64, error) {
	tag, err := q.Exec(ctx, statement, args...)
	return tag.RowsAffected(), err
}
