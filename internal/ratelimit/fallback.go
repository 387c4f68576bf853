package ratelimit

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// Fallback asks a Store that many processes share, and its own where nobody answers there.
// What the shared Store allowed is spent in the own one, too: so this process by itself
// never allows more than the limit, however often the shared Store goes, comes back or
// forgets. Of several processes a caller gets at most what each has, together a limit for
// each, and never goes without one.
type Fallback struct {
	shared, own Store
	alone       atomic.Uint64
}

// NewFallback returns a Store that prefers shared, which has a short deadline of its own.
func NewFallback(shared, own Store) *Fallback { return &Fallback{shared: shared, own: own} }

// Alone returns how many calls this process decided by itself.
func (f *Fallback) Alone() uint64 { return f.alone.Load() }

// Spend implements Store. What was spent in the shared Store stays spent there when its
// answer was lost, or when it had forgotten what this process remembers: a limit rather
// refuses one too many.
func (f *Fallback) Spend(ctx context.Context, now time.Time, charges []Charge) ([]Verdict, error) {
	together, err := f.shared.Spend(ctx, now, charges)
	if errors.Is(err, ErrInvalid) || err == nil && slices.ContainsFunc(together, refuses) {
		return together, err
	}
	alone, ownErr := f.own.Spend(ctx, now, charges)
	switch {
	case ownErr != nil:
		return nil, ownErr
	case err == nil && !slices.ContainsFunc(alone, refuses):
		return together, nil
	}
	f.alone.Add(1)
	return alone, nil
}

func refuses(v Verdict) bool { return !v.Allowed }
