// Package reservations holds aliases in curt.db for workspaces that are about to create a link. Read
// Reservations.Reserve and Redeem first.
package reservations

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"time"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
)

// Row is what aliases names for a reserved alias. No link lies there: rows of aliases count up from
// behind it.
const Row = math.MinInt64

// SQLRetainAliases writes the entries of reservations into aliases.
const SQLRetainAliases = `INSERT OR IGNORE INTO aliases (domain, code, n) SELECT domain, code, -9223372036854775807 - 1 FROM reservations`

// Links is what reservations need of the links beside them.
type Links struct {
	// Has reports whether a link has a key, or had it. A link that is damaged is an error.
	Has func(t *sqlitedb.Tx, k link.Key) (bool, error)
	// CheckAliases is called before an entry is added to aliases, and repairs what that would hide.
	CheckAliases func(t *sqlitedb.Tx, k link.Key) error
}

// Reservations implements link.Reserver, by the clock of the machine.
type Reservations struct {
	db    *sqlitedb.Store
	links Links
}

// New returns the reservations of a curt.db.
func New(db *sqlitedb.Store, links Links) *Reservations { return &Reservations{db: db, links: links} }

const (
	sqlReservation       = `SELECT workspace, since, until FROM reservations WHERE domain = ? AND code = ?`
	sqlHeld              = `SELECT count(*) FROM reservations WHERE workspace = ? AND until > ? AND since <= ?`
	sqlInsertReservation = `INSERT OR REPLACE INTO reservations (domain, code, workspace, since, until) VALUES (?, ?, ?, ?, ?)`
	sqlDeleteReservation = `DELETE FROM reservations WHERE domain = ? AND code = ?`
	sqlReserveAlias      = `INSERT OR IGNORE INTO aliases (domain, code, n) VALUES (?, ?, -9223372036854775807 - 1)`
	sqlFreeAlias         = `DELETE FROM aliases WHERE domain = ? AND code = ? AND n = -9223372036854775807 - 1`
	// Those of a clock that was set back lie in the future; they lapse when somebody asks for them, or in time.
	sqlLapsed = `SELECT domain, code FROM reservations WHERE until <= ? ORDER BY until LIMIT ?`
)

// held is a row of reservations.
type held struct {
	link.Reservation

	lapsed bool
}

// reservation returns the reservation of a key, lapsed or not.
func reservation(t *sqlitedb.Tx, k link.Key, now time.Time) (r held, found bool, err error) {
	found, err = t.One(sqlReservation, func(row []driver.Value) error {
		sc := sqlitedb.Scanner{Row: row}
		r.Key, r.Workspace = k, link.WorkspaceID(sc.Text())
		since, until := sc.Int(), sc.Int()
		r.Until, r.Left = link.TimeOf(until), time.Duration(until-now.UnixMilli())*time.Millisecond
		r.lapsed = link.Lapsed(since, until, now.UnixMilli())
		return sc.Damage()
	}, string(k.Domain), string(k.Code))
	return r, found, err
}

// Reserve implements link.Reserver.
func (s *Reservations) Reserve(ctx context.Context, c link.Claim) (link.Reservation, bool, error) {
	if err := c.Validate(); err != nil {
		return link.Reservation{}, false, fmt.Errorf("reserve: %w", err)
	}
	var r link.Reservation // no named result: a write that the caller left may still set it
	var found bool
	err := s.db.Write(ctx, 1, func(t *sqlitedb.Tx) (err error) {
		r, found, err = s.reserve(t, c, time.Now())
		return err
	})
	if err != nil {
		return link.Reservation{}, false, fmt.Errorf("reserve %s: %w", c.Key, err)
	}
	return r, found, nil
}

func (s *Reservations) reserve(t *sqlitedb.Tx, c link.Claim, now time.Time) (link.Reservation, bool, error) {
	taken, err := s.links.Has(t, c.Key)
	if err != nil || taken {
		if err == nil {
			err = link.ErrExists
		}
		return link.Reservation{}, false, err
	}
	old, found, err := reservation(t, c.Key, now)
	switch {
	case err != nil:
		return link.Reservation{}, false, err
	case found && !old.lapsed && old.Workspace != c.Workspace:
		return link.Reservation{}, false, &link.HeldError{Reservation: old.Reservation}
	case found && !old.lapsed:
		return old.Reservation, true, nil
	}
	since := now.UnixMilli()
	holds, _, err := t.Number(sqlHeld, string(c.Workspace), since, since+link.MaxSetback.Milliseconds())
	switch {
	case err != nil:
		return link.Reservation{}, false, err
	case holds >= int64(c.Most):
		return link.Reservation{}, false, link.ErrTooManyReservations
	}
	if err := s.links.CheckAliases(t, c.Key); err != nil {
		return link.Reservation{}, false, err
	}
	until := since + c.For.Milliseconds()
	if _, err = t.Exec(sqlInsertReservation, string(c.Key.Domain), string(c.Key.Code), string(c.Workspace), since, until); err == nil {
		_, err = t.Exec(sqlReserveAlias, string(c.Key.Domain), string(c.Key.Code))
	}
	return link.Reservation{Key: c.Key, Workspace: c.Workspace, Until: link.TimeOf(until), Left: time.Duration(until-since) * time.Millisecond}, false, err
}

