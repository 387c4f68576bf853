// Package ratelimit decides whether a caller may go on, by the generic cell rate
// algorithm (GCRA, ITU-T I.371; as one number per key). The arithmetic is pure in
// gcra.go; a [Store] keeps the numbers, in memory today, shared later. The suite
// in ratelimittest proves Stores.
package ratelimit

import (
	"context"
	"errors"
	"slices"
	"time"
)

// ErrInvalid is the error of a Limit or a Cost out of bounds: a mistake of the
// program or its settings, not of a caller.
var ErrInvalid = errors.New("invalid rate limit")

// Limit allows Burst at once and then Count per Period, evenly. All three are
// positive, and filling an empty bucket takes at most a hundred years.
type Limit struct {
	Count  int
	Period time.Duration
	Burst  int
}

// Charge asks for Cost cells of one bucket. A bucket is a name like
// "create:203.0.113.0" chosen by the caller from a bounded set of kinds. A Cost of 0
// asks without spending; one above Limit.Burst is never allowed.
type Charge struct {
	Bucket string
	Limit  Limit
	Cost   int
}

// Verdict answers one Charge.
type Verdict struct {
	Allowed    bool
	Limit      int           // X-RateLimit-Limit: the burst, so that Remaining is part of it
	Remaining  int           // X-RateLimit-Remaining
	RetryAfter time.Duration // until the same charge would be allowed; 0 when Allowed; if never, ResetAfter
	ResetAfter time.Duration // until the bucket is full again
}

// Store spends charges. Either all charges of a call are allowed and spent, or
// none is spent and the Verdicts say which refused, one per charge in order. It is
// safe for many goroutines, exact among them, and bounded in memory whatever
// buckets are named. Time that goes back stands still.
//
// An error means that nobody decided: ErrInvalid for a charge that makes no sense,
// else a Store that cannot be asked.
type Store interface {
	Spend(ctx context.Context, now time.Time, charges []Charge) ([]Verdict, error)
}

// Peek returns what s would answer to charges, and spends nothing: with them it is asked for
// one that is never allowed.
func Peek(ctx context.Context, s Store, now time.Time, charges []Charge) ([]Verdict, error) {
	never := Charge{Bucket: "never", Limit: Limit{Count: 1, Period: time.Second, Burst: 1}, Cost: 2}
	verdicts, err := s.Spend(ctx, now, append(slices.Clone(charges), never))
	if err != nil {
		return nil, err //nolint:wrapcheck // the Store's own
	}
	return verdicts[:len(charges)], nil
}
