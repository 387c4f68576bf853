package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/codegen"
	"curt/internal/link"
)

const (
	sqlLease = `INSERT INTO leases (counter, next) VALUES ($1, $2)
	ON CONFLICT (counter) DO UPDATE SET next = leases.next + excluded.next WHERE leases.next <= 9223372036854775807 - excluded.next
	RETURNING next`
	sqlLeased = `SELECT next FROM leases WHERE counter = $1`

	sqlNewestCounted = `SELECT place FROM (SELECT place, minted FROM links ORDER BY id DESC LIMIT $1) AS newest WHERE minted`

	// A day that is over is over by the clock of the database, too: the key of the next day
	// may be asked for before midnight.
	sqlDayKey  = `SELECT key, EXISTS (SELECT FROM day_keys WHERE ` + dayIsOver + `) FROM day_keys WHERE day = $1`
	sqlAddDay  = `INSERT INTO day_keys (day, key) VALUES ($1, $2) ON CONFLICT (day) DO NOTHING`
	sqlDropDay = `DELETE FROM day_keys WHERE ` + dayIsOver
	dayIsOver  = `day < least($1::bigint, floor(extract(epoch FROM now()) / 86400)::bigint)`
)

// Lease implements codegen.Leaser.
func (s *Links) Lease(ctx context.Context, counter string, n uint64) (uint64, error) {
	if n == 0 || n > math.MaxInt64 {
		return 0, fmt.Errorf("lease %d ids from %s: %w", n, counter, link.ErrInvalid)
	}
	var next int64
	err := s.writing(ctx, func(ctx context.Context, q querier) error {
		found, err := one(ctx, q, func(row pgx.Row) error { return row.Scan(&next) }, sqlLease, counter, int64(n))
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

// Leased implements codegen.Leaser.
func (s *Links) Leased(ctx context.Context, counter string) (uint64, error) {
	var next int64
	err := s.reading(ctx, func(ctx context.Context, q querier) error {
		_, err := one(ctx, q, func(row pgx.Row) error { return row.Scan(&next) }, sqlLeased, counter)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the mark of %s: %w", counter, err)
	}
	return uint64(next), nil
}

// Skip implements codegen.Leaser.
func (s *Links) Skip(ctx context.Context, counter string, n uint64) error {
	_, err := s.Lease(ctx, counter, n)
	return err
}

// newestLooked is how many of the newest links a start compares with the leases.
const newestLooked = 10_000

// skipStaleLeases moves every counter of codes past the newest links counted from it, for
// a database whose leases are older than its links.
func (s *Links) skipStaleLeases(ctx context.Context) error {
	var highest [codegen.MaxLength + 1]uint64 // by length, one above the id
	err := s.reading(ctx, func(ctx context.Context, q querier) error {
		clear(highest[:])
		return each(ctx, q, func(row pgx.Row) error {
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
			s.config.Log.WarnContext(ctx, "leases of codes were older than the links; ids were skipped", slog.Int("length", length))
		}
	}
	return nil
}

// DayKey returns the key of visitor tags for the UTC day that holds day, the same to all
// processes. It makes the key when it is asked for first, and deletes the keys of earlier
// days that are over. What PostgreSQL has written lives on in its write-ahead log and in
// backups as long as those are kept.
func (s *Links) DayKey(ctx context.Context, day time.Time) (key [16]byte, err error) {
	number := day.UTC().Unix() / int64((24 * time.Hour).Seconds())
	err = s.writing(ctx, func(ctx context.Context, q querier) error {
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

// readDay reads the key of a day; old reports that there are some of days that are over.
func readDay(ctx context.Context, q querier, number int64, key *[16]byte) (found, old bool, err error) {
	var stored []byte
	found, err = one(ctx, q, func(row pgx.Row) error { return row.Scan(&stored, &old) }, sqlDayKey, number)
	copy(key[:], stored)
	return found, old, err
}
