package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"curt/internal/joblease"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// Positions keeps where the followers of a fleet stand, in the store of the log. Entries that one of
// them has not read stay in the log, up to the store's bound. It is safe for many goroutines and
// processes.
type Positions[P comparable] interface {
	// FollowerPosition returns the last position of a follower; begun = false: it has none yet.
	FollowerPosition(ctx context.Context, name string) (at P, begun bool, err error)

	// MoveFollower keeps a position. link.ErrConflict where a holder with a higher fence has kept
	// one. It may go back.
	MoveFollower(ctx context.Context, name string, fence uint64, to P) error

	// ForgetFollower lets go of a follower that has ended for good; nil also when there is none.
	ForgetFollower(ctx context.Context, name string) error
}

// Fleet is a follower of which a fleet has one: whichever server holds its lease.
type Fleet[P comparable, E any] struct {
	Name      string
	Log       Log[P, E]
	Page      int
	Positions Positions[P]

	// Apply makes something of entries. A holder that was paused may do so beside its successor: what
	// it writes carries the fence, or is idempotent.
	Apply func(ctx context.Context, page []E, fence uint64) error
	// Rebuild is Follower.Rebuild, but for the position, which is kept when it has returned nil.
	Rebuild func(ctx context.Context, fence uint64) error

	Once   joblease.Once   // Name is that of the follower
	Every  time.Duration   // between looks at the log
	Wake   <-chan struct{} // there is something to read; nil = nobody says so
	Logger *slog.Logger
}

// Run follows while this server holds the lease, until ctx ends. What fails is logged and tried
// again.
func (f *Fleet[P, E]) Run(ctx context.Context) error {
	f.Once.Name = f.Name
	return f.Once.Run(ctx, f.hold)
}

func (f *Fleet[P, E]) hold(ctx context.Context, fence uint64) error {
	follower := f.follower(fence)
	tick := time.NewTicker(f.Every)
	defer tick.Stop()
	var failing repeatlog.Condition
	for {
		err := follower.CatchUp(ctx)
		if errors.Is(err, joblease.ErrLost) {
			return err
		}
		if err == nil {
			failing.LogRecovery(ctx, time.Now(), f.Logger, "follower recovered", slog.String("follower", f.Name))
		} else if ctx.Err() == nil {
			failing.Log(ctx, time.Now(), f.Logger, slog.LevelWarn, "follower failed, retrying", err, slog.String("follower", f.Name))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		case <-f.Wake:
		}
	}
}

// follower keeps the position after the effect, under the fence.
func (f *Fleet[P, E]) follower(fence uint64) *Follower[P, E] {
	move := func(ctx context.Context, to P) error {
		err := f.Positions.MoveFollower(ctx, f.Name, fence, to)
		if errors.Is(err, link.ErrConflict) {
			return fmt.Errorf("%w: %w", joblease.ErrLost, err)
		}
		return err
	}
	return &Follower[P, E]{
		Name: f.Name, Log: f.Log, Page: f.Page,
		Position: func(ctx context.Context) (P, bool, error) { return f.Positions.FollowerPosition(ctx, f.Name) },
		Apply: func(ctx context.Context, page []E, to P) error {
			if err := f.Apply(ctx, page, fence); err != nil {
				return err
			}
			return move(ctx, to)
		},
		Rebuild: func(ctx context.Context) error {
			head, err := f.Log.Head(ctx)
			if err != nil {
				return err
			}
			if err := f.Rebuild(ctx, fence); err != nil {
				return err
			}
			return move(ctx, head)
		},
	}
}
