package clicks

import (
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

	"curt/internal/link"
	"curt/internal/repeatlog"
)

// HistoryConfig says whose clicks a History finds.
type HistoryConfig struct {
	Log    *Log
	Logger *slog.Logger // nil = none

	// Groups returns the group that each link counts for, as that of FoldConfig does; nil =
	// there are no groups.
	Groups func(ctx context.Context, keys []link.Key) ([]string, error)

	// Rest, if set, is called by Run often while it computes, as that of FoldConfig is.
	Rest func()
}

// History finds the clicks of one link, or of a group, in the click log, newest first. Segments
// that are full have an index in a file beside them, the one that is written to has
// it in memory; both are made from the segment and can be made again from it.
type History struct {
	log    *Log
	dir    string
	logger *slog.Logger
	agents *BotList // for descriptions
	rest   func()   // between parts of long work

	mu     sync.Mutex
	reader *Reader         // guarded by mu; follows the log's end
	tail   *segmentIndex   // guarded by mu; of the segment that is written to; nil before its first block
	full   []*segmentIndex // guarded by mu; ended and not yet on disk, oldest first

	building sync.Mutex // held while an index is made again: one at a time
	grouping sync.Mutex // guards groups, also while links are asked for
	groups   groups     // guarded by grouping
	stats    HistoryStats
	counting sync.Mutex // guards stats

	blind, slow repeatlog.Condition // what keeps the log from being followed, and indexes from being written
}

// HistoryStats are counters since the start.
type HistoryStats struct {
	Indexes uint64 // written
	Rebuilt uint64 // of those, made again from a segment whose index was missing or damaged
	Errors  uint64 // indexes that could not be written
	Damages uint64 // places of the log that could not be read
}

// maxWaiting is how many indexes wait in memory, a few MiB each, while the disk
// takes none. Those beyond it are made again from their segments.
const maxWaiting = 2

// NewHistory returns a History over a log that was just opened: what it holds now
// is not written to any more.
func NewHistory(c HistoryConfig) *History {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Rest == nil {
		c.Rest = runtime.Gosched // what is ready comes first
	}
	h := &History{log: c.Log, dir: c.Log.cfg.Dir, logger: c.Logger, agents: NewBotList(), rest: c.Rest, groups: newGroups(c.Groups)}
	first := Position{}
	if all := h.log.list(); len(all) > 0 {
		first.Segment = all[len(all)-1].number + 1
	}
	h.reader = h.log.Read(first)
	return h
}

// list returns the segments as they stand, by number.
func (l *Log) list() []segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]segment(nil), l.segments...)
}

// Stats returns the counters.
func (h *History) Stats() HistoryStats {
	h.counting.Lock()
	defer h.counting.Unlock()
	return h.stats
}

// Since returns when the oldest clicks that are still kept one by one were taken; zero =
// there are none.
func (h *History) Since() time.Time {
	for _, s := range h.log.list() {
		if s.size > 0 {
			return time.UnixMilli(s.begun()).UTC()
		}
	}
	return time.Time{}
}

func (h *History) count(f func(*HistoryStats)) {
	h.counting.Lock()
	defer h.counting.Unlock()
	f(&h.stats)
}

// Run keeps the indexes up to date until ctx ends; then it returns nil. A
// question does not depend on it, it only takes longer without.
func (h *History) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.reader.Close()
	}()
	for wait := 0; ; wait-- {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		h.follow(ctx)
		h.store(ctx)
		if wait <= 0 && !h.complete(ctx) {
			wait = ticksBetween
		}
	}
}

// ticksBetween is how many seconds Run waits after it found that no index is
// missing, or could not write one.
const ticksBetween = 30

// follow indexes what was appended since the last time.
func (h *History) follow(ctx context.Context) {
	for ctx.Err() == nil && h.followOne(ctx) {
		h.rest()
	}
}

