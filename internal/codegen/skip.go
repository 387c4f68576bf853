package codegen

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Ids that are left out when leases may be older than links: skipIDs, 1,000 ranges, to
// twice as many, at random; and skipPerSecond for each second that the leases are known to
// be old, the highest rate of creates that curt promises.
//
// At random, because two who start from one backup, or from copies of one folder, must not
// give away the same codes. If each then makes a million links, the chance that they meet
// all the same is one in five; after ten thousand links each it is one in 500.
const (
	skipIDs       = 10_000_000
	skipPerSecond = 10_000
)

// SkipAfterRestore moves the counter of a length past the ids that may have been
// leased since the backup that the store was restored from was made, age ago. Codes are
// inserted conditionally all the same; but a code that was given away after the backup
// is unknown to the store, and only this keeps it from being given to somebody else.
//
// It skips at most 1/64 of the space: four digits hold 14.7 million, and a few restores
// must not use them up.
func SkipAfterRestore(ctx context.Context, l Leaser, prefix string, length int, age time.Duration) error {
	counter := Counter(prefix, length)
	ids := skipOf(length)
	if old := skipPerSecond * uint64(max(age, 0)/time.Second); old > skipIDs {
		ids = min(old-skipIDs+ids, mostSkipped(length))
	}
	if err := l.Skip(ctx, counter, ids); err != nil {
		return fmt.Errorf("skip ids of %s after a restore: %w", counter, err)
	}
	return nil
}

// Dated is a Leaser whose store can say when it was last written.
type Dated interface {
	// Written returns the time of the newest write that left a trace, up to a minute late; zero = there is none.
	Written(ctx context.Context) (time.Time, error)
}

// KeysEpoch is the counter that keys which were generated ahead (keypool) are kept with: those of a lower count
// than the present one are void.
const KeysEpoch = "keys-epoch"

// SkipRestored moves the counters of all lengths past the ids that may have been leased since the store was last
// written, for a store that was restored by its own tools. It returns when that was; where the store cannot say it,
// as much is skipped as may be. Keys that were generated ahead are void, too. Repeated, it skips again.
//
// The milliseconds of a [Snowflake] need nothing: they are those of now, not the next ones.
func SkipRestored(ctx context.Context, l Leaser, now time.Time) (written time.Time, err error) {
	if d, ok := l.(Dated); ok {
		if written, err = d.Written(ctx); err != nil {
			return written, err
		}
	}
	for length := MinLength; length <= MaxLength; length++ {
		if err := SkipAfterRestore(ctx, l, DefaultPrefix, length, now.Sub(written)); err != nil {
			return written, err
		}
	}
	if err := l.Skip(ctx, KeysEpoch, 1); err != nil {
		return written, fmt.Errorf("void keys that were generated ahead: %w", err)
	}
	return written, nil
}

// SkipIfStale compares the counter of a length with the highest id that any link
// was counted from, and when it lies at or below moves it past that id and as far
// again as after a restore. A start calls it; skipped is worth a warning.
func SkipIfStale(ctx context.Context, l Leaser, prefix string, length int, highest uint64) (skipped bool, err error) {
	ids, err := SkipPast(ctx, l, prefix, length, highest+1)
	return ids > 0, err
}

// SkipPast moves the counter of a length past the ids that are known to have been leased,
// which end before leased, and as far again as after a restore, unless it lies there
// already. It returns how many ids were skipped.
func SkipPast(ctx context.Context, l Leaser, prefix string, length int, leased uint64) (ids uint64, err error) {
	counter := Counter(prefix, length)
	mark, err := l.Leased(ctx, counter)
	if err != nil {
		return 0, fmt.Errorf("read the high-water mark of %s: %w", counter, err)
	}
	if leased <= mark {
		return 0, nil
	}
	ids = leased - mark + skipOf(length)
	if err := l.Skip(ctx, counter, ids); err != nil {
		return 0, fmt.Errorf("skip stale ids of %s: %w", counter, err)
	}
	return ids, nil
}

// SkipApart moves the counter of a length as far as after a restore, for a store of which
// there may be another that goes on from the same place. It returns how many ids were
// skipped.
func SkipApart(ctx context.Context, l Leaser, prefix string, length int) (ids uint64, err error) {
	counter := Counter(prefix, length)
	ids = skipOf(length)
	if err := l.Skip(ctx, counter, ids); err != nil {
		return 0, fmt.Errorf("skip ids of %s for a copy: %w", counter, err)
	}
	return ids, nil
}

// mostSkipped is 1/64 of the space.
func mostSkipped(length int) uint64 { return Space(length) / 64 }

// skipOf draws from 10 to 20 million; where that is too much for the length, from half of
// what it may lose to all of that.
func skipOf(length int) uint64 {
	most := min(2*skipIDs, mostSkipped(length))
	least := uint64(skipIDs)
	if most <= least {
		least = most / 2
	}
	// No secret: two copies must differ.
	return least + rand.Uint64N(most-least+1)
}
