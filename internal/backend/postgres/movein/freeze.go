package movein

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/codegen"
)

// Frozen is a database whose links nobody writes: it is a transaction that holds a lock on the table,
// which ends with the connection, so that a mover that dies leaves nothing behind. Writers wait for it,
// as long as their calls last.
type Frozen struct {
	conn *pgxpool.Conn
	tx   pgx.Tx
	of   []byte
}

const (
	// Other writers queue behind whoever waits for a lock.
	sqlWait    = `SET LOCAL lock_timeout = '1s'`
	sqlPatient = `SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0`
	sqlFreeze  = `LOCK TABLE links IN SHARE ROW EXCLUSIVE MODE`

	// sqlClose refuses writes from the commit on. The error is that of a primary that is one no more, which
	// servers of every release answer with 503.
	sqlClose = `CREATE FUNCTION curt_links_moved() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'the links of this database were moved' USING ERRCODE = '25006'; END $$;
	CREATE TRIGGER curt_links_moved BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON links
	FOR EACH STATEMENT EXECUTE FUNCTION curt_links_moved()`
)

// Source is a database whose links are moved to another store, while servers write them.
type Source struct {
	*Target
	key [32]byte
}

// OpenSource opens a database that has links, as OpenAsIs.
func OpenSource(ctx context.Context, url string, log *slog.Logger) (*Source, error) {
	t, err := OpenAsIs(ctx, url, log)
	if err != nil {
		return nil, err
	}
	s := &Source{Target: t}
	if s.key, err = t.loadKey(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return s, nil
}

// Identity returns what tells this database from any other, whatever URL names it.
func (t *Source) Identity(ctx context.Context) (string, error) { return identityOf(ctx, t.db) }

// Freeze returns once nobody writes links. It waits for writers under way for a second: who asks again
// lets others write in between.
func (t *Source) Freeze(ctx context.Context) (_ *Frozen, err error) {
	conn, err := t.db.WritePool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("freeze: %w", err)
	}
	f := &Frozen{conn: conn, of: coldsql.Of(t.key)}
	if f.tx, err = conn.Begin(ctx); err == nil {
		for _, statement := range []string{sqlWait, sqlPatient, sqlFreeze} {
			if err == nil {
				_, err = f.tx.Exec(ctx, statement)
			}
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("freeze: %w", err), f.Release(context.WithoutCancel(ctx)))
	}
	return f, nil
}

// Switch says durably that the links are elsewhere: no server writes any from then on, and none starts
// on them. An error means that it may have happened: MovedAway tells.
func (f *Frozen) Switch(ctx context.Context, to string) error {
	_, err := f.tx.Exec(ctx, sqlClose)
	if err == nil {
		_, err = f.tx.Exec(ctx, sqlPutSetting, coldsql.SettingMoved, f.of)
	}
	if err == nil {
		_, err = f.tx.Exec(ctx, sqlPutSetting, settingMovedTo, []byte(to))
	}
	if err == nil {
		err = f.tx.Commit(ctx)
	}
	if err != nil {
		return fmt.Errorf("switch: %w", err)
	}
	f.tx = nil
	return nil
}

// Release has servers write again, unless the links are elsewhere.
func (f *Frozen) Release(ctx context.Context) (err error) {
	if f.tx != nil {
		err = f.tx.Rollback(ctx)
		f.tx = nil
	}
	if f.conn != nil {
		f.conn.Release()
		f.conn = nil
	}
	return err
}

// settingMovedTo says where the links were moved to, for people.
const settingMovedTo = "links_moved_to"

// MovedAway returns where the links of the database were moved to; "" = they are here.
func (t *Target) MovedAway(ctx context.Context) (to string, err error) {
	var stored []byte
	err = t.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		_, err := pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&stored) }, sqlSetting, settingMovedTo)
		return err
	})
	return string(stored), err
}

// loadKey reads the key of codes of a database that has links.
func (t *Target) loadKey(ctx context.Context) (key [32]byte, err error) {
	var stored []byte
	err = t.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		_, err := pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&stored) }, sqlSetting, pgdb.SettingCodeKey)
		return err
	})
	if err == nil && copy(key[:], stored) != len(key) {
		err = fmt.Errorf("%w: it has no links", pgdb.ErrUnfit)
	}
	t.codes = codegen.NewPermutation(key)
	return key, err
}

// Issued returns what servers were given.
func (t *Source) Issued(ctx context.Context) (coldcopy.Issued, error) {
	all, err := coldcopy.ReadIssued(ctx, t.Cold())
	all.Key = t.key
	return all, err
}