// unreserve removes the reservation of a key.
func unreserve(t *sqlitedb.Tx, k link.Key) error {
	_, err := t.Exec(sqlDeleteReservation, string(k.Domain), string(k.Code))
	if err == nil {
		_, err = t.Exec(sqlFreeAlias, string(k.Domain), string(k.Code))
	}
	return err
}

// Redeem ends the reservation that kept l from being inserted, for a create that may have the key: that of
// its holder, or of anybody once it has lapsed. reserved = false: there is none.
func Redeem(t *sqlitedb.Tx, l *link.Link) (reserved bool, err error) {
	r, reserved, err := reservation(t, l.Key, time.Now())
	switch {
	case err != nil || !reserved:
		return false, err
	case l.CodeKind != link.Chosen:
		return true, link.ErrExists // its strategy has others
	case !r.lapsed && r.Workspace != l.Workspace:
		return true, &link.HeldError{Reservation: r.Reservation}
	}
	return true, unreserve(t, l.Key)
}

// Release implements link.Reserver.
func (s *Reservations) Release(ctx context.Context, k link.Key, w link.WorkspaceID) error {
	err := s.db.Write(ctx, 1, func(t *sqlitedb.Tx) error {
		r, found, err := reservation(t, k, time.Now())
		switch {
		case err != nil:
			return err
		case !found || r.lapsed || w != "" && r.Workspace != w:
			return link.ErrNotFound
		}
		return unreserve(t, k)
	})
	if err != nil {
		return fmt.Errorf("release %s: %w", k, err)
	}
	return nil
}

// Occupants implements link.Reserver.
func (s *Reservations) Occupants(ctx context.Context, keys []link.Key) ([]link.Occupant, error) {
	if len(keys) > link.MaxPage {
		return nil, fmt.Errorf("find the occupants of %d keys: %w", len(keys), link.ErrInvalid)
	}
	var all []link.Occupant
	now := time.Now()
	err := s.db.Read(ctx, func(t *sqlitedb.Tx) error {
		all = make([]link.Occupant, len(keys))
		for i, k := range keys {
			linked, err := s.links.Has(t, k)
			if all[i].Linked = linked || err != nil && link.Absent(err); all[i].Linked { // a damaged link has its key, too
				continue
			}
			r, found, failed := reservation(t, k, now)
			if err != nil || failed != nil {
				return errors.Join(err, failed)
			}
			if found && !r.lapsed {
				all[i].Reservation = r.Reservation
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the occupants of %d keys: %w", len(keys), err)
	}
	return all, nil
}

// RemoveLapsed implements link.Reserver.
func (s *Reservations) RemoveLapsed(ctx context.Context, n int) (int, error) {
	lapsed, err := s.lapsed(ctx, n)
	removed := 0
	if err == nil && len(lapsed) > 0 { // mostly there is nothing to write
		err = s.db.Write(ctx, len(lapsed), func(t *sqlitedb.Tx) error {
			removed = 0
			for _, k := range lapsed {
				r, found, err := reservation(t, k, time.Now())
				if err == nil && found && r.lapsed {
					removed++
					err = unreserve(t, k)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return 0, fmt.Errorf("remove lapsed reservations: %w", err)
	}
	return removed, nil
}

// lapsed returns up to n keys whose reservations have lapsed.
func (s *Reservations) lapsed(ctx context.Context, n int) (keys []link.Key, err error) {
	err = s.db.ReadMany(ctx, func(t *sqlitedb.Tx) error {
		keys = nil
		return t.Each(sqlLapsed, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			keys = append(keys, link.Key{Domain: link.Domain(sc.Text()), Code: link.Code(sc.Text())})
			return sc.Damage()
		}, time.Now().UnixMilli(), int64(n))
	})
	return keys, err
}

// Statements are those of requests, by name.
func Statements() map[string]string {
	return map[string]string{
		"reservation": sqlReservation, "held": sqlHeld, "insert reservation": sqlInsertReservation, "delete reservation": sqlDeleteReservation,
		"reserve alias": sqlReserveAlias, "free alias": sqlFreeAlias, "lapsed": sqlLapsed,
	}
}
