// Package listfile keeps files of an operator in memory and takes new versions of them
// while the process runs. What stands in them is the business of its importers: blocklist
// reads lists of destinations and of words, signals and lookalike add to what they know.
package listfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"curt/internal/background"
)

const (
	// MaxLists bounds the files, each of which is searched on every create.
	MaxLists = 64
	// MaxEntries bounds the entries of all lists together; at five and a half bytes each,
	// 55 MB.
	MaxEntries = 10_000_000
	// MaxFile bounds one file, in bytes. Ten million of the longest usual names fit.
	MaxFile = 1 << 30
	// lookEvery is how often Run asks each file whether it has changed. Files are
	// looked at rather than watched: notifications miss what a network file system or
	// an exchanged link does, and a look costs a few microseconds.
	lookEvery = 5 * time.Second
	// rest is how old the last change of a file must be before Run reads it, so that
	// one that is being written is let be.
	rest = time.Second
)

// Why a file is not taken. The list in use stays as it is.
var (
	ErrFile    = errors.New("expected a readable file with one entry per line")
	ErrDamaged = errors.New("the file is damaged")
	ErrTooMany = fmt.Errorf("the lists have more than %d entries", MaxEntries)
	ErrChanged = errors.New("the file changed while it was read")
)

// FileError says which file cannot be used.
type FileError struct {
	What, Path string
	Err        error
}

func (e *FileError) Error() string { return "read the " + e.What + " " + e.Path + ": " + e.Err.Error() }

// Unwrap returns why.
func (e *FileError) Unwrap() error { return e.Err }

// Set is the files of one purpose. It is safe for many goroutines.
//
// A file whose new version cannot be used, because it is missing, damaged, half-written,
// too large or without an entry where there were some, is logged once and leaves the
// version in use as it was; a new version takes the place of the old one in one step.
// Files are read one after the other, so that beside what is in use there is one new
// version at most.
type Set struct {
	files   []*File // set before Open
	log     *slog.Logger
	yielder background.Yielder

	mu       sync.Mutex // held while files are read
	onChange []func()   // guarded by mu
}

// File is one file of a Set. What, Path and Load are set by its owner, and never changed.
type File struct {
	What string // for people: "blocklist"; files with one What are counted together
	Path string

	// Load reads the newest version of the file, with room for so many entries. Unless
	// there is an error, use puts it in the place of the one before. The error is ErrFile,
	// ErrChanged or one of the format.
	Load func(room int) (c Content, use func(), of Stamp, err error)

	content  atomic.Pointer[Content] // of the version in use; nil = none
	failed   atomic.Bool             // the newest version could not be used
	reloads  atomic.Uint64
	failures atomic.Uint64

	// Guarded by Set.mu.
	seen Stamp // of the version that was read last
	gone bool  // there was no file at the last look
	why  error // the newest version could not be used
}

// Content is what is known of a version of a file.
type Content struct {
	Entries, Bytes  int
	Passed, Invalid Lines

	changed time.Time // when the file was
}

// Lines counts lines that have no effect.
type Lines struct{ N, First int }

// Add counts the line of a number.
func (l *Lines) Add(number int) {
	if l.N++; l.N == 1 {
		l.First = number
	}
}

func (f *File) entries() int {
	if c := f.content.Load(); c != nil {
		return c.Entries
	}
	return 0
}

// NewSet returns a Set of these files. The Yielder boosts the reading of a file: millions of
// lines take seconds of one processor. Log and yielder may be nil.
func NewSet(log *slog.Logger, yielder background.Yielder, files ...*File) *Set {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Set{files: files, log: log, yielder: background.Or(yielder)}
}

// Open reads the files. A path that is no file is ErrFile in a FileError, and more than
// MaxLists are refused; a file that is damaged or too large is logged, and is empty until a good
// version takes its place.
func (s *Set) Open(ctx context.Context) error {
	if len(s.files) > MaxLists {
		return fmt.Errorf("expected at most %d files", MaxLists)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []error
	for _, f := range s.files {
		err := s.load(ctx, f)
		if errors.Is(err, ErrFile) {
			missing = append(missing, err)
			continue
		}
		s.report(ctx, f, err)
	}
	return errors.Join(missing...)
}

// Refresh reads every file and logs those that cannot be used: Open for files that were
// read before.
func (s *Set) Refresh(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		s.report(ctx, f, s.load(ctx, f))
	}
}

// Run takes new versions of the files, until ctx ends; then it returns nil.
func (s *Set) Run(ctx context.Context) error {
	for now := range background.Ticks(ctx, lookEvery) {
		s.Poll(ctx, now)
	}
	return nil
}

// Poll reads the files that have changed and have come to rest, as Run does.
func (s *Set) Poll(ctx context.Context, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		found, err := stampOf(os.Stat(f.Path)) // follows links, so that an exchanged one is a change
		age := now.Sub(found.changed)
		switch {
		case err != nil && f.gone, err == nil && found.same(f.seen):
		case err == nil && 0 <= age && age < rest:
		default:
			s.report(ctx, f, s.load(ctx, f))
		}
	}
}

// Reload reads every file now, whether it has changed or not, and returns what is wrong
// with them, joined.
func (s *Set) Reload(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.files {
		errs = append(errs, s.load(ctx, f))
	}
	return errors.Join(errs...)
}

