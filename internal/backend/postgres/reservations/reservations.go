// Package reservations holds aliases in PostgreSQL for workspaces that are about to create a link. Read
// Reservations.Reserve and End first.
//
// A reservation is a row of links, so that the primary key of that table decides about it and every create in
// one step, and a create that meets none costs nothing for it. The row has version 0, which no link has; in all
// else it is a tombstone, which lists, walks and changes pass over, also those of older releases:
// those answer 410 for the code until the row is gone, and refuse it as an alias. workspace is the holder,
// created and expires say from when until when. Its id lies before that of every link, so that the
// indexes by id find the reservations of one workspace, and all of them, without an index of their own.
package reservations

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/link"
)

// Reservations implements link.Reserver, by the clock of the database.
type Reservations struct {
	db      *pgdb.Database
	place   func(link.Code) int64
	confirm func(context.Context, pgdb.Querier) error
}

// New returns the reservations of a database. place is where a code lies; confirm returns when what was read is
// where an acknowledged write has to be.
func New(db *pgdb.Database, place func(link.Code) int64, confirm func(context.Context, pgdb.Querier) error) *Reservations {
	return &Reservations{db, place, confirm}
}

// reservationID is the id of the reservation of a key: the time of a UUIDv7 in it is 1970.
func reservationID(k link.Key) (id link.ID) {
	sum := sha256.Sum256([]byte("curt reservation " + k.String()))
	copy(id[6:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

const (
	// reservationIDs is behind the ids of all reservations.
	reservationIDs = `'00000000-0001-0000-0000-000000000000'::uuid`
	// sqlClock is the time of a statement, the same in all of it; of a row of links it says whether it is a
	// reservation that has lapsed.
	sqlClock  = `clock AS (SELECT ` + pgdb.NowMillis + ` AS ms)`
	sqlLapsed = `(links.expires <= ms OR links.created > ms + 300000)`

	// Those of one workspace are counted one after the other. Without the right to remove its row a reservation
	// would hold its key for ever.
	sqlHolder = `SELECT pg_advisory_xact_lock($1)::text, has_table_privilege('links', 'DELETE')`

	// No row where the workspace holds as many keys as it may, or where the key is taken.
	sqlReserve = `WITH ` + sqlClock + `, held AS (
	SELECT count(*) AS many FROM links CROSS JOIN clock WHERE workspace = $5 AND id < ` + reservationIDs + ` AND version = 0 AND NOT ` + sqlLapsed + `
)
INSERT INTO links (place, domain, code, id, workspace, minted, destination, digest, status, safety, redirect, starts, expires, created,
	updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version)
SELECT $1::bigint, $2::text, $3::text, $4::uuid, $5::text, false, '', 0, 3, 1, 302, 0, ms + $6::bigint, ms,
	ms, 0, 0, '', false, false, false, '', '', '{}'::text[], 0
FROM clock CROSS JOIN held WHERE many < $7::bigint
ON CONFLICT (place, domain, code) DO UPDATE
SET workspace = excluded.workspace, expires = excluded.expires, created = excluded.created, updated = excluded.updated
WHERE links.version = 0 AND (links.expires <= excluded.created OR links.created > excluded.created + 300000)
RETURNING expires, expires - created`

	sqlOccupants = `WITH ` + sqlClock + ` SELECT turn, version, CASE WHEN ` + sqlLapsed + ` THEN '' ELSE workspace END, expires, expires - ms
	FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[]) AS t (turn, at, host, name)
	JOIN links ON place = at AND domain = host AND code = name CROSS JOIN clock`

	// Of the reservations in the way of creates those that may have the key end; of the others it is said
	// until when.
	sqlRedeem = `WITH ` + sqlClock + `, given AS (
	SELECT * FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[], $5::text[]) AS t (turn, at, host, name, owner)
), freed AS (
	DELETE FROM links USING given, clock WHERE place = at AND domain = host AND code = name AND version = 0
	AND (workspace = owner OR ` + sqlLapsed + `) RETURNING turn
)
SELECT turn, ''::text, 0::bigint, 0::bigint FROM freed
UNION ALL SELECT turn, workspace, expires, expires - ms FROM given JOIN links ON place = at AND domain = host AND code = name CROSS JOIN clock
WHERE version = 0 AND NOT (workspace = owner OR ` + sqlLapsed + `)`

	sqlRelease = `WITH ` + sqlClock + ` DELETE FROM links USING clock WHERE place = $1 AND domain = $2 AND code = $3 AND version = 0
	AND NOT ` + sqlLapsed + ` AND ($4::text = '' OR workspace = $4)`

	sqlRemoveLapsed = `WITH ` + sqlClock + `, gone AS (
	SELECT place, domain, code FROM links CROSS JOIN clock WHERE id < ` + reservationIDs + ` AND version = 0 AND ` + sqlLapsed + `
	ORDER BY id LIMIT $1 FOR UPDATE OF links SKIP LOCKED
)
DELETE FROM links USING gone WHERE links.place = gone.place AND links.domain = gone.domain AND links.code = gone.code AND links.version = 0`
)

// Reserve implements link.Reserver.
func (s *Reservations) Reserve(ctx context.Context, c link.Claim) (r link.Reservation, found bool, err error) {
	if err := c.Validate(); err != nil {
		return link.Reservation{}, false, fmt.Errorf("reserve: %w", err)
	}
	err = s.db.Transact(ctx, func(ctx context.Context, t pgx.Tx) error {
		var locked string
		var may bool
		if err := t.QueryRow(ctx, sqlHolder, lockOfHolder(c.Workspace)).Scan(&locked, &may); err != nil {
			return err
		}
		if !may {
			return fmt.Errorf("the role has no right to delete rows of links: %w", link.ErrUnavailable)
		}
		// What holds the key may lapse between the two statements: then the next one takes it.
		for range 2 {
			if r, found, err = s.take(ctx, t, &c); !errors.Is(err, link.ErrTooManyReservations) {
				return err
			}
		}
		return err
	})
	if err != nil {
		return link.Reservation{}, false, fmt.Errorf("reserve %s: %w", c.Key, err)
	}
	return r, found, nil
}

// take reserves a key, or says what has it. Those of the workspace are locked. ErrTooManyReservations: nothing has
// it by now.
func (s *Reservations) take(ctx context.Context, t pgx.Tx, c *link.Claim) (r link.Reservation, found bool, err error) {
	var until, left int64
	reserved, err := pgdb.One(ctx, t, func(row pgx.Row) error { return row.Scan(&until, &left) }, sqlReserve,
		s.place(c.Key.Code), string(c.Key.Domain), string(c.Key.Code), pgdb.UUID(reservationID(c.Key)), string(c.Workspace), c.For.Milliseconds(), int64(c.Most))
	if err != nil || reserved {
		return reservationOf(c.Key, string(c.Workspace), until, left), false, err
	}
	occupants, err := s.occupants(ctx, t, []link.Key{c.Key})
	if err != nil {
		return r, false, err
	}
	switch o := occupants[0]; {
	case o.Linked:
		return r, false, link.ErrExists
	case !o.Held():
		return r, false, link.ErrTooManyReservations
	case o.Reservation.Workspace != c.Workspace:
		return r, false, &link.HeldError{Reservation: o.Reservation}
	default:
		return o.Reservation, true, s.confirm(ctx, t) // an earlier try may have stored it
	}
}

// lockOfHolder returns what stands for the reservations of a workspace.
func lockOfHolder(w link.WorkspaceID) int64 {
	sum := sha256.Sum256([]byte("curt reservations of " + string(w)))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// Occupants implements link.Reserver.
func (s *Reservations) Occupants(ctx context.Context, keys []link.Key) (all []link.Occupant, err error) {
	if len(keys) > link.MaxPage {
		return nil, fmt.Errorf("find the occupants of %d keys: %w", len(keys), link.ErrInvalid)
	}
	err = s.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		all, err = s.occupants(ctx, q, keys)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find the occupants of %d keys: %w", len(keys), err)
	}
	return all, nil
}

func (s *Reservations) occupants(ctx context.Context, q pgdb.Querier, keys []link.Key) ([]link.Occupant, error) {
	var asked columns
	for i, k := range keys {
		if link.ValidCode(k.Code) { // else nobody has it, and a NUL would be refused
			asked.add(i, s.place(k.Code), k)
		}
	}
	all := make([]link.Occupant, len(keys))
	err := pgdb.Each(ctx, q, func(row pgx.Row) error {
		var turn int32
		var version, until, left int64
		var holder string
		if err := row.Scan(&turn, &version, &holder, &until, &left); err != nil {
			return err
		}
		switch o := &all[turn]; {
		case version > 0:
			o.Linked = true
		case holder != "":
			o.Reservation = reservationOf(keys[turn], holder, until, left)
		}
		return nil
	}, sqlOccupants, asked.turns, asked.places, asked.domains, asked.codes)
	return all, err
}

// columns are the keys that a statement is about.
type columns struct {
	turns          []int32
	places         []int64
	domains, codes []string
}

func (c *columns) add(turn int, place int64, k link.Key) {
	c.turns, c.places = append(c.turns, int32(turn)), append(c.places, place)
	c.domains, c.codes = append(c.domains, string(k.Domain)), append(c.codes, string(k.Code))
}

func reservationOf(k link.Key, holder string, until, left int64) link.Reservation {
	return link.Reservation{Key: k, Workspace: link.WorkspaceID(holder), Until: link.TimeOf(until), Left: time.Duration(left) * time.Millisecond}
}

// Release implements link.Reserver.
func (s *Reservations) Release(ctx context.Context, k link.Key, w link.WorkspaceID) error {
	if !link.ValidCode(k.Code) {
		return fmt.Errorf("release %s: %w", k, link.ErrNotFound)
	}
	err := s.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
		n, err := pgdb.Changed(ctx, q, sqlRelease, s.place(k.Code), string(k.Domain), string(k.Code), string(w))
		if err == nil && n == 0 {
			err = link.ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("release %s: %w", k, err)
	}
	return nil
}

// RemoveLapsed implements link.Reserver.
func (s *Reservations) RemoveLapsed(ctx context.Context, n int) (removed int, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
		many, err := pgdb.Changed(ctx, q, sqlRemoveLapsed, n)
		removed = int(many)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("remove lapsed reservations: %w", err)
	}
	return removed, nil
}

// End ends, within the transaction of creates, the reservations that entries of links met and may end, and returns
// those entries in their order. held are the others, by whom; an entry that is in neither met nothing.
func (s *Reservations) End(ctx context.Context, t pgx.Tx, links []link.Link, entries []int) (freed []int, held map[int]link.Reservation, err error) {
	var met columns
	owners := make([]string, len(entries))
	for at, i := range entries {
		met.add(i, s.place(links[i].Key.Code), links[i].Key)
		owners[at] = string(links[i].Workspace)
	}
	held = map[int]link.Reservation{}
	err = pgdb.Each(ctx, t, func(row pgx.Row) error {
		var turn int32
		var holder string
		var until, left int64
		err := row.Scan(&turn, &holder, &until, &left)
		switch {
		case err != nil:
		case holder == "":
			freed = append(freed, int(turn))
		default:
			held[int(turn)] = reservationOf(links[turn].Key, holder, until, left)
		}
		return err
	}, sqlRedeem, met.turns, met.places, met.domains, met.codes, owners)
	slices.Sort(freed)
	return freed, held, err
}

// Statements are those of requests, by name.
func Statements() map[string]string {
	return map[string]string{"reserve": sqlReserve, "occupants": sqlOccupants, "redeem": sqlRedeem, "release": sqlRelease, "remove lapsed": sqlRemoveLapsed}
}
