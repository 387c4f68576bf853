// Package history finds the clicks of one link, or of a group, in the click log, newest first.
//
// Read history.go first (which index covers which segment), then page.go (a page of clicks)
// and index.go (the file beside a segment).
package history

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"curt/internal/background"
	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/groups"
	"curt/internal/clicks/useragent"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// Config says which log a History searches.
type Config struct {
	Log    *clicklog.Log
	Logger *slog.Logger // nil = none

	// Groups returns the group that each link counts for, as that of fold.Config does; nil =
	// there are no groups.
	Groups func(ctx context.Context, keys []link.Key) ([]string, error)

	Yielder background.Yielder // queues pages, and Run yields often while it computes; nil = nothing is scheduled
}

// History finds the clicks of one link, or of a group, in the click log, newest first. Segments
// that are full have an index in a file beside them, the one that is written to has
// it in memory; both are built from the segment and can be rebuilt from it.
type History struct {
	log     *clicklog.Log
	dir     string
	logger  *slog.Logger
	agents  *useragent.Classifier // for descriptions
	yielder background.Yielder
	yield   func() // between parts of long work

	mu     sync.Mutex
	reader *clicklog.Reader // guarded by mu; follows the log's end
	tail   *segmentIndex    // guarded by mu; of the segment that is written to; nil before its first block
	full   []*segmentIndex  // guarded by mu; ended and not yet on disk, oldest first

	building sync.Mutex    // held while an index is rebuilt: one at a time
	grouping sync.Mutex    // guards groups, also while links are asked for
	groups   *groups.Cache // guarded by grouping
	stats    Stats
	counting sync.Mutex // guards stats

	blind, slow repeatlog.Condition // what keeps the log from being followed, and indexes from being written
}

// Stats are counters since the start.
type Stats struct {
	Indexes uint64 // written
	Rebuilt uint64 // of those, rebuilt from a segment whose index was missing or damaged
	Errors  uint64 // indexes that could not be written
	Damages uint64 // places of the log that could not be read
}

// maxWaiting is how many indexes wait in memory, a few MiB each, while the disk
// takes none. Those beyond it are rebuilt from their segments.
const maxWaiting = 2

// New returns a History over a log that was just opened: what it holds now
// is not written to any more.
func New(c Config) *History {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	yield := runtime.Gosched // goroutines that are ready go first
	c.Yielder = background.Or(c.Yielder)
	if c.Yielder.Yields() {
		yield = c.Yielder.Yield
	}
	h := &History{log: c.Log, dir: c.Log.Dir(), logger: c.Logger, agents: useragent.NewClassifier(), yielder: c.Yielder, yield: yield, groups: groups.New(c.Groups)}
	first := clicklog.Position{}
	if all := h.log.Segments(); len(all) > 0 {
		first.Segment = all[len(all)-1].Number + 1
	}
	h.reader = h.log.Read(first)
	return h
}

// Stats returns the counters.
func (h *History) Stats() Stats {
	h.counting.Lock()
	defer h.counting.Unlock()
	return h.stats
}

// Since returns when the oldest clicks that are still kept one by one were taken; zero =
// there are none.
func (h *History) Since() time.Time {
	for _, s := range h.log.Segments() {
		if s.Size > 0 {
			return time.UnixMilli(s.Begun()).UTC()
		}
	}
	return time.Time{}
}

func (h *History) count(f func(*Stats)) {
	h.counting.Lock()
	defer h.counting.Unlock()
	f(&h.stats)
}

// Run keeps the indexes up to date until ctx ends; then it returns nil. A
// question does not depend on it, it only takes longer without.
func (h *History) Run(ctx context.Context) error {
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.reader.Close()
	}()
	wait := 0
	for range background.Ticks(ctx, time.Second) {
		h.follow(ctx)
		h.store(ctx)
		if wait <= 0 && !h.complete(ctx) {
			wait = ticksBetween
		}
		wait--
	}
	return nil
}

// ticksBetween is how many seconds Run waits after it found that no index is
// missing, or could not write one.
const ticksBetween = 30

// follow indexes what was appended since the last time.
func (h *History) follow(ctx context.Context) {
	for ctx.Err() == nil && h.followOne(ctx) {
		h.yield()
	}
}

// followOne indexes the next block, or passes over a damage. It returns false at the end.
func (h *History) followOne(ctx context.Context) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, err := h.reader.Next()
	var damage *clicklog.DamageError
	switch {
	case errors.Is(err, io.EOF):
		h.blind.LogRecovery(ctx, time.Now(), h.logger, "following the click log recovered")
		return false
	case errors.As(err, &damage):
		h.noteDamage(damage)
		h.reader.Skip() // Fold logs it
		return true
	case err != nil:
		h.blind.Log(ctx, time.Now(), h.logger, slog.LevelError, "following the click log failed, retrying", err)
		return false // the next time tries again
	}
	if h.tail == nil || h.tail.number != b.At.Segment {
		h.ended()
		h.tail = &segmentIndex{number: b.At.Segment}
	}
	h.tail.add(&b)
	return true
}

