package ratelimit

import (
	"context"
	"time"
)

// Ledger is where servers add up what each of them has spent, so that limits hold over all of them
// and over restarts. Its time is its own clock. It is safe for many goroutines.
type Ledger interface {
	// Add adds charges that were granted, and returns the levels of their buckets; it may return
	// those of other buckets that other servers have charged. After an error, some of the charges may
	// have been added.
	Add(ctx context.Context, spent []Spent) ([]Level, error)
}

// Spent is what one server has granted of a bucket, by its HashKey.
type Spent struct {
	Bucket uint64
	Add    time.Duration // by so much later the bucket is full: cells × Limit.Interval
	Size   time.Duration // in which an empty bucket fills
}

// Level says in how much time a bucket is full, by the charges of all servers. It may be longer than
// an empty bucket takes, up to twice that: several servers have granted too much.
type Level struct {
	Bucket uint64
	Full   time.Duration
}

// Tally is where servers add up how many links each creator has created in each minute. It is safe
// for many goroutines.
type Tally interface {
	// Count adds counts and returns the sums of their creators after the minute since, of all
	// servers. After an error, some of the counts may have been added.
	Count(ctx context.Context, add []Count, since int64) ([]Count, error)
}

// Count is how many links a creator, by its HashKey, has created in a minute since 1970.
type Count struct {
	Creator uint64
	Minute  int64
	Links   int
}
