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

	"curt/internal/link"
)

// What look asks, once a second, in one statement. A right on any column counts: who was given
// columns one by one was given what is needed, or finds out at the first start.
const (
	sqlState = `SELECT pg_is_in_recovery(), (SELECT value FROM settings WHERE name = '` + settingCodeKey + `'), ` + sqlMissing
	// sqlMissing stands alone where the other one fails because settings is not there.
	sqlMissing = `array(
	SELECT CASE WHEN to_regclass(need.name) IS NULL THEN 'the table ' || need.name ELSE need.privilege || ' on ' || need.name END
	FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS need (name, privilege, place)
	WHERE has_any_column_privilege(to_regclass(need.name)::oid, need.privilege) IS NOT TRUE ORDER BY need.place)`
)

// What waits for a locked table as a write of links does, or a look-up where there are no writes, and
// does nothing: its lock is taken before it is known that no row is meant.
const (
	sqlWaitWrite = `UPDATE links SET version = version WHERE false`
	sqlWaitRead  = `SELECT FROM links WHERE false`
)

// lockedTable says that statements about links wait for somebody's lock.
type lockedTable struct{ cause error }

// Error implements error.
func (e *lockedTable) Error() string { return e.PublicMessage() + ": " + e.cause.Error() }

// PublicMessage returns the reason in words for the operator.
func (e *lockedTable) PublicMessage() string { return "the table links is locked" }

// Unwrap returns what the server said.
func (e *lockedTable) Unwrap() error { return e.cause }

// needs are the rights without which a process cannot do its work.
type needs struct{ tables, rights []string }

func needsOf(readOnly bool) (n needs) {
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
			n.tables, n.rights = append(n.tables, need.table), append(n.rights, need.right)
		}
	}
	return n
}

// health is what look found last. It is written by Run alone.
type health struct {
	writes    atomic.Pointer[error] // why the server takes no writes; nil = it does
	tables    atomic.Pointer[error] // why this process cannot work there; nil = it can
	elsewhere atomic.Bool           // tables is errExchanged, or the links are gone
}

// UnfitTables is why a process cannot do its work in a database that answers.
type UnfitTables struct {
	Reason string
	gone   bool // there is no table of links
}

// Error implements error.
func (e *UnfitTables) Error() string { return "the database of links: " + e.Reason }

// PublicMessage returns the reason in words for the operator.
func (e *UnfitTables) PublicMessage() string { return e.Reason }

// Unwrap has callers that are refused hear that the store is unavailable.
func (e *UnfitTables) Unwrap() error { return link.ErrUnavailable }

// errExchanged is said of a database that has other links than when the process started: an
// empty one under the same name, or another installation's. What it does not know says nothing of
// ours, and what were written there would be lost to us, so that it is asked for nothing.
var errExchanged = &UnfitTables{Reason: "it is another database than at the start: its key of codes differs"}

// Healthy returns nil while the server takes writes and nobody locks them out, and why not
// otherwise, wrapped in link.ErrUnavailable. It does no I/O: Run asks the database once a second.
func (s *Links) Healthy() error {
	if err := s.health.writes.Load(); err != nil {
		return fmt.Errorf("the database of links: %w: %w", link.ErrUnavailable, *err)
	}
	return nil
}

// Tables returns nil while the tables that this process works on are there, are those that it
// began with, and may be used by its user; else an UnfitTables. While the database does
// not answer, it says what was so last. It does no I/O.
func (s *Links) Tables() error {
	if err := s.health.tables.Load(); err != nil {
		return *err
	}
	return nil
}

// look asks what Healthy and Tables say, and has the log say so once when that changes.
func (s *Links) look(ctx context.Context) {
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
	s.keep(ctx, &s.health.writes, err, "the database of links takes no writes", "the database of links takes writes again")
	if err != nil {
		return
	}
	s.keep(ctx, &s.health.tables, unfit, "the database of links lacks what this server needs", "the database of links has what this server needs again")
	// Where links are gone, the next to begin there may be another installation.
	e, _ := errors.AsType[*UnfitTables](unfit)
	s.health.elsewhere.Store(e == errExchanged || e != nil && e.gone)
}

// locked returns an error while statements about links wait for a lock for as long as they may.
func (s *Links) locked(ctx context.Context) error {
	statement := sqlWaitWrite
	if s.config.ReadOnly {
		statement = sqlWaitRead
	}
	_, err := s.write.Exec(ctx, statement)
	switch stateOf(err) {
	case stateLockTimeout:
		return &lockedTable{err}
	case stateNoRight, stateNoTable: // Tables tells it
		return nil
	default:
		return err
	}
}

// keep keeps what was found last.
func (s *Links) keep(ctx context.Context, kept *atomic.Pointer[error], err error, bad, good string) {
	before := kept.Load()
	switch {
	case err == nil && before != nil:
		kept.Store(nil)
		s.config.Log.InfoContext(ctx, good)
	case err != nil:
		kept.Store(&err)
		if before == nil {
			s.config.Log.ErrorContext(ctx, bad, slog.Any("err", err))
		}
	}
}

// state asks the server. unfit is what Tables says.
func (s *Links) state(ctx context.Context) (standby bool, unfit, err error) {
	var key []byte
	var missing []string
	known := true
	err = s.write.QueryRow(ctx, sqlState, s.needs.tables, s.needs.rights).Scan(&standby, &key, &missing)
	if state := stateOf(err); state == stateNoTable || state == stateNoRight { // of settings
		known = false
		err = s.write.QueryRow(ctx, `SELECT pg_is_in_recovery(), `+sqlMissing, s.needs.tables, s.needs.rights).Scan(&standby, &missing)
	}
	switch {
	case err != nil:
		return false, nil, err
	case len(missing) > 0:
		unfit = &UnfitTables{"missing: " + strings.Join(slices.Compact(missing), ", "), slices.Contains(missing, "the table links")}
	case known && !bytes.Equal(key, s.codeKey[:]):
		unfit = errExchanged
	}
	return standby, unfit, nil
}
