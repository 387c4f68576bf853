package postgres

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

// What look asks, once a second, in one statement. A right on any column counts: who was given
// columns one by one was given what is needed, or finds out at the first start.
const (
	sqlState = `SELECT pg_is_in_recovery(), (SELECT value FROM settings WHERE name = $3), ` + sqlMissing
	// sqlMissing stands alone where the other one fails because settings is not there.
	sqlMissing = `array(
	SELECT CASE WHEN to_regclass(need.name) IS NULL THEN 'the table ' || need.name ELSE need.privilege || ' on ' || need.name END
	FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS need (name, privilege, place)
	WHERE has_any_column_privilege(to_regclass(need.name)::oid, need.privilege) IS NOT TRUE ORDER BY need.place)`
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

// health is what a process needs of a database, and what look found last, which Run alone writes.
type health struct {
	what           string   // for people
	says           says     // what the log says
	table          string   // without which there is nothing
	tables, rights []string // without which the process cannot do its work

	// wait waits for a locked table as the process would, and does nothing: its lock is taken
	// before it is known that no row is meant.
	wait string

	setting  string // says whose database it is
	identity []byte // its value at the start
	differs  string // what it is, for people

	writes    atomic.Pointer[error] // why the server takes no writes; nil = it does
	unfit     atomic.Pointer[error] // why this process cannot work there; nil = it can
	elsewhere atomic.Bool           // unfit is errExchanged, or the table is gone
}

// says are words of the log, whole so that they are found by who looks for them.
type says struct{ noWrites, writes, lacks, has string }

// linksHealth is that of links.
func linksHealth(readOnly bool) *health {
	h := &health{what: "the database of links", says: says{
		"the database of links takes no writes", "the database of links takes writes again",
		"the database of links lacks what this server needs", "the database of links has what this server needs again",
	}, table: "links", setting: settingCodeKey, differs: "key of codes", wait: `UPDATE links SET version = version WHERE false`}
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

// accountsHealth is that of accounts without links.
func accountsHealth(of []byte) *health {
	h := &health{what: "the database of accounts", says: says{
		"the database of accounts takes no writes", "the database of accounts takes writes again",
		"the database of accounts lacks what this server needs", "the database of accounts has what this server needs again",
	}, table: "keys", setting: coldsql.SettingAccountsOf, identity: of, differs: "mark of whose accounts it has", wait: `UPDATE keys SET used = used WHERE false`}
	for _, table := range []string{"keys", "key_secrets", "shares", "idempotency", "job_leases", "journal", "cases", "appeals"} {
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
const exchanged = "it is another database than at the start: its "

// Healthy returns nil while the server takes writes and nobody locks them out, and why not
// otherwise, wrapped in link.ErrUnavailable. It does no I/O: Run asks the database once a second.
func (s *database) Healthy() error {
	if err := s.health.writes.Load(); err != nil {
		return fmt.Errorf("%s: %w: %w", s.health.what, link.ErrUnavailable, *err)
	}
	return nil
}

// Tables returns nil while the tables that this process works on are there, are those that it
// began with, and may be used by its user; else an UnfitTables. While the database does
// not answer, it says what was so last. It does no I/O.
func (s *database) Tables() error {
	if err := s.health.unfit.Load(); err != nil {
		return *err
	}
	return nil
}

// look asks what Healthy and Tables say, and has the log say so once when that changes.
func (s *database) look(ctx context.Context) {
	within, cancel := limited(ctx)
	defer cancel()
	standby, unfit, err := s.state(within)
	switch {
	case err == nil && standby:
		s.write.Reset()
		err = errors.New("the server is a standby")
	case err == nil && unfit == nil:
		err = s.locked(within)
	}
	if ctx.Err() != nil {
		return
	}
	s.keep(ctx, &s.health.writes, err, s.health.says.noWrites, s.health.says.writes)
	if err != nil {
		return
	}
	s.keep(ctx, &s.health.unfit, unfit, s.health.says.lacks, s.health.says.has)
	// Where links are gone, the next to begin there may be another installation.
	e, _ := errors.AsType[*UnfitTables](unfit)
	s.health.elsewhere.Store(e != nil && e.gone)
}

// locked returns an error while statements about links wait for a lock for as long as they may.
func (s *database) locked(ctx context.Context) error {
	_, err := s.write.Exec(ctx, s.health.wait)
	switch stateOf(err) {
	case stateLockTimeout:
		return &lockedTable{s.health.table, err}
	case stateNoRight, stateNoTable: // Tables tells it
		return nil
	default:
		return err
	}
}

// keep keeps what was found last.
func (s *database) keep(ctx context.Context, kept *atomic.Pointer[error], err error, bad, good string) {
	before := kept.Load()
	switch {
	case err == nil && before != nil:
		kept.Store(nil)
		s.log.InfoContext(ctx, good)
	case err != nil:
		kept.Store(&err)
		if before == nil {
			s.log.ErrorContext(ctx, bad, slog.Any("err", err))
		}
	}
}

// state asks the server. unfit is what Tables says.
func (s *database) state(ctx context.Context) (standby bool, unfit, err error) {
	var key []byte
	var missing []string
	known := true
	err = s.write.QueryRow(ctx, sqlState, s.health.tables, s.health.rights, s.health.setting).Scan(&standby, &key, &missing)
	if state := stateOf(err); state == stateNoTable || state == stateNoRight { // of settings
		known = false
		err = s.write.QueryRow(ctx, `SELECT pg_is_in_recovery(), `+sqlMissing, s.health.tables, s.health.rights).Scan(&standby, &missing)
	}
	switch {
	case err != nil:
		return false, nil, err
	case len(missing) > 0:
		gone := slices.Contains(missing, "the table "+s.health.table)
		unfit = &UnfitTables{"missing: " + strings.Join(slices.Compact(missing), ", "), s.health.what, gone}
	case known && !bytes.Equal(key, s.health.identity):
		unfit = &UnfitTables{exchanged + s.health.differs + " differs", s.health.what, true}
	}
	return standby, unfit, nil
}
