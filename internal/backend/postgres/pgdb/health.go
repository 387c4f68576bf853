package pgdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"curt/internal/backend/coldsql"
	"curt/internal/link"
)

// lockedTable says that statements about a table wait for somebody's lock.
type lockedTable struct {
	table string
	cause error
}

// Error implements error.
func (e *lockedTable) Error() string { return e.PublicMessage() + ": " + e.cause.Error() }

// PublicMessage returns the reason in words for the operator.
func (e *lockedTable) PublicMessage() string { return "the table " + e.table + " is locked" }

// Unwrap returns what the server said.
func (e *lockedTable) Unwrap() error { return e.cause }

// Health is what a process needs of a database, and what look found last, which Run alone writes.
type Health struct {
	what           string   // for people
	messages       messages // what the log says
	table          string   // without which there is nothing
	tables, rights []string // without which the process cannot do its work

	// wait waits for a locked table as the process would, and does nothing: its lock is taken
	// before it is known that no row is meant.
	wait string

	setting  string // says whose database it is
	Identity []byte // its value at the start
	differs  string // what it is, for people

	writes    atomic.Pointer[error] // why the server takes no writes; nil = it does
	unfit     atomic.Pointer[error] // why this process cannot work there; nil = it can
	elsewhere atomic.Bool           // unfit is errExchanged, or the table is gone
}

// messages are words of the log, whole so that they are found by who looks for them.
type messages struct{ noWrites, writes, lacks, has string }

// LinksHealth is that of links.
func LinksHealth(readOnly bool) *Health {
	h := &Health{what: "link database", messages: messages{
		"link database is read-only", "link database is writable again",
		"link database lacks tables or rights", "link database has its tables and rights again",
	}, table: "links", setting: SettingCodeKey, differs: "code key", wait: `UPDATE links SET version = version WHERE false`}
	if readOnly {
		h.wait = `SELECT FROM links WHERE false`
	}
	for _, need := range []struct {
		table, right string
		write        bool
	}{
		{"links", "SELECT", false},
		{"links", "INSERT", true},
		{"links", "UPDATE", true},
		{"changes", "SELECT", false},
		{"changes", "INSERT", true},
		{"change_head", "SELECT", false},
		{"change_head", "UPDATE", true},
		{"leases", "SELECT", true},
		{"leases", "INSERT", true},
		{"leases", "UPDATE", true},
	} {
		if !need.write || !readOnly {
			h.tables, h.rights = append(h.tables, need.table), append(h.rights, need.right)
		}
	}
	return h
}

// AccountsHealth is that of accounts without links.
func AccountsHealth(of []byte) *Health {
	h := &Health{what: "account database", messages: messages{
		"account database is read-only", "account database is writable again",
		"account database lacks tables or rights", "account database has its tables and rights again",
	}, table: "keys", setting: coldsql.SettingAccountsOf, Identity: of, differs: "owner mark of the accounts", wait: `UPDATE keys SET used = used WHERE false`}
	for _, table := range []string{"keys", "key_secrets", "shares", "idempotency", "job_leases", "journal", "cases", "appeals", "destinations"} {
		for _, right := range []string{"SELECT", "INSERT", "UPDATE"} {
			h.tables, h.rights = append(h.tables, table), append(h.rights, right)
		}
	}
	return h
}

// UnfitTables is why a process cannot do its work in a database that answers.
type UnfitTables struct {
	Reason string
	what   string // database
	gone   bool   // there is nothing of it
}

// Error implements error.
func (e *UnfitTables) Error() string { return e.what + ": " + e.Reason }

// PublicMessage returns the reason in words for the operator.
func (e *UnfitTables) PublicMessage() string { return e.Reason }

// Unwrap has callers that are refused hear that the store is unavailable.
func (e *UnfitTables) Unwrap() error { return link.ErrUnavailable }

// exchanged is said of a database that has other links than when the process started: an
// empty one under the same name, or another installation's. What it does not know says nothing of
// ours, and what were written there would be lost to us, so that it is asked for nothing.
const exchanged = "not the database of the start: its "

