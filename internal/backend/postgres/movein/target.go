// Package movein writes what a data folder had into PostgreSQL: links as they are, with their
// versions and counters, the totals and roll-ups of their clicks, and what a move has done so far,
// in the transactions that did it. Read target.go first, then links.go and counts.go.
//
// Nobody else may write to the database meanwhile: from the first step to the switch no server opens
// its links (pgdb.SettingMove).
package movein

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/postgres/accounts"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/codegen"
	"curt/internal/link"
)

// State is how far a move has come. It is kept in the database, in the transaction of each step.
type State struct {
	pgdb.MoveState

	Of      []byte `json:"of"`       // says which links are moved (coldsql.Of)
	Walked  bool   `json:"walked"`   // all links were read once
	After   string `json:"after"`    // link.Cursor of the walk
	Changes int64  `json:"changes"`  // up to where the logs of the folder are followed
	Creates int64  `json:"creates"`  //
	Name    string `json:"instance"` // under which the click log of the folder is counted

	// Of the copy of clicks.db.
	Totals  int64 `json:"totals"`  // the last row that is here
	Rollups int64 `json:"rollups"` //
	Counted bool  `json:"counted"` // all rows are here
	Summed  int64 `json:"summed"`  // all requests in it
	Since   int64 `json:"since"`   // Unix seconds of a UTC day: statistics go to ClickHouse, of days before as sums; 0 = they come here
	Begun   bool  `json:"begun"`   // its last clicks are being counted from the click log
}

// Target is a database that links are moved to.
type Target struct {
	db    *pgdb.Database
	codes *codegen.Permutation
}

// conns are few: one goroutine writes.
const conns = 2

// ErrUsed means that the database has links or accounts that are not of this move.
var ErrUsed = errors.New("this database has links or accounts already, or servers use it; use an empty one")

// Open connects, and brings the schema up to date.
func Open(ctx context.Context, url string, log *slog.Logger) (*Target, error) {
	return open(url, log, func(db *pgdb.Database, url string) error { return db.Connect(ctx, url, conns, conns) })
}

// OpenAsIs is Open for a database that something is moved from, which is migrated by its servers or an operator: the
// error wraps pgdb.ErrNotMigrated if its schema is older than that of this release.
func OpenAsIs(ctx context.Context, url string, log *slog.Logger) (*Target, error) {
	return open(url, log, func(db *pgdb.Database, url string) error { return db.ConnectAsIs(ctx, url, conns, conns) })
}

func open(url string, log *slog.Logger, connect func(db *pgdb.Database, url string) error) (*Target, error) {
	t := &Target{db: pgdb.New(pgdb.LinksHealth(false), conns, log)}
	if err := connect(t.db, Named(url)); err != nil {
		t.db.ClosePools()
		return nil, err
	}
	return t, nil
}

// Close closes the connections.
func (t *Target) Close() error {
	t.db.Closed.Store(true)
	t.db.ClosePools()
	return nil
}

// Cold is the database of the tables of accounts.
func (t *Target) Cold() coldsql.DB { return accounts.NewDB(t.db) }

