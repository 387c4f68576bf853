package movein

import (
	"context"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/codegen"
	"curt/internal/link"
)

// Sink is a Target that takes links alone, from another store that servers share.
type Sink struct{ *Target }

// Identity returns what tells this database from any other, whatever URL names it.
func (t Sink) Identity(ctx context.Context) (string, error) { return identityOf(ctx, t.db) }

// Stored returns what an earlier run of a move between stores kept; nil = there was none.
func (t Sink) Stored(ctx context.Context) (text []byte, err error) {
	err = t.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		text = nil
		_, err := pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&text) }, sqlSetting, pgdb.SettingMove)
		return err
	})
	return text, err
}

// Store keeps how far a move between stores has come: JSON that begins as a pgdb.MoveState.
func (t Sink) Store(ctx context.Context, text []byte) error {
	return t.db.Transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlPutSetting, pgdb.SettingMove, text)
		return err
	})
}

// Begin has an empty database make codes with a key, and keeps how far a move between stores has
// come. ErrUsed: it is not empty.
func (t Sink) Begin(ctx context.Context, key [32]byte, text []byte) error {
	t.codes = codegen.NewPermutation(key)
	used := false
	err := t.db.Transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, sqlHasOthers).Scan(&used); err != nil || used {
			return err
		}
		// The accounts stay where they are: no server may take this database for theirs.
		for name, value := range map[string][]byte{pgdb.SettingCodeKey: key[:], coldsql.SettingApart: []byte(coldsql.Apart), pgdb.SettingMove: text} {
			if _, err := tx.Exec(ctx, sqlPutSetting, name, value); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && used {
		err = ErrUsed
	}
	return err
}

// Continue is in place of Begin where there was a run before.
func (t Sink) Continue(ctx context.Context, _ [32]byte) error {
	_, err := t.loadKey(ctx)
	return err
}

// Put is PutLinks, which keeps nothing.
func (t Sink) Put(ctx context.Context, links []link.Link) error { return t.PutLinks(ctx, links, nil) }

// GoOn has servers be given what others would have been given next.
func (t Sink) GoOn(ctx context.Context, from coldcopy.Issued) error {
	return coldcopy.WriteIssued(ctx, t.Cold(), from)
}
