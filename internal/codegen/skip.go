package codegen

import (
	"context"
	"fmt"
)

// skipIDs are left out when leases may be older than links: 1,000 ranges, more
// than any one process leases between two backups of a busy hour.
const skipIDs = 10_000_000

// SkipAfterRestore moves the counter of a length past the ids that may have been
// leased after the backup that the store was restored from. Codes are inserted
// conditionally all the same; this keeps them from colliding at all.
//
// It skips 10 million ids, but at most 1/64 of the space: four digits hold 14.7
// million, and a few restores must not use them up.
func SkipAfterRestore(ctx context.Context, l Leaser, prefix string, length int) error {
	counter := Counter(prefix, length)
	if err := l.Skip(ctx, counter, skipOf(length)); err != nil {
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
