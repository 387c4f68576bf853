// Package ratelimit decides whether a caller may go on, by the generic cell rate
// algorithm (GCRA, ITU-T I.371; as one number per key). The arithmetic is pure in
// gcra.go; a [Store] keeps the numbers, in memory today, shared later. The suite
// in ratelimittest proves Stores.
package ratelimit

import (
	"context"
	"time"
)

// Limit allows Burst at once and then Count per Period, evenly.
type Limit struct {
	Count  int
	Period time.Duration
	Burst  int
}

// Charge asks for Cost cells of one bucket. A bucket is a name like
// "create:203.0.113.0" chosen by the caller from a bounded set of kinds.
type Charge struct {
	Bucket string
	Limit  Limit
	Cost   int
}

// Verdict answers one Charge.
type Verdict struct {
	Allowed    bool
	Limit      int           // X-RateLimit-Limit
	Remaining  int           // X-RateLimit-Remaining
	RetryAfter time.Duration // until the same charge would be allowed; 0 when Allowed
	ResetAfter time.Duration // until the bucket is full again
}

// Store spends charges. Either all charges of a call are allowed and spent, or
// none is spent and the Verdicts say which refused. It is safe for many
// goroutines, exact among them, and bounded in memory whatever buckets are named.
type Store interface {
	Spend(ctx context.Context, now time.Time, charges []Charge) ([]Verdict, error)
}
