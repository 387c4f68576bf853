package sqlitedb

import (
	"context"
	"errors"
)

// ErrFrozen is why writes are refused between Freeze and Thaw.
var ErrFrozen = errors.New("links are being moved to a database")

// Freezer has a store refuse writes for a time.
type Freezer struct{ writer *writer }

// FreezerOf returns that of a store.
func FreezerOf(s *Store) Freezer { return Freezer{s.writer} }

// Freeze refuses writes from now on, as unavailable, until Thaw. Those that were accepted before
// have their outcome when it returns nil. The check that refuses a write is the one for failures,
// so that writes cost nothing more. A store that refuses writes already returns why.
func (f Freezer) Freeze(ctx context.Context) error {
	err := f.writer.exclusive(ctx, f.writer.freeze)
	if errors.Is(err, ErrFrozen) {
		return nil
	}
	return err
}

// Thaw accepts writes again that Freeze refused.
func (f Freezer) Thaw() { f.writer.thaw() }
