package shorten

import (
	"context"
	"fmt"
	"hash/maphash"
	"time"

	"curt/internal/link"
)

const (
	// stripes bounds the memory of turns. Two keys of one stripe wait for each other,
	// which costs a commit and nothing else.
	stripes = 1024
	// maxWait bounds how long a change waits for its turn: some hundred commits of a
	// slow disk. Whoever waits longer is one of a crowd that had better come back.
	maxWait = 15 * time.Second
)

// turns lets one change of a key happen at a time in this process, in the order of
// arrival. The compare-and-swap below it stays what keeps changes apart; without turns
// each of n changes at once loses up to n rounds of it.
type turns struct {
	seed maphash.Seed
	held [stripes]chan struct{} // full while somebody has the turn
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.held {
		t.held[i] = make(chan struct{}, 1)
	}
	return t
}

// wait returns when it is the caller's turn at k, which it must give back with done.
// Errors: that of ctx, and link.ErrUnavailable after maxWait; then done is nil.
func (t *turns) wait(ctx context.Context, k link.Key) (done func(), err error) {
	held := t.held[maphash.Comparable(t.seed, k)%stripes]
	done = func() { <-held }
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("wait to change %s: %w", k, err)
	}
	select {
	case held <- struct{}{}:
		return done, nil
	default:
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case held <- struct{}{}:
		return done, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to change %s: %w", k, ctx.Err())
	case <-timer.C:
		return nil, fmt.Errorf("%w: %s has too many changes at once", link.ErrUnavailable, k)
	}
}