// followOne indexes the next block, or passes over a damage. It returns false at the end.
func (h *History) followOne(ctx context.Context) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, err := h.reader.Next()
	var damage *DamageError
	switch {
	case errors.Is(err, io.EOF):
		if sum, due := h.blind.Over(time.Now()); due {
			h.logger.InfoContext(ctx, "click log is followed again", sum)
		}
		return false
	case errors.As(err, &damage):
		h.count(func(s *HistoryStats) { s.Damages++ })
		h.log.endSegment(h.reader.Position().Segment)
		h.reader.Skip() // Fold logs it
		return true
	case err != nil:
		if again, due := h.blind.Met(time.Now()); due {
			h.logger.ErrorContext(ctx, "follow click log", slog.Any("err", err), again)
		}
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
	if err := x.write(filepath.Join(h.dir, indexName(x.number)), h.rest); err != nil {
		h.count(func(s *HistoryStats) { s.Errors++ })
		if again, due := h.slow.Met(time.Now()); due {
			h.logger.WarnContext(ctx, "raw clicks are found slowly", slog.Any("err", err), again)
		}
		return false
	}
	if sum, due := h.slow.Over(time.Now()); due {
		h.logger.InfoContext(ctx, "raw clicks are found fast again", sum)
	}
	h.count(func(s *HistoryStats) { s.Indexes++ })
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
		stem, ours := strings.CutSuffix(strings.TrimSuffix(name, ".tmp"), indexSuffix)
		if ours && !present[stem+segmentSuffix] {
			_ = os.Remove(filepath.Join(h.dir, name)) // the next time tries again
		}
	}
	all := h.log.list()
	for _, s := range slices.Backward(all) {
		if h.held(s.number) == nil && s.size > 0 && !present[indexName(s.number)] && !h.written(s.number) {
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
func (h *History) rebuild(ctx context.Context, s segment) (*segmentIndex, error) {
	h.building.Lock()
	defer h.building.Unlock()
	f, err := os.Open(filepath.Join(h.dir, segmentName(s.number)))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	x := &segmentIndex{number: s.number}
	scan := segmentScanner{file: f, name: f.Name(), size: s.size}
	for ctx.Err() == nil {
		b, err := scan.next()
		var damage *DamageError
		switch {
		case errors.Is(err, io.EOF):
		case errors.As(err, &damage):
			h.count(func(s *HistoryStats) { s.Damages++ })
			if follows, err := scan.skip(); err != nil {
				return nil, err
			} else if follows {
				continue
			}
		case err != nil:
			return nil, err
		default:
			b.At.Segment, b.Next.Segment = s.number, s.number
			x.add(&b)
			h.rest()
			continue
		}
		x.seal()
		h.count(func(s *HistoryStats) { s.Rebuilt++ })
		return x, nil
	}
	return nil, context.Cause(ctx)
}

// owners returns what tells whose the events of a block are: their links, or, where a
// group is asked for, the groups of those.
func (h *History) owners(ctx context.Context, asked link.Key, b *Block) (func(*Event) []byte, error) {
	if !IsGroup(asked) {
		return func(e *Event) []byte { return e.Key }, nil
	}
	h.grouping.Lock()
	defer h.grouping.Unlock()
	if err := h.groups.learn(ctx, b); err != nil {
		return nil, err
	}
	of := map[string][]byte{} // the groups' own may be forgotten by the next to ask
	_ = b.Events(func(e *Event) error {
		if _, known := of[string(e.Key)]; !known && e.Outcome != Orphan { // which may be named as a link is
			of[string(e.Key)] = h.groups.of(e)
		}
		return nil
	})
	return func(e *Event) []byte { return of[string(e.Key)] }, nil
}

// Changed is that of Fold. Clicks of the log are shown to whom their link belongs now.
func (h *History) Changed(keys ...link.Key) { h.groups.heard.Add(keys...) }

// gone reports whether a file is not there, because its segment was trimmed.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