// OnChange has changed called, which must not block, each time that another version of a
// file is in use.
func (s *Set) OnChange(changed func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onChange = append(s.onChange, changed)
}

// load reads one file and puts it in the place of its last version; mu is held.
func (s *Set) load(ctx context.Context, f *File) error {
	defer s.yielder.Boost()()
	room := MaxEntries
	for _, other := range s.files {
		if other != f {
			room -= other.entries()
		}
	}
	begin := time.Now()
	c, use, of, err := f.Load(room)
	if err == nil && c.Entries == 0 && f.entries() > 0 {
		err = fmt.Errorf("%w: it has no entries", ErrDamaged)
	}
	f.seen, f.gone = of, errors.Is(err, ErrFile)
	if errors.Is(err, ErrChanged) {
		f.seen = Stamp{} // look again
	}
	f.failed.Store(err != nil)
	f.why = err
	if err != nil {
		f.failures.Add(1)
		return &FileError{What: f.What, Path: f.Path, Err: err}
	}
	use()
	c.changed = of.changed
	f.content.Store(&c)
	f.reloads.Add(1)
	for _, changed := range s.onChange {
		changed()
	}
	if c.Invalid.N > 0 {
		s.log.WarnContext(ctx, "list has invalid lines, ignoring them", slog.String("list", f.What), slog.String("file", f.Path),
			slog.Int("lines", c.Invalid.N), slog.Int("first", c.Invalid.First))
	}
	s.log.InfoContext(ctx, "list loaded", slog.String("list", f.What), slog.String("file", f.Path), slog.Int("entries", c.Entries),
		slog.Int("passed_over", c.Passed.N), slog.String("took", time.Since(begin).Round(time.Millisecond).String()))
	return nil
}

// report logs why a file cannot be used.
func (s *Set) report(ctx context.Context, f *File, err error) {
	if err != nil {
		s.log.ErrorContext(ctx, "list reload failed, keeping previous version", slog.String("list", f.What),
			slog.Int("entries", f.entries()), slog.Any("err", err))
	}
}

// Stats are counters since the start, and what is in use.
type Stats struct {
	Entries  int    // in all lists, one that stands in two counted twice
	Passed   int    // lines that were understood, and passed over
	Invalid  int    // lines that were not understood; neither has an effect
	Unusable int    // lists whose newest version could not be used
	Reloads  uint64 // versions taken
	Failures uint64 // versions refused
	Bytes    int    // that the entries take in memory

	Oldest time.Time // when the file was written whose version in use is the oldest; zero = none is in use
}

// StatsOf returns the counters of the files with this What.
func (s *Set) StatsOf(what string) (sum Stats) {
	for _, f := range s.files {
		if f.What == what {
			sum.add(f)
		}
	}
	return sum
}

// Stats returns the counters of all files.
func (s *Set) Stats() (sum Stats) {
	for _, f := range s.files {
		sum.add(f)
	}
	return sum
}

func (s *Stats) add(f *File) {
	if c := f.content.Load(); c != nil {
		s.Entries += c.Entries
		s.Passed += c.Passed.N
		s.Invalid += c.Invalid.N
		s.Bytes += c.Bytes
		if s.Oldest.IsZero() || c.changed.Before(s.Oldest) {
			s.Oldest = c.changed
		}
	}
	if f.failed.Load() {
		s.Unusable++
	}
	s.Reloads += f.reloads.Load()
	s.Failures += f.failures.Load()
}

// FileStats are those of one file.
type FileStats struct {
	Stats

	Path string
	Err  error // why the newest version cannot be used
}

// FilesOf returns the files with this What, one by one.
func (s *Set) FilesOf(what string) (all []FileStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.What != what {
			continue
		}
		one := FileStats{Path: f.Path, Err: f.why}
		one.add(f)
		all = append(all, one)
	}
	return all
}

// Stamp tells versions of a file apart.
type Stamp struct {
	size    int64
	changed time.Time
	inode   fs.FileInfo
}

func (s Stamp) same(o Stamp) bool {
	return s.inode != nil && o.inode != nil && s.size == o.size && s.changed.Equal(o.changed) && os.SameFile(s.inode, o.inode)
}

// stampOf refuses what is no file: a read must never wait for somebody to write.
func stampOf(info fs.FileInfo, err error) (Stamp, error) {
	switch {
	case err != nil:
		return Stamp{}, fmt.Errorf("%w: %w", ErrFile, err)
	case !info.Mode().IsRegular():
		return Stamp{}, fmt.Errorf("%w: %s is not a regular file", ErrFile, info.Name())
	case info.Size() > MaxFile:
		return Stamp{}, fmt.Errorf("%w: %s is larger than 1 GiB", ErrFile, info.Name())
	}
	return Stamp{info.Size(), info.ModTime(), info}, nil
}

// Read has one version of a file read, and returns its stamp. The error is ErrFile,
// ErrChanged or that of read.
func Read(path string, read func(f io.ReadSeeker, size int64) error) (of Stamp, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe does not keep us waiting
	if err != nil {
		return Stamp{}, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer f.Close() //nolint:errcheck // only read
	if of, err = stampOf(f.Stat()); err != nil {
		return of, err
	}
	err = read(f, of.size)
	if after, errAfter := stampOf(f.Stat()); errAfter == nil && !after.same(of) {
		return of, ErrChanged
	}
	return of, err
}
