// Package clicklog keeps clicks on disk: a folder of segments, each a run of blocks with a
// checksum, which one process appends to and any number of Readers follow.
//
// Read log.go first (append, sync) and trim.go, then block.go and event.go for the format, then
// reader.go for reading and for what happens at damage.
package clicklog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"curt/internal/background"
	"curt/internal/repeatlog"
)

// Config says where the click log lies and how much of it is kept.
type Config struct {
	Dir string // created if missing

	// MaxBytes bounds all segments together; 0 = 10 GiB. Past it folded segments
	// go first, then the oldest unfolded ones, which loses clicks and is counted.
	MaxBytes int64
	// Retention is how long folded segments stay for raw clicks; 0 = 30 days.
	Retention time.Duration
	// SegmentBytes ends a segment; 0 = 64 MiB.
	SegmentBytes int64

	Logger *slog.Logger // nil = none

	Yielder background.Yielder // boosts fsyncs, which may take long; nil = nothing is scheduled

	// Create creates a segment's file; nil = a new file that only its owner may read.
	Create func(path string) (File, error)
}

// syncEvery keeps what a power cut can take under 1.1 s: one drain of the ring
// (drainEvery), this, and the fsync itself.
const syncEvery = 900 * time.Millisecond

// segmentAge ends a segment that few clicks fill, so that retention, which
// unlinks whole segments, is exact to a day.
const segmentAge = 24 * time.Hour

// Log is the click log: a folder of segments, each a run of blocks. One goroutine
// appends (Capture), any number read. Once Append returned, the clicks survive
// the death of the process; once Synced has passed them, that of the machine.
//
// Lock order: syncing, appending, mu.
type Log struct {
	cfg Config

	appending sync.Mutex // held by Append for its write
	current   *openSegment

	syncing sync.Mutex // held by Sync for its fsyncs
	folder  *os.File   // stays open, as a flood of connections may leave no descriptor to open it with

	mu       sync.Mutex
	segments []Segment         // guarded by mu; by number
	dirty    []*openSegment    // guarded by mu; written since their last fsync, or not yet closed
	end      Position          // guarded by mu; readers may go this far
	synced   Position          // guarded by mu
	folded   Position          // guarded by mu; counted for good, set by Fold
	mark     Watermark         // guarded by mu
	stats    Stats             // guarded by mu
	damages  map[Position]bool // guarded by mu; places that cannot be read
	cut      Position          // guarded by mu; where Open cut off a torn end; zero = nowhere

	grown chan struct{}

	volatile repeatlog.Condition // fsyncs that fail; logged by Run
	trimmer  trimmer
}

// Watermark says that the log up to a position holds every kept click before a time.
type Watermark struct {
	Time     time.Time
	Position Position
}

// Stats are counters since the start, and the state now.
type Stats struct {
	Bytes, Segments int64
	AppendErrors    uint64
	SyncErrors      uint64
	TruncatedBytes  uint64 // torn end cut off at the start
	Damages         uint64 // places that cannot be read
	RemovedSegments uint64
	LostClicks      uint64 // in segments that went before they were folded
}

// Segment is a file of the log as readers may see it.
type Segment struct {
	Number uint64
	Size   int64 // of whole blocks
	last   time.Time
}

// openSegment is a file that is or was appended to.
type openSegment struct {
	number uint64
	size   int64 // owned by Append
	file   File
	closed bool // guarded by Log.mu; no more appends, close after the next fsync
}

func (f *openSegment) tooOld(now time.Time) bool {
	return now.Sub(time.UnixMilli(int64(f.number))) > segmentAge
}