// ended puts the tail's index among those to be written. The caller holds mu.
func (h *History) ended() {
	if h.tail == nil {
		return
	}
	h.tail.seal()
	h.full = append(h.full, h.tail)
	if len(h.full) > maxWaiting {
		h.full = h.full[1:]
	}
}

// store writes the indexes of segments that are full.
func (h *History) store(ctx context.Context) {
	for {
		h.mu.Lock()
		if len(h.full) == 0 {
			h.mu.Unlock()
			return
		}
		x := h.full[0]
		h.mu.Unlock()
		if !h.write(ctx, x) {
			return
		}
		h.mu.Lock()
		if len(h.full) > 0 && h.full[0] == x {
			h.full = h.full[1:]
		}
		h.mu.Unlock()
	}
}

func (h *History) write(ctx context.Context, x *segmentIndex) bool {
	if err := x.write(filepath.Join(h.dir, clicklog.IndexName(x.number)), h.yield); err != nil {
		h.count(func(s *Stats) { s.Errors++ })
		h.slow.Log(ctx, time.Now(), h.logger, slog.LevelWarn, "click index unavailable, raw click queries are slow", err)
		return false
	}
	h.slow.LogRecovery(ctx, time.Now(), h.logger, "click index available, raw click queries are fast again")
	h.count(func(s *Stats) { s.Indexes++ })
	return true
}

// complete makes one missing index, the newest first, and reports whether it did.
// It removes what belongs to no segment.
func (h *History) complete(ctx context.Context) bool {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return false // the log itself reports a folder that is gone
	}
	present := map[string]bool{}
	for _, e := range entries {
		present[e.Name()] = true
	}
	for name := range present {
		number, ours := clicklog.IndexNumber(strings.TrimSuffix(name, ".tmp"))
		if ours && !present[clicklog.SegmentName(number)] {
			_ = os.Remove(filepath.Join(h.dir, name)) // the next time tries again
		}
	}
	for _, s := range slices.Backward(h.log.Segments()) {
		if h.held(s.Number) == nil && s.Size > 0 && !present[clicklog.IndexName(s.Number)] && !h.written(s.Number) {
			x, err := h.rebuild(ctx, s)
			return err == nil && h.write(ctx, x)
		}
	}
	return false
}

// held returns the index of a segment that is in memory; nil if none is.
func (h *History) held(number uint64) *segmentIndex {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tail != nil && h.tail.number == number {
		return h.tail
	}
	for _, x := range h.full {
		if x.number == number {
			return x
		}
	}
	return nil
}

// written reports whether a segment is at or behind the log's end, where blocks
// still come.
func (h *History) written(number uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return number >= h.reader.Position().Segment
}

// rebuild makes the index of a segment from the segment.
func (h *History) rebuild(ctx context.Context, s clicklog.Segment) (*segmentIndex, error) {
	h.building.Lock()
	defer h.building.Unlock()
	scan, err := clicklog.OpenSegment(h.dir, s)
	if err != nil {
		return nil, err
	}
	defer scan.Close()
	x := &segmentIndex{number: s.Number}
	for ctx.Err() == nil {
		b, err := scan.NextGood(h.noteDamage)
		if errors.Is(err, io.EOF) {
			x.seal()
			h.count(func(s *Stats) { s.Rebuilt++ })
			return x, nil
		}
		if err != nil {
			return nil, err
		}
		x.add(&b)
		h.yield()
	}
	return nil, context.Cause(ctx)
}

func (h *History) noteDamage(*clicklog.DamageError) { h.count(func(s *Stats) { s.Damages++ }) }

// owners returns the function from an event of a block to its owner: its link, or, for a
// query about a group, the group of that.
func (h *History) owners(ctx context.Context, asked link.Key, b *clicklog.Block) (func(*clicklog.Event) []byte, error) {
	if !clicks.IsGroup(asked) {
		return func(e *clicklog.Event) []byte { return e.Key }, nil
	}
	h.grouping.Lock()
	defer h.grouping.Unlock()
	if err := h.groups.Learn(ctx, b); err != nil {
		return nil, err
	}
	of := map[string][]byte{} // the groups' own may be forgotten by the next to ask
	_ = b.Events(func(e *clicklog.Event) error {
		if _, known := of[string(e.Key)]; !known && e.Outcome != clicks.Orphan { // which may be named as a link is
			of[string(e.Key)] = h.groups.Of(e)
		}
		return nil
	})
	return func(e *clicklog.Event) []byte { return of[string(e.Key)] }, nil
}

// Changed is that of Fold. Clicks of the log are shown to whom their link belongs now.
func (h *History) Changed(keys ...link.Key) { h.groups.Changed(keys...) }

// gone reports whether a file is not there, because its segment was trimmed.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
