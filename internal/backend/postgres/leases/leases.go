// Package leases keeps in PostgreSQL what servers have been given, each once: ids of codes, the key of
// codes, and keys of visitor tags. Read Begin first.
package leases

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/codegen"
	"curt/internal/link"
)

// Leases are what processes that share the database have been given: ids of codes, the key that
// makes codes of them, and keys of visitor tags. It implements codegen.Leaser.
type Leases struct {
	db      *pgdb.Database
	codeKey [32]byte
}

// New returns those of a database that is not connected yet, for Begin.
func New(db *pgdb.Database) *Leases { return &Leases{db: db} }

// Begin makes the key of codes at the first start, and moves leases past the newest counted links
// where they lie behind.
func (s *Leases) Begin(ctx context.Context) (codes *codegen.Permutation, err error) {
	if s.codeKey, err = s.loadCodeKey(ctx); err != nil {
		return nil, err
	}
	s.db.Health.Identity = s.codeKey[:]
	return codegen.NewPermutation(s.codeKey), s.skipStaleLeases(ctx)
}

const (
	sqlSetting    = `SELECT value FROM settings WHERE name = $1`
	sqlAddSetting = `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`
)

// loadCodeKey reads the key of the permutation, and makes it when there is none: of
// several processes that start at once, all read the one that was first.
func (s *Leases) loadCodeKey(ctx context.Context) (key [32]byte, err error) {
	fresh := make([]byte, len(key))
	_, _ = rand.Read(fresh) // never fails: crypto/rand ends the process instead
	if _, err := s.db.WritePool.Exec(ctx, sqlAddSetting, pgdb.SettingCodeKey, fresh); err != nil {
		return key, fmt.Errorf("create the code key: %w", err)
	}
	var stored []byte
	if err := s.db.WritePool.QueryRow(ctx, sqlSetting, pgdb.SettingCodeKey).Scan(&stored); err != nil {
		return key, fmt.Errorf("read the code key: %w", err)
	}
	if copy(key[:], stored) != len(key) || len(stored) != len(key) {
		return key, fmt.Errorf("%w: the code key has %d bytes, expected %d", pgdb.ErrUnfit, len(stored), len(key))
	}
	return key, nil
}

// CodeKey returns the key of the permutation, which was made at the first start. It is a
// secret: whoever has it can tell the order of links from their codes.
func (s *Leases) CodeKey(ctx context.Context) ([32]byte, error) {
	if ctx.Err() != nil {
		return [32]byte{}, fmt.Errorf("read the code key: %w", context.Cause(ctx))
	}
	return s.codeKey, nil
}

const sqlLease = `INSERT INTO leases (counter, next) VALUES ($1, $2)
	ON CONFLICT (counter) DO UPDATE SET next = leases.next + excluded.next WHERE leases.next <= 9223372036854775807 - excluded.next
	RETURNING next`

// Lease implements codegen.Leaser.
func (s *Leases) Lease(ctx context.Context, counter string, n uint64) (uint64, error) {
	if n == 0 || n > math.MaxInt64 {
		return 0, fmt.Errorf("lease %d ids from %s: %w", n, counter, link.ErrInvalid)
	}
	var next int64
	err := s.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
		found, err := pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&next) }, sqlLease, counter, int64(n))
		if err == nil && !found {
			err = fmt.Errorf("no %d ids are left: %w", n, link.ErrInvalid)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("lease from %s: %w", counter, err)
	}
	return uint64(next) - n, nil
}

const sqlLeased = `SELECT next FROM leases WHERE counter = $1`

// Leased implements codegen.Leaser.
func (s *Leases) Leased(ctx context.Context, counter string) (uint64, error) {
	var next int64
	err := s.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		_, err := pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&next) }, sqlLeased, counter)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the high-water mark of %s: %w", counter, err)
	}
	return uint64(next), nil
}

// Skip implements codegen.Leaser.
func (s *Leases) Skip(ctx context.Context, counter string, n uint64) error {
	_, err := s.Lease(ctx, counter, n)
	return err
}

const sqlRaise = `INSERT INTO leases (counter, next) VALUES ($1, $3)
	ON CONFLICT (counter) DO UPDATE SET next = excluded.next WHERE leases.next = $2 RETURNING next`

// Raise implements codegen.Leaser. A counter without a row is at 0.
func (s *Leases) Raise(ctx context.Context, counter string, from, to uint64) error {
	if to <= from || to > math.MaxInt64 {
		return fmt.Errorf("raise %s to %d: %w", counter, to, link.ErrInvalid)
	}
	err := s.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
		var next int64
		moved, err := pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&next) }, sqlRaise, counter, int64(from), int64(to))
		if err == nil && !moved {
			err = link.ErrConflict
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("raise %s from %d: %w", counter, from, err)
	}
	return nil
}