// File is what Append needs of *os.File.
type File interface {
	WriteAt(b []byte, at int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

func createSegment(path string) (File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// Open opens the folder, cuts a torn end off its last segment and begins a new
// segment with the first Append. now names that segment.
func Open(c Config) (*Log, error) {
	c.MaxBytes = cmp.Or(c.MaxBytes, 10<<30)
	c.Retention = cmp.Or(c.Retention, 30*24*time.Hour)
	c.SegmentBytes = cmp.Or(c.SegmentBytes, 64<<20)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Yielder = background.Or(c.Yielder)
	if c.Create == nil {
		c.Create = createSegment
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open click log: %w", err)
	}
	folder, err := os.Open(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open click log: %w", err)
	}
	l := &Log{cfg: c, folder: folder, grown: make(chan struct{}, 1)}
	l.trimmer.log = l
	if err := l.recover(); err != nil {
		return nil, fmt.Errorf("open click log: %w", errors.Join(err, folder.Close()))
	}
	return l, nil
}

// Append writes one sealed block with one write and returns where the log ends
// then. After an error nothing of the block can be read, and the same block may
// be appended again.
func (l *Log) Append(block []byte, now time.Time) (Position, error) {
	l.appending.Lock()
	defer l.appending.Unlock()
	if err := l.ready(int64(len(block)), now); err != nil {
		l.count(func(s *Stats) { s.AppendErrors++ })
		return Position{}, fmt.Errorf("append to click log: %w", err)
	}
	c := l.current
	if _, err := c.file.WriteAt(block, c.size); err != nil {
		l.count(func(s *Stats) { s.AppendErrors++ })
		if terr := c.file.Truncate(c.size); terr != nil {
			l.retire() // the torn bytes stay behind the segment's known end
			err = errors.Join(err, terr)
		}
		return Position{}, fmt.Errorf("append to click log: %w", err)
	}
	c.size += int64(len(block))
	l.mu.Lock()
	defer l.mu.Unlock()
	last := &l.segments[len(l.segments)-1]
	last.Size, last.last = c.size, now
	l.end = Position{c.number, c.size}
	l.stats.Bytes += int64(len(block))
	select {
	case l.grown <- struct{}{}:
	default:
	}
	return l.end, nil
}

// ready sees to it that current has room for n bytes. The caller holds appending.
func (l *Log) ready(n int64, now time.Time) error {
	if c := l.current; c != nil && (c.size > 0 && c.size+n > l.cfg.SegmentBytes || c.tooOld(now)) {
		l.retire()
	}
	if l.current != nil {
		return nil
	}
	// Numbers are times, so that a log that was removed does not begin again
	// with numbers that Fold's position has passed.
	number := uint64(max(now.UnixMilli(), 1))
	l.mu.Lock()
	if n := len(l.segments); n > 0 {
		number = max(number, l.segments[n-1].Number+1)
	}
	number = max(number, l.folded.Segment+1)
	l.mu.Unlock()
	file, err := l.cfg.Create(filepath.Join(l.cfg.Dir, SegmentName(number)))
	if err != nil {
		return err
	}
	l.current = &openSegment{number: number, file: file}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segments = append(l.segments, Segment{Number: number, last: now})
	l.dirty = append(l.dirty, l.current)
	l.end = Position{number, 0}
	l.stats.Segments++
	return nil
}

// retire ends the current segment. The caller holds appending.
func (l *Log) retire() {
	if l.current == nil {
		return
	}
	l.mu.Lock()
	l.current.closed = true
	l.mu.Unlock()
	l.current = nil
}

// endSegment makes the next Append begin a new segment, if number is the current.
func (l *Log) endSegment(number uint64) {
	l.appending.Lock()
	defer l.appending.Unlock()
	if l.current != nil && l.current.number == number {
		l.retire()
	}
}

// Sync makes everything appended before the call survive a power cut. A segment
// whose fsync failed is ended and never synced again: it is unknown which of its
// pages are on the disk, and a second fsync would answer for those that the kernel
// has dropped. Its clicks are counted all the same, from memory, which is the best
// that can still be done for them; so the synced position moves on in any case, and
// the error says that raw clicks may be lost in a power cut.
func (l *Log) Sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	target, synced := l.end, l.synced
	dirty := slices.Clone(l.dirty)
	l.mu.Unlock()
	if target == synced && len(dirty) <= 1 {
		return nil
	}
	defer l.cfg.Yielder.Boost()()
	var errs []error
	for _, f := range dirty {
		errs = append(errs, l.syncFile(f))
	}
	err := errors.Join(append(errs, l.folder.Sync())...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.synced = target
	if err != nil {
		l.stats.SyncErrors++
		return fmt.Errorf("sync click log: %w", err)
	}
	return nil
}

// syncFile syncs one segment, and closes it when it is full or failed. The caller
// holds syncing.
func (l *Log) syncFile(f *openSegment) error {
	l.mu.Lock()
	ended := f.closed // before the fsync: a later retire means later bytes
	l.mu.Unlock()
	err := f.file.Sync()
	if err != nil {
		l.endSegment(f.number)
	} else if !ended {
		return nil
	}
	l.mu.Lock()
	l.dirty = slices.DeleteFunc(l.dirty, func(o *openSegment) bool { return o == f })
	l.mu.Unlock()
	if cerr := f.file.Close(); cerr != nil {
		l.cfg.Logger.WarnContext(context.Background(), "closing a click log segment failed", slog.Any("err", cerr))
	}
	return err
}

// Run syncs and trims the log until ctx ends, then syncs once more.
func (l *Log) Run(ctx context.Context) error {
	for now := range background.Ticks(ctx, syncEvery) {
		if err := l.Sync(); err != nil {
			l.volatile.Log(ctx, now, l.cfg.Logger, slog.LevelError, "syncing the click log failed, recent clicks are not durable", err)
		} else {
			l.volatile.LogRecovery(ctx, now, l.cfg.Logger, "syncing the click log recovered")
		}
		l.Trim(ctx, now)
	}
	return l.Sync()
}

// Close syncs and closes the files. Nothing may be appended any more.
func (l *Log) Close() error {
	l.appending.Lock()
	l.retire()
	l.appending.Unlock()
	err := l.Sync()
	if e := l.folder.Close(); !errors.Is(e, os.ErrClosed) { // by an earlier call
		err = errors.Join(err, e)
	}
	return err
}

// End returns where the log ends: everything before can be read.
func (l *Log) End() Position { l.mu.Lock(); defer l.mu.Unlock(); return l.end }

// Synced returns the position before which everything survives a power cut.
func (l *Log) Synced() Position { l.mu.Lock(); defer l.mu.Unlock(); return l.synced }

// BytesAfter returns how many bytes of the log are behind a position.
func (l *Log) BytesAfter(p Position) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		switch {
		case s.Number > p.Segment:
			n += s.Size
		case s.Number == p.Segment:
			n += max(0, s.Size-p.Offset)
		}
	}
	return n
}

// Grown receives after an Append. It wakes the one loop that follows the log to count it.
func (l *Log) Grown() <-chan struct{} { return l.grown }

// Dir returns the folder of the log.
func (l *Log) Dir() string { return l.cfg.Dir }

// Segments returns the segments by number.
func (l *Log) Segments() []Segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.segments)
}

