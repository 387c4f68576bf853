package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/link"
)

const (
	sqlTwins = `SELECT ` + linkColumns + ` FROM links
	WHERE workspace = $1 AND digest = $2 AND expires = $3 AND status = 1 AND safety = 1 AND max_clicks = 0
	ORDER BY id LIMIT $4`

	// Until the transaction ends, nobody else looks for the same destination to create it.
	sqlAlone = `SELECT pg_advisory_xact_lock($1)`
)

// FindSame implements link.Deduper.
func (s *Links) FindSame(ctx context.Context, wanted link.Link, now time.Time) (same link.Link, err error) {
	err = s.reading(ctx, func(ctx context.Context, q querier) error {
		var found bool
		if same, found, err = findSame(ctx, q, wanted, now); err == nil && !found {
			err = link.ErrNotFound
		}
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("find the same link: %w", err)
	}
	return same, nil
}

// errEnough ends a walk over rows that found what it was for.
var errEnough = errors.New("enough rows")

// findSame walks the links that may stand in for wanted, oldest first.
func findSame(ctx context.Context, q querier, wanted link.Link, now time.Time) (same link.Link, found bool, err error) {
	err = each(ctx, q, func(row pgx.Row) error {
		l, err := scanLink(row)
		if err == nil && l.StandsInFor(wanted, now) {
			same, found, err = l, true, errEnough
		}
		return err
	}, sqlTwins, string(wanted.Workspace), digest(wanted.Destination), millis(wanted.Expires), link.MaxTwins)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return same, found, err
}

// FindOrCreate implements link.Deduper.
func (s *Links) FindOrCreate(ctx context.Context, l link.Link, now time.Time) (stored link.Link, found bool, err error) {
	if err := s.ready(ctx); err != nil {
		return link.Link{}, false, fmt.Errorf("find or create: %w", err)
	}
	if err := storable(&l); err != nil {
		return link.Link{}, false, fmt.Errorf("find or create: %w", err)
	}
	within, cancel := context.WithTimeout(ctx, statementLimit) // callers who want the same take turns
	defer cancel()
	stored, found, err = s.findOrCreate(within, l, now)
	s.heard(err)
	if err = writeError(ctx, err); err != nil {
		return link.Link{}, false, fmt.Errorf("find or create %s: %w", l.Key, err)
	}
	return stored, found, nil
}

// findOrCreate looks without a lock first, which mostly suffices.
func (s *Links) findOrCreate(ctx context.Context, l link.Link, now time.Time) (stored link.Link, found bool, err error) {
	err = s.reread(ctx, func() error {
		stored, found, err = s.standIn(ctx, s.read, l, now)
		return err
	})
	if err != nil || found {
		return stored, found, err
	}
	err = repeated(ctx, func() error {
		return pgx.BeginFunc(ctx, s.write, func(t pgx.Tx) error {
			if _, err := t.Exec(ctx, sqlAlone, lockOf(l)); err != nil {
				return err
			}
			// This statement sees what the one before us has committed.
			stored, found, err = s.standIn(ctx, t, l, now)
			if err != nil || found {
				return err
			}
			outcomes, err := s.createAll(ctx, t, []link.Link{l})
			if err == nil {
				stored, err = outcomes[0].link, outcomes[0].err
			}
			return err
		})
	})
	if err == nil && !found && s.config.Stored != nil {
		s.config.Stored(stored.ID)
	}
	return stored, found, err
}

// standIn finds another link that stands in for l, unless l itself is stored: a call that
// is repeated answers for its own link, whatever stands in by now.
func (s *Links) standIn(ctx context.Context, q querier, l link.Link, now time.Time) (same link.Link, found bool, err error) {
	same, found, err = findSame(ctx, q, l, now)
	if err != nil || !found || same.ID == l.ID {
		return link.Link{}, false, err
	}
	own, there, err := s.byKey(ctx, q, l.Key)
	return same, !there || own.ID != l.ID, err
}

// lockOf returns what stands for all links that may be the same as l.
func lockOf(l link.Link) int64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "curt dedupe %q %q %d", l.Workspace, l.Destination, millis(l.Expires)))
	return int64(binary.BigEndian.Uint64(sum[:]))
}
