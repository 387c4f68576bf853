package rollup

import (
	"context"
	"errors"
	"iter"
	"time"

	"curt/internal/clicks/clicklog"
	"curt/internal/link"
)

// ErrGeneration means that another writer applied a batch in between. There must be one Fold
// per state; its caller must load the state again or stop.
var ErrGeneration = errors.New("roll-ups were written by another process")

// Store keeps what Fold has counted. All methods may be called by many
// goroutines at once; Apply by one.
//
// Roll-ups and position move together: after any crash the store holds exactly
// the clicks before its position, so that a click which is read again from there
// counts once. The proof of a driver is the suite in rolluptest.
//
// Several processes may write to one database of roll-ups. Each has a state of its own there,
// and a Store of its own, whose generations are those of its state; the counts are
// those of all.
type Store interface {
	// Load returns the state that the last Apply left; the zero State at first.
	Load(ctx context.Context) (State, error)

	// Apply adds every delta of the batch and moves the state to the batch's, in
	// one transaction: all or nothing. The batch's generation MUST be the stored
	// one + 1. The stored state itself, generation and position, means that this
	// very batch was applied and only the answer was lost: nil, and nothing is
	// added. Any other is ErrGeneration. link.ErrUncertain, and an error without a sentinel, mean "may have happened": applying
	// the same batch again is safe.
	Apply(ctx context.Context, b Batch) error

	// Totals returns the totals of the keys, in order, zero for a link without
	// clicks, and the generation that they belong to, in one view.
	Totals(ctx context.Context, keys []link.Key) ([]Total, uint64, error)

	// Read returns the link's total and its rows of the spans, by bucket within
	// each span, in one view. Fields that want does not name may be empty.
	Read(ctx context.Context, k link.Key, want Want, spans ...Span) (Stored, error)

	// Sum adds the dimensions of the link's rows of the spans to the sums, and returns
	// the generation that they belong to, in one view. After an error the sums are of
	// no use.
	Sum(ctx context.Context, k link.Key, into *Sums, spans ...Span) (generation uint64, err error)
}

// State says what a store has counted: all clicks before the position.
type State struct {
	Generation uint64 // how many batches were applied
	Position   clicklog.Position
}

// Batch is what Fold adds at once.
type Batch struct {
	State // after the batch

	// Complete is up to when every kept click of the log is counted with this batch; zero =
	// not known. Stores that one process writes to alone have no use for it.
	Complete time.Time

	// Links yields the deltas in chunks, by key within and across chunks, each
	// link once. A chunk is valid until the next one. It can be walked again.
	Links iter.Seq[[]LinkDelta]
}

// LinkDelta is what happened to one link. The zero Key is the orphans: requests
// for codes that no link has, counted together.
type LinkDelta struct {
	Key     link.Key
	Total   Total
	Buckets []BucketDelta // each bucket once; days are the sums of their quarters
}

// BucketDelta is what happened to a link in one bucket.
type BucketDelta struct {
	Bucket Bucket
	Rollup *Rollup
	// Digest is what a store keeps of a day besides; nil in deltas, of quarters,
	// and where the store has none.
	Digest *DayDigest
}

// Want names the costly parts of a row.
type Want uint8

// The parts; Counts and Minutes always come, dimensions by Sum.
const (
	WantVisitors Want = 1 << 0
)

// Span is a range of buckets, First and Last included.
type Span struct {
	Granularity Granularity
	First, Last uint32 // ordinals
}

// Stored is what a store knows of one link.
type Stored struct {
	Generation uint64
	Total      Total
	Rows       []BucketDelta
}