const (
	// A key of codes alone is of a server whose start failed behind it: nothing was ever made with it.
	sqlHasOthers = `SELECT EXISTS (SELECT FROM links) OR EXISTS (SELECT FROM keys) OR EXISTS (SELECT FROM journal) OR EXISTS (SELECT FROM leases)
	OR EXISTS (SELECT FROM settings WHERE name IN ('accounts', 'accounts_of'))
	OR EXISTS (SELECT FROM settings WHERE name = 'code_key') AND EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'curt/%')`
	sqlIdentity   = `SELECT (SELECT system_identifier::text FROM pg_control_system()) || '/' || oid::text FROM pg_database WHERE datname = current_database()`
	sqlSetting    = `SELECT value FROM settings WHERE name = $1`
	sqlPutSetting = `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
)

// Begin returns how far the move of the links with a key of codes has come. It begins one in a
// database that is empty; else the error is ErrUsed. apart: the database takes all but the links.
func (t *Target) Begin(ctx context.Context, key [32]byte, apart bool, name string, now time.Time) (s State, err error) {
	t.codes = codegen.NewPermutation(key)
	of, used := coldsql.Of(key), false
	err = t.db.Transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		s, used = State{}, false
		var stored []byte
		found, err := pgdb.One(ctx, tx, func(row pgx.Row) error { return row.Scan(&stored) }, sqlSetting, pgdb.SettingMove)
		if err != nil {
			return err
		}
		if found {
			if err := json.Unmarshal(stored, &s); err != nil {
				return fmt.Errorf("what an earlier move has done: %w", err)
			}
			used = subtle.ConstantTimeCompare(s.Of, of) != 1
			return nil
		}
		if err := tx.QueryRow(ctx, sqlHasOthers).Scan(&used); err != nil || used {
			return err
		}
		s = State{MoveState: pgdb.MoveState{Began: now}, Of: of, Name: name}
		setting, value := pgdb.SettingCodeKey, key[:]
		if apart {
			setting, value = coldsql.SettingAccountsOf, of
		}
		if _, err := tx.Exec(ctx, sqlPutSetting, setting, value); err != nil {
			return err
		}
		return save(ctx, tx, &s)
	})
	if err == nil && used {
		err = ErrUsed
	}
	return s, err
}

// identityOf returns what tells a database from any other, whatever URL names it.
func identityOf(ctx context.Context, db *pgdb.Database) (identity string, err error) {
	err = db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error { return q.QueryRow(ctx, sqlIdentity).Scan(&identity) })
	if err != nil {
		return "", fmt.Errorf("read the identity of the database: %w", err)
	}
	return identity, nil
}

// Resume returns how far a move has come whose links are of, and is behind its switch.
func (t *Target) Resume(ctx context.Context, of []byte) (s State, err error) {
	err = t.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		s = State{}
		var key, stored []byte
		_, err := pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&stored) }, sqlSetting, pgdb.SettingMove)
		if err == nil {
			_, err = pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&key) }, sqlSetting, pgdb.SettingCodeKey)
		}
		if err != nil {
			return err
		}
		if len(stored) == 0 || json.Unmarshal(stored, &s) != nil || subtle.ConstantTimeCompare(s.Of, of) != 1 {
			return errNotThere
		}
		if len(key) == 32 { // else the links are elsewhere
			t.codes = codegen.NewPermutation([32]byte(key))
		}
		return nil
	})
	return s, err
}

var errNotThere = errors.New("this is not the database that the links of the folder were moved to")

// Save keeps how far the move has come.
func (t *Target) Save(ctx context.Context, s *State) error {
	return t.db.Transact(ctx, func(ctx context.Context, tx pgx.Tx) error { return save(ctx, tx, s) })
}

// save does nothing for a state that is kept otherwise.
func save(ctx context.Context, tx pgx.Tx, s *State) error {
	if s == nil {
		return nil
	}
	text, err := json.Marshal(s)
	if err == nil {
		_, err = tx.Exec(ctx, sqlPutSetting, pgdb.SettingMove, text)
	}
	if err != nil {
		return fmt.Errorf("write how far the move has come: %w", err)
	}
	return nil
}

const sqlWorkspaces = `SELECT d.turn, l.workspace FROM unnest($1::bigint[], $2::text[], $3::text[]) WITH ORDINALITY AS d (place, domain, code, turn)
	JOIN links AS l ON l.place = d.place AND l.domain = d.domain AND l.code = d.code`

// Workspaces returns the workspace of each link; "" = it does not exist.
func (t *Target) Workspaces(ctx context.Context, keys []link.Key) (names []string, err error) {
	place, domain, code := t.keyColumns(keys)
	err = t.db.ReadMany(ctx, func(ctx context.Context, q pgdb.Querier) error {
		names = make([]string, len(keys))
		return pgdb.Each(ctx, q, func(row pgx.Row) error {
			var turn int64
			var name string
			err := row.Scan(&turn, &name)
			if err == nil {
				names[turn-1] = name
			}
			return err
		}, sqlWorkspaces, place, domain, code)
	})
	return names, err
}

const (
	// Others than this process, which calls itself otherwise.
	sqlServers = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'curt/%'`
)

// ErrServed means that servers use the database.
var ErrServed = errors.New("servers are connected to this database: end them first")

// Unused returns the key of codes of a database that no server is connected to.
func (t *Target) Unused(ctx context.Context) (key [32]byte, err error) {
	var stored []byte
	servers := 0
	err = t.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		if _, err := pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&stored) }, sqlSetting, pgdb.SettingCodeKey); err != nil {
			return err
		}
		return q.QueryRow(ctx, sqlServers).Scan(&servers)
	})
	switch {
	case err != nil:
		return key, err
	case servers > 0:
		return key, ErrServed
	case copy(key[:], stored) != len(key):
		return key, fmt.Errorf("%w: it has no links", pgdb.ErrUnfit)
	}
	t.codes = codegen.NewPermutation(key)
	return key, nil
}

// Named has the connections of a URL be called otherwise than those of servers.
func Named(url string) string {
	switch {
	case strings.Contains(url, "application_name="):
		return url
	case strings.Contains(url, "?"):
		return url + "&application_name=curt%20move"
	}
	return url + "?application_name=curt%20move"
}