// until and kept are renewed every few seconds while servers run; links and changes tell of those whose accounts
// are elsewhere.
const sqlWritten = `SELECT greatest((SELECT created FROM links ORDER BY id DESC LIMIT 1), (SELECT at FROM changes ORDER BY seq DESC LIMIT 1),
	(SELECT max(until) FROM job_leases), (SELECT floor(extract(epoch FROM max(kept)) * 1000)::bigint FROM instances))`

// Written implements codegen.Dated.
func (s *Leases) Written(ctx context.Context) (at time.Time, err error) {
	var newest *int64 // NULL = nothing was written
	err = s.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		return q.QueryRow(ctx, sqlWritten).Scan(&newest)
	})
	if err != nil {
		return at, fmt.Errorf("find the newest write: %w", err)
	}
	if newest != nil {
		at = time.UnixMilli(*newest).UTC()
	}
	return at, nil
}

const sqlNewestCounted = `SELECT place FROM (SELECT place, minted FROM links ORDER BY id DESC LIMIT $1) AS newest WHERE minted`

// Statements are those that must find what they look for by an index, by name.
func Statements() map[string]string {
	return map[string]string{
		"newest counted": sqlNewestCounted, "take keys": sqlTakeKeys, "release keys": sqlReleaseKeys, "abandon keys": sqlAbandonKeys,
		"renew keys": sqlRenewKeys, "level of keys": sqlLevel,
	}
}

// newestLooked is how many of the newest links a start compares with the leases.
const newestLooked = 10_000

// skipStaleLeases moves every counter of codes past the newest links counted from it, for
// a database whose leases are older than its links.
func (s *Leases) skipStaleLeases(ctx context.Context) error {
	var highest [codegen.MaxLength + 1]uint64 // by length, one above the id
	err := s.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		clear(highest[:])
		return pgdb.Each(ctx, q, func(row pgx.Row) error {
			var place int64
			err := row.Scan(&place)
			if id, length, ok := codegen.IDAt(place); ok {
				highest[length] = max(highest[length], id+1)
			}
			return err
		}, sqlNewestCounted, newestLooked)
	})
	if err != nil {
		return fmt.Errorf("find the newest codes: %w", err)
	}
	for length, above := range highest {
		if above == 0 {
			continue
		}
		skipped, err := codegen.SkipIfStale(ctx, s, codegen.DefaultPrefix, length, above-1)
		if err != nil {
			return err
		}
		if skipped {
			s.db.Log.WarnContext(ctx, "code leases older than links, skipped ids", slog.Int("length", length))
		}
	}
	return nil
}

const (
	sqlAddDay  = `INSERT INTO day_keys (day, key) VALUES ($1, $2) ON CONFLICT (day) DO NOTHING`
	sqlDropDay = `DELETE FROM day_keys WHERE ` + dayIsOver
	dayIsOver  = `day < least($1::bigint, floor(extract(epoch FROM now()) / 86400)::bigint)`
)

// DayKey returns the key of visitor tags for the UTC day that holds day, the same to all
// processes. It makes the key when it is asked for first, and deletes the keys of earlier
// days that are over. What PostgreSQL has written lives on in its write-ahead log and in
// backups as long as those are kept.
func (s *Leases) DayKey(ctx context.Context, day time.Time) (key [16]byte, err error) {
	number := day.UTC().Unix() / int64((24 * time.Hour).Seconds())
	err = s.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
		found, old, err := readDay(ctx, q, number, &key)
		if err != nil || found && !old {
			return err
		}
		if !found {
			var fresh [16]byte
			_, _ = rand.Read(fresh[:]) // never fails: crypto/rand ends the process instead
			if _, err := q.Exec(ctx, sqlAddDay, number, fresh[:]); err != nil {
				return err
			}
		}
		if _, err := q.Exec(ctx, sqlDropDay, number); err != nil || found {
			return err
		}
		_, _, err = readDay(ctx, q, number, &key)
		return err
	})
	if err != nil {
		return [16]byte{}, fmt.Errorf("key of visitor tags for %s: %w", day.UTC().Format(time.DateOnly), err)
	}
	return key, nil
}

// A day that is over is over by the clock of the database, too: the key of the next day
// may be asked for before midnight.
const sqlDayKey = `SELECT key, EXISTS (SELECT FROM day_keys WHERE ` + dayIsOver + `) FROM day_keys WHERE day = $1`

// readDay reads the key of a day; old reports that there are some of days that are over.
func readDay(ctx context.Context, q pgdb.Querier, number int64, key *[16]byte) (found, old bool, err error) {
	var stored []byte
	found, err = pgdb.One(ctx, q, func(row pgx.Row) error { return row.Scan(&stored, &old) }, sqlDayKey, number)
	copy(key[:], stored)
	return found, old, err
}
