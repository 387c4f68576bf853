package coldsql

import (
	"context"
	"fmt"

	"curt/internal/feed"
	"curt/internal/link"
)

// Followers implements feed.Positions, in the database of the log that is followed.
type Followers struct{ db DB }

var _ feed.Positions[link.Sequence] = Followers{}

// NewFollowers returns the positions of those who follow the change log of a database.
func NewFollowers(db DB) Followers { return Followers{db} }

const (
	sqlFollower       = `SELECT seq FROM log_followers WHERE name = $1`
	sqlForgetFollower = `DELETE FROM log_followers WHERE name = $1`
	// No row: a holder with a higher fence has kept a position.
	sqlMoveFollower = `INSERT INTO log_followers AS old (name, fence, seq) VALUES ($1, $2, $3)
	ON CONFLICT (name) DO UPDATE SET fence = excluded.fence, seq = excluded.seq WHERE old.fence <= excluded.fence`
)

// FollowerPosition implements feed.Positions.
func (s Followers) FollowerPosition(ctx context.Context, name string) (link.Sequence, bool, error) {
	var at link.Sequence
	begun := false
	err := s.db.Read(ctx, func(t Tx) (err error) {
		begun, err = one(t, sqlFollower, func(r *row) { at = link.Sequence(r.int()) }, name)
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("position of %s in the change log: %w", name, err)
	}
	return at, begun, nil
}

// MoveFollower implements feed.Positions.
func (s Followers) MoveFollower(ctx context.Context, name string, fence uint64, to link.Sequence) error {
	err := s.db.Change(ctx, 1, func(t Tx) error {
		moved, err := t.Exec(sqlMoveFollower, name, int64(fence), int64(to))
		if err == nil && moved == 0 {
			err = link.ErrConflict
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("move %s to %d under %d: %w", name, to, fence, err)
	}
	return nil
}

// ForgetFollower implements feed.Positions.
func (s Followers) ForgetFollower(ctx context.Context, name string) error {
	err := s.db.Change(ctx, 1, func(t Tx) error {
		_, err := t.Exec(sqlForgetFollower, name)
		return err
	})
	if err != nil {
		return fmt.Errorf("forget %s: %w", name, err)
	}
	return nil
}
