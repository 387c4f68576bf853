package coldsql

import (
	"context"
	"fmt"
	"math"
	"strings"

	"curt/internal/feed"
	"curt/internal/link"
)

// Followers implements feed.Positions, in the database of the log that is followed.
type Followers struct {
	db DB
	of followed
}

// followed are the logs that a follower reads.
type followed uint8

const (
	changes followed = iota
	creates
	both
)

var _ feed.Positions[link.Position] = Followers{}

// NewFollowers returns the positions of those who follow the change log of a database.
func NewFollowers(db DB) Followers { return Followers{db, changes} }

// NewCreateFollowers returns the positions of those who follow creates. No two followers of a
// database have one name.
func NewCreateFollowers(db DB) Followers { return Followers{db, creates} }

// NewBothFollowers returns the positions of those who follow both logs. Such a position is that in the
// change log, a space, that in creates, and, behind another space, whatever else the follower keeps.
func NewBothFollowers(db DB) Followers { return Followers{db, both} }

const (
	sqlFollower       = `SELECT seq, coalesce(position, '') FROM log_followers WHERE name = $1`
	sqlForgetFollower = `DELETE FROM log_followers WHERE name = $1`
	// No row: a holder with a higher fence has kept a position.
	sqlMoveFollower = `INSERT INTO log_followers AS old (name, fence, seq, position) VALUES ($1, $2, $3, $4)
	ON CONFLICT (name) DO UPDATE SET fence = excluded.fence, seq = excluded.seq, position = excluded.position WHERE old.fence <= excluded.fence`
)

// FollowerPosition implements feed.Positions.
func (s Followers) FollowerPosition(ctx context.Context, name string) (link.Position, bool, error) {
	var at link.Sequence
	var inCreates link.Position
	begun := false
	err := s.db.Read(ctx, func(t Tx) (err error) {
		begun, err = One(t, sqlFollower, func(r *Row) { at, inCreates = link.Sequence(r.Int()), link.Position(r.Text()) }, name)
		return err
	})
	if err != nil {
		return "", false, fmt.Errorf("position of %s in the change log: %w", name, err)
	}
	switch s.of {
	case creates:
		return inCreates, begun, nil
	case both:
		return at.Position() + " " + inCreates, begun, nil
	case changes:
	}
	return at.Position(), begun, nil
}

// split returns what the row of a follower keeps of a position.
func (s Followers) split(at link.Position) (seq int64, inCreates any, err error) {
	if s.of == creates {
		return math.MaxInt64, string(at), nil
	}
	if s.of == both {
		before, behind, _ := strings.Cut(string(at), " ")
		at, inCreates = link.Position(before), behind
	}
	n, err := at.Sequence()
	return int64(n), inCreates, err
}

// MoveFollower implements feed.Positions.
func (s Followers) MoveFollower(ctx context.Context, name string, fence uint64, to link.Position) error {
	seq, inCreates, err := s.split(to)
	if err == nil {
		err = s.db.Change(ctx, 1, func(t Tx) error {
			moved, err := t.Exec(sqlMoveFollower, name, int64(fence), seq, inCreates)
			if err == nil && moved == 0 {
				err = link.ErrConflict
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("move %s to %s under %d: %w", name, to, fence, err)
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
