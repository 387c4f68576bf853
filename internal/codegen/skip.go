package codegen

import (
	"context"
	"fmt"
	"time"
)

// Ids that are left out when leases may be older than links: at least skipIDs, 1,000
// ranges, and skipPerSecond for each second that the leases are old, the highest rate
// of creates that curt promises.
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
	ids := max(skipIDs, skipPerSecond*uint64(max(age, 0)/time.Second))
	if err := l.Skip(ctx, counter, min(ids, Space(length)/64)); err != nil {
		return fmt.Errorf("skip ids of %s after a restore: %w", counter, err)
	}
	return nil
}

// SkipIfStale compares the counter of a length with the highest id that any link
// was minted from, and when it lies at or below moves it past that id and as far
// again as after a restore. A start calls it; skipped is worth a warning.
func SkipIfStale(ctx context.Context, l Leaser, prefix string, length int, highest uint64) (skipped bool, err error) {
	counter := Counter(prefix, length)
	mark, err := l.Leased(ctx, counter)
	if err != nil {
		return false, fmt.Errorf("read the mark of %s: %w", counter, err)
	}
	if highest < mark {
		return false, nil
	}
	if err := l.Skip(ctx, counter, highest+1-mark+skipOf(length)); err != nil {
		return false, fmt.Errorf("skip stale ids of %s: %w", counter, err)
	}
	return true, nil
}

func skipOf(length int) uint64 { return min(skipIDs, Space(length)/64) }