// Healthy returns nil while the server takes writes and nobody locks them out, and why not
// otherwise, wrapped in link.ErrUnavailable. It does no I/O: Run asks the database once a second.
func (s *Database) Healthy() error {
	if err := s.Health.writes.Load(); err != nil {
		return fmt.Errorf("%s: %w: %w", s.Health.what, link.ErrUnavailable, *err)
	}
	return nil
}

// Tables returns nil while the tables that this process works on are there, are those that it
// began with, and may be used by its user; else an UnfitTables. While the database does
// not answer, it says what was so last. It does no I/O.
func (s *Database) Tables() error {
	if err := s.Health.unfit.Load(); err != nil {
		return *err
	}
	return nil
}

// CheckHealth asks what Healthy and Tables say, and has the log say so once when that changes.
func (s *Database) CheckHealth(ctx context.Context) {
	within, cancel := Limited(ctx)
	defer cancel()
	standby, unfit, err := s.state(within)
	switch {
	case err == nil && standby:
		s.WritePool.Reset()
		err = errors.New("the server is a standby")
	case err == nil && unfit == nil:
		err = s.locked(within)
	}
	if ctx.Err() != nil {
		return
	}
	s.record(ctx, &s.Health.writes, err, s.Health.messages.noWrites, s.Health.messages.writes)
	if err != nil {
		return
	}
	s.record(ctx, &s.Health.unfit, unfit, s.Health.messages.lacks, s.Health.messages.has)
	// Where links are gone, the next to begin there may be another installation.
	e, _ := errors.AsType[*UnfitTables](unfit)
	s.Health.elsewhere.Store(e != nil && e.gone)
}

// locked returns an error while statements about links wait for a lock for as long as they may.
func (s *Database) locked(ctx context.Context) error {
	_, err := s.WritePool.Exec(ctx, s.Health.wait)
	switch StateOf(err) {
	case stateLockTimeout:
		return &lockedTable{s.Health.table, err}
	case StateNoRight, stateNoTable: // Tables tells it
		return nil
	default:
		return err
	}
}

// record keeps what was found last.
func (s *Database) record(ctx context.Context, kept *atomic.Pointer[error], err error, bad, good string) {
	before := kept.Load()
	switch {
	case err == nil && before != nil:
		kept.Store(nil)
		s.Log.InfoContext(ctx, good)
	case err != nil:
		kept.Store(&err)
		if before == nil {
			s.Log.ErrorContext(ctx, bad, slog.Any("err", err))
		}
	}
}

const (
	sqlState = `SELECT pg_is_in_recovery(), (SELECT value FROM settings WHERE name = $3), ` + sqlMissing
	// sqlMissing stands alone where the other one fails because settings is not there.
	sqlMissing = `array(
	SELECT CASE WHEN to_regclass(need.name) IS NULL THEN 'the table ' || need.name ELSE need.privilege || ' on ' || need.name END
	FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS need (name, privilege, place)
	WHERE has_any_column_privilege(to_regclass(need.name)::oid, need.privilege) IS NOT TRUE ORDER BY need.place)`
)

// state asks the server. unfit is what Tables says.
func (s *Database) state(ctx context.Context) (standby bool, unfit, err error) {
	var key []byte
	var missing []string
	known := true
	err = s.WritePool.QueryRow(ctx, sqlState, s.Health.tables, s.Health.rights, s.Health.setting).Scan(&standby, &key, &missing)
	if state := StateOf(err); state == stateNoTable || state == StateNoRight { // of settings
		known = false
		err = s.WritePool.QueryRow(ctx, `SELECT pg_is_in_recovery(), `+sqlMissing, s.Health.tables, s.Health.rights).Scan(&standby, &missing)
	}
	switch {
	case err != nil:
		return false, nil, err
	case len(missing) > 0:
		gone := slices.Contains(missing, "the table "+s.Health.table)
		unfit = &UnfitTables{"missing: " + strings.Join(slices.Compact(missing), ", "), s.Health.what, gone}
	case known && !bytes.Equal(key, s.Health.Identity):
		unfit = &UnfitTables{exchanged + s.Health.differs + " differs", s.Health.what, true}
	}
	return standby, unfit, nil
}
