package clicks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"curt/internal/repeatlog"
)

// LogConfig says where the click log lies and how much of it is kept.
type LogConfig struct {
	Dir string // made if missing

	// MaxBytes bounds all segments together; 0 = 10 GiB. Past it folded segments
	// go first, then the oldest unfolded ones, which loses clicks and is counted.
	MaxBytes int64
	// Retention is how long folded segments stay for raw clicks; 0 = 30 days.
	Retention time.Duration
	// SegmentBytes ends a segment; 0 = 64 MiB.
	SegmentBytes int64

	Logger *slog.Logger // nil = none

	// Work, if set, is called before an fsync, which may take long, and done behind it.
	Work func() (done func())

	// create makes a segment's file; nil = createSegment. Tests put faults here.
	create func(path string) (segmentFile, error)
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
	cfg LogConfig

	appending sync.Mutex // held by Append for its write
	current   *openSegment

	syncing sync.Mutex // held by Sync for its fsyncs
	folder  *os.File   // stays open, as a flood of connections may leave no descriptor to open it with

	mu       sync.Mutex
	segments []segment         // guarded by mu; by number
	dirty    []*openSegment    // guarded by mu; written since their last fsync, or not yet closed
	end      Position          // guarded by mu; readers may go this far
	synced   Position          // guarded by mu
	folded   Position          // guarded by mu; counted for good, set by Fold
	mark     Watermark         // guarded by mu
	stats    LogStats          // guarded by mu
	damages  map[Position]bool // guarded by mu; places that cannot be read
	cut      Position          // guarded by mu; where OpenLog cut off a torn end; zero = nowhere

	grown chan struct{}

	volatile, stuck repeatlog.Condition // logged by Run
}

// Watermark says that the log up to a position holds every kept click before a time.
type Watermark struct {
	Time     time.Time
	Position Position
}

// LogStats are counters since the start, and the state now.
type LogStats struct {
	Bytes, Segments int64
	AppendErrors    uint64
	SyncErrors      uint64
	TruncatedBytes  uint64 // torn end cut off at the start
	Damages         uint64 // places that cannot be read
	RemovedSegments uint64
	LostClicks      uint64 // in segments that went before they were folded
}

// segment is a file of the log as readers may see it.
type segment struct {
	number uint64
	size   int64 // of whole blocks
	last   time.Time
}

// openSegment is a file that is or was appended to.
type openSegment struct {
	number uint64
	size   int64 // owned by Append
	file   segmentFile
	closed bool // guarded by Log.mu; no more appends, close after the next fsync
}

// segmentFile is what Append needs of *os.File.
type segmentFile interface {
	WriteAt(b []byte, at int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

func createSegment(path string) (segmentFile, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// OpenLog opens the folder, cuts a torn end off its last segment and begins a new
// segment with the first Append. now names that segment.
func OpenLog(c LogConfig) (*Log, error) {
	if c.MaxBytes <= 0 {
		c.MaxBytes = 10 << 30
	}
	if c.Retention <= 0 {
		c.Retention = 30 * 24 * time.Hour
	}
	if c.SegmentBytes <= 0 {
		c.SegmentBytes = 64 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.create == nil {
		c.create = createSegment
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open click log: %w", err)
	}
	folder, err := os.Open(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open click log: %w", err)
	}
	l := &Log{cfg: c, folder: folder, grown: make(chan struct{}, 1)}
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
		l.count(func(s *LogStats) { s.AppendErrors++ })
		return Position{}, fmt.Errorf("append to click log: %w", err)
	}
	c := l.current
	if _, err := c.file.WriteAt(block, c.size); err != nil {
		l.count(func(s *LogStats) { s.AppendErrors++ })
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
	last.size, last.last = c.size, now
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
	if c := l.current; c != nil && (c.size > 0 && c.size+n > l.cfg.SegmentBytes || l.tooOld(c.number, now)) {
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
		number = max(number, l.segments[n-1].number+1)
	}
	number = max(number, l.folded.Segment+1)
	l.mu.Unlock()
	file, err := l.cfg.create(filepath.Join(l.cfg.Dir, segmentName(number)))
	if err != nil {
		return err
	}
	l.current = &openSegment{number: number, file: file}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segments = append(l.segments, segment{number: number, last: now})
	l.dirty = append(l.dirty, l.current)
	l.end = Position{number, 0}
	l.stats.Segments++
	return nil
}

func (l *Log) tooOld(number uint64, now time.Time) bool {
	return now.Sub(time.UnixMilli(int64(number))) > segmentAge
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
// whose fsync failed is ended and never synced again: nobody knows which of its
// pages are on the disk, and a second fsync would answer for those that the kernel
// has dropped. Its clicks are counted all the same, from memory, which is the best
// that can still be done for them; so the synced position moves on in any case, and
// the error says that raw clicks may be lost in a power cut.
func (l *Log) Sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	target, synced := l.end, l.synced
	dirty := append([]*openSegment(nil), l.dirty...)
	l.mu.Unlock()
	if target == synced && len(dirty) <= 1 {
		return nil
	}
	if l.cfg.Work != nil {
		defer l.cfg.Work()()
	}
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
	l.dirty = without(l.dirty, f)
	l.mu.Unlock()
	if cerr := f.file.Close(); cerr != nil {
		l.cfg.Logger.WarnContext(context.Background(), "close click log segment", slog.Any("err", cerr))
	}
	return err
}

func without(files []*openSegment, f *openSegment) []*openSegment {
	var rest []*openSegment
	for _, o := range files {
		if o != f {
			rest = append(rest, o)
		}
	}
	return rest
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Run syncs and trims the log until ctx ends, then syncs once more.
func (l *Log) Run(ctx context.Context) error {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return l.Sync()
		case now := <-tick.C:
			if err := l.Sync(); err != nil {
				if again, due := l.volatile.Met(now); due {
					l.cfg.Logger.ErrorContext(ctx, "click log is not durable", slog.Any("err", err), again)
				}
			} else if sum, due := l.volatile.Over(now); due {
				l.cfg.Logger.InfoContext(ctx, "click log is durable again", sum)
			}
			l.trim(ctx, now)
		}
	}
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

// Behind returns how many bytes of the log are behind a position.
func (l *Log) Behind(p Position) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		switch {
		case s.number > p.Segment:
			n += s.size
		case s.number == p.Segment:
			n += max(0, s.size-p.Offset)
		}
	}
	return n
}

// Mark returns the newest watermark.
func (l *Log) Mark() Watermark { l.mu.Lock(); defer l.mu.Unlock(); return l.mark }

// setMark is Capture's promise that all earlier clicks are before the end.
func (l *Log) setMark(t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark = Watermark{Time: t, Position: l.end}
}

// Stats returns the counters.
func (l *Log) Stats() LogStats { l.mu.Lock(); defer l.mu.Unlock(); return l.stats }

func (l *Log) count(f func(*LogStats)) { l.mu.Lock(); defer l.mu.Unlock(); f(&l.stats) }
