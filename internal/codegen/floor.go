package codegen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"sync"

	"curt/internal/statefile"
)

// ErrRestored means that ids were leased beyond those that the store knows of: it was restored from a
// backup, or lost commits in a fail-over. Codes of the ids between may be those of links that are lost.
var ErrRestored = errors.New("the store was restored from a backup, or lost commits in a fail-over")

// Floor is a Leaser that remembers in a file, outside of its store, how far ids were leased as far as this
// process has seen, and leases none below that. Whoever restores the store has to skip what was leased since
// (SkipRestored): Floor tells when that was forgotten. A Floor without its file knows nothing of the time before.
type Floor struct {
	Leaser

	log  *slog.Logger
	file *statefile.File

	// mu is held while ids are leased: another range that is leased meanwhile would seem to have come before.
	// A Range leases one at a time.
	mu     sync.Mutex
	floors map[string]uint64 // by counter, the lowest id that may be leased; guarded by mu
}

// OpenFloor returns a Floor with a file that is there or a new one. It returns ErrRestored if the store lies
// behind the file, which must be of this store: of one with the same key of codes. A file that cannot be written
// is a warning, because leases are good without it.
func OpenFloor(ctx context.Context, l Leaser, name string, log *slog.Logger) (*Floor, error) {
	f := &Floor{Leaser: l, log: log, floors: map[string]uint64{}}
	switch known, err := statefile.Read(name); {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, statefile.ErrDamaged):
		log.WarnContext(ctx, "record of code leases was damaged, recreated it", slog.String("file", name))
	case err != nil:
		return nil, fmt.Errorf("record of code leases: %w", err)
	case known.Leases != nil:
		f.floors = known.Leases
	}
	for length := MinLength; length <= MaxLength; length++ {
		counter := Counter(DefaultPrefix, length)
		mark, err := f.Leased(ctx, counter)
		if err != nil {
			return nil, err
		}
		if floor := f.floors[counter]; mark < floor {
			return nil, fmt.Errorf("%w: its leases of %s end at %d, but ids up to %d were leased", ErrRestored, counter, mark, floor)
		}
		if mark > 0 {
			f.floors[counter] = mark
		}
	}
	var err error
	f.file, err = statefile.Begin(name, statefile.State{Leases: maps.Clone(f.floors)})
	f.warn(ctx, err)
	return f, nil
}

func (f *Floor) warn(ctx context.Context, err error) {
	if err != nil {
		f.log.WarnContext(ctx, "writing the record of code leases failed, a restore of the link store may go unnoticed", slog.Any("err", err))
	}
}

// Lease implements Leaser. Where the store has fallen behind while this process runs, as by a fail-over that lost
// commits, it skips as much as where one is found at a start: creates do not wait for a person.
func (f *Floor) Lease(ctx context.Context, counter string, n uint64) (first uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if err := f.catchUp(ctx, counter); err != nil {
			return 0, err
		}
		if first, err = f.Leaser.Lease(ctx, counter, n); err != nil {
			return 0, err
		}
		if first >= f.floors[counter] {
			break
		}
	}
	f.floors[counter] = first + n
	f.warn(ctx, f.file.Update(func(now *statefile.State) { now.Leases[counter] = first + n }))
	return first, nil
}

// catchUp skips ids of codes if the store lies behind.
func (f *Floor) catchUp(ctx context.Context, counter string) error {
	for length := MinLength; length <= MaxLength; length++ {
		if Counter(DefaultPrefix, length) != counter {
			continue
		}
		ids, err := SkipPast(ctx, f.Leaser, DefaultPrefix, length, f.floors[counter])
		if err != nil {
			return err
		}
		if ids > 0 {
			f.log.WarnContext(ctx, "code leases of the link store went back, skipped ids", slog.String("counter", counter), slog.Uint64("ids_skipped", ids), slog.Any("err", ErrRestored))
		}
	}
	return nil
}