// Mark returns the newest watermark.
func (l *Log) Mark() Watermark { l.mu.Lock(); defer l.mu.Unlock(); return l.mark }

// SetMark records that every click before t is in the log. Capture calls it after a drain.
func (l *Log) SetMark(t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark = Watermark{Time: t, Position: l.end}
}

// Stats returns the counters.
func (l *Log) Stats() Stats { l.mu.Lock(); defer l.mu.Unlock(); return l.stats }

func (l *Log) count(f func(*Stats)) { l.mu.Lock(); defer l.mu.Unlock(); f(&l.stats) }

// A segment's index, which package history writes, lies beside it and goes with it.
const (
	segmentSuffix = ".clicks"
	indexSuffix   = ".index"
)

// SegmentName returns the name of a segment's file.
func SegmentName(number uint64) string { return fmt.Sprintf("%016d%s", number, segmentSuffix) }

// IndexName returns the name of a segment's index.
func IndexName(number uint64) string { return fmt.Sprintf("%016d%s", number, indexSuffix) }

// Begun returns a time, in Unix milliseconds, that is not after the segment's first click:
// its number is when it was created, a moment after that click was captured.
func (s Segment) Begun() int64 { return int64(s.Number) - time.Minute.Milliseconds() }

// listSegments returns the segments of a folder by number. Other files are not ours.
func listSegments(dir string) ([]Segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []Segment
	for _, e := range entries {
		number, ok := segmentNumber(e.Name())
		if !ok {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // trimmed meanwhile
		}
		if err != nil {
			return nil, err
		}
		found = append(found, Segment{Number: number, Size: info.Size(), last: info.ModTime()})
	}
	slices.SortFunc(found, func(a, b Segment) int { return cmp.Compare(a.Number, b.Number) })
	return found, nil
}

// recover reads the folder and cuts a torn end off the last segment: a write that a death
// cut short. What is damaged otherwise stays for the reader to report.
func (l *Log) recover() error {
	found, err := listSegments(l.cfg.Dir)
	if err != nil {
		return err
	}
	if n := len(found); n > 0 {
		last, name := &found[n-1], filepath.Join(l.cfg.Dir, SegmentName(found[n-1].Number))
		was := last.Size
		if last.Size, err = l.cutTail(name, *last); err != nil {
			return err
		}
		if was > 0 && last.Size == 0 { // else the next start would miss what it held
			if err := os.Remove(name); err != nil {
				return err
			}
			found = found[:n-1]
		}
		if n = len(found); n > 0 {
			last = &found[n-1]
		}
		l.end = Position{last.Number, last.Size}
		l.synced = l.end
	}
	l.segments = found
	for _, s := range found {
		l.stats.Bytes += s.Size
	}
	l.stats.Segments = int64(len(found))
	return nil
}

// LastSequence returns how many clicks of an instance a folder's log has, by the last of its
// blocks in the newest segment.
func LastSequence(dir string, instance uint64) (n uint64) {
	all, err := listSegments(dir)
	if err != nil || len(all) == 0 {
		return 0
	}
	_ = scanSegment(dir, all[len(all)-1], Position{}, func(b *Block) {
		if b.First.Instance == instance {
			n = max(n, b.First.Sequence+uint64(b.Count))
		}
	})
	return n
}

// scanSegment calls f for each block of a segment, from a position on if that lies in it.
func scanSegment(dir string, segment Segment, from Position, f func(*Block)) error {
	s, err := OpenSegment(dir, segment)
	if err != nil {
		return err
	}
	defer s.Close()
	if from.Segment == segment.Number {
		s.Range(from.Offset, segment.Size)
	}
	for {
		b, err := s.NextGood(func(*DamageError) {})
		if err != nil {
			return err
		}
		f(&b)
	}
}

// IsSegment reports whether a file of the click log's folder is a segment, by its name.
func IsSegment(name string) bool {
	_, ok := segmentNumber(name)
	return ok
}

func segmentNumber(name string) (number uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	number, err := strconv.ParseUint(digits, 10, 63)
	return number, ok && err == nil && SegmentName(number) == name
}

// IndexNumber returns the segment that an index belongs to, by the name of its file.
func IndexNumber(name string) (number uint64, ok bool) {
	stem, ok := strings.CutSuffix(name, indexSuffix)
	if !ok {
		return 0, false
	}
	return segmentNumber(stem + segmentSuffix)
}
