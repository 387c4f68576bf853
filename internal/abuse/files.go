package abuse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxLists bounds the files, each of which is searched on every create.
	MaxLists = 64
	// MaxEntries bounds the entries of all lists together; at five and a half bytes each,
	// 55 MB.
	MaxEntries = 10_000_000
	// maxFile bounds one file. Ten million of the longest usual names fit.
	maxFile = 1 << 30
	// lookEvery is how often Run asks each file whether it has changed. Files are
	// looked at rather than watched: notifications miss what a network file system or
	// an exchanged link does, and a look costs a few microseconds.
	lookEvery = 5 * time.Second
	// rest is how old the last change of a file must be before Run reads it, so that
	// one that is being written is let be.
	rest = time.Second
	// yieldEvery is after how many lines who reads lets others run: some 0.2 ms.
	yieldEvery = 512
)

// Why a file is not taken. The list in use stays as it is.
var (
	ErrFile    = errors.New("want a readable file of entries, one on each line")
	ErrDamaged = errors.New("the file is damaged")
	ErrTooMany = fmt.Errorf("the lists have more than %d entries", MaxEntries)
)

// FileError says which file cannot be used.
type FileError struct {
	What, Path string
	Err        error
}

func (e *FileError) Error() string { return "read the " + e.What + " " + e.Path + ": " + e.Err.Error() }

// Unwrap returns why.
func (e *FileError) Unwrap() error { return e.Err }

// files are the lists of one purpose, or the files of signals.
//
// A file whose new version cannot be used, because it is missing, damaged, half-written,
// too large or without an entry where there were some, is logged once and leaves the
// version in use as it was; a new version takes the place of the old one in one step.
// Files are read one after the other, so that beside what is in use there is one new
// version at most.
type files struct {
	lists []*list // set once
	seeds *seeds
	log   *slog.Logger
	work  func() (done func())

	mu       sync.Mutex // held while files are read
	onChange []func()   // guarded by mu
}

// list is one file.
type list struct {
	what, name, path string // what is for people: "blocklist"
	role             role
	take             take
	now              atomic.Pointer[edition] // nil = no version could be used yet, or of a signal
	holds            atomic.Pointer[holding] // what is known of the version in use; nil = none
	failed           atomic.Bool             // the newest version could not be used
	reloads          atomic.Uint64
	failures         atomic.Uint64

	// Guarded by files.mu.
	seen stamp // of the version that was read last
	gone bool  // there was no file at the last look
}

// take reads the newest version of a file, with room for so many entries. Unless there is
// an error, use puts it in the place of the one before.
type take func(room int) (h holding, use func(), of stamp, err error)

// holding is what is known of a version of a file.
type holding struct {
	entries, bytes  int
	passed, strange lines
	changed         time.Time // of its file
}

// role says what the entries of a list are for.
type role uint8

const (
	forbids role = iota
	allows
	reserves
	refuses
	informs // a signal
)

func (l *list) size() int {
	if h := l.holds.Load(); h != nil {
		return h.entries
	}
	return 0
}

func newFiles(log *slog.Logger, work func() (done func())) *files {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if work == nil {
		work = func() func() { return func() {} }
	}
	return &files{seeds: newSeeds(), log: log, work: work}
}

// add names files; what is what people call such a list.
func (f *files) add(what string, as role, parse syntax, paths []string) {
	for _, path := range paths {
		name := filepath.Base(path)
		l := &list{what: what, name: strings.TrimSuffix(name, filepath.Ext(name)), path: path, role: as}
		l.take = func(room int) (holding, func(), stamp, error) {
			e, of, err := read(path, parse, f.seeds, room)
			if err != nil {
				return holding{}, nil, of, err
			}
			return holding{entries: e.len(), bytes: e.size(), passed: e.contents.passed, strange: e.contents.strange}, func() { l.now.Store(e) }, of, nil
		}
		f.lists = append(f.lists, l)
	}
}

// open reads the files. A path that is no file is ErrFile in a FileError, and more than
// MaxLists are refused; a file that is damaged or too large is logged, and is empty until a good
// version takes its place.
func (f *files) open(ctx context.Context) error {
	if len(f.lists) > MaxLists {
		return fmt.Errorf("want at most %d files", MaxLists)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lists {
		err := f.load(ctx, l)
		if errors.Is(err, ErrFile) {
			return err
		}
		f.report(ctx, l, err)
	}
	return nil
}

// Run takes new versions of the files, until ctx ends; then it returns nil.
func (f *files) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			f.look(ctx, now)
		}
	}
}

// look reads the files that have changed and have come to rest.
func (f *files) look(ctx context.Context, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lists {
		found, err := stampOfPath(l.path)
		age := now.Sub(found.changed)
		switch {
		case err != nil && l.gone, err == nil && found.same(l.seen):
		case err == nil && 0 <= age && age < rest:
		default:
			f.report(ctx, l, f.load(ctx, l))
		}
	}
}

// Reload reads every file now, whether it has changed or not, and returns what is wrong
// with them, joined.
func (f *files) Reload(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, l := range f.lists {
		errs = append(errs, f.load(ctx, l))
	}
	return errors.Join(errs...)
}

// OnChange has tell called, which must not block, each time that another version of a
// file is in use.
func (f *files) OnChange(tell func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onChange = append(f.onChange, tell)
}

// load reads one file and puts it in the place of its last version; mu is held.
func (f *files) load(ctx context.Context, l *list) error {
	defer f.work()()
	room := MaxEntries
	for _, other := range f.lists {
		if other != l {
			room -= other.size()
		}
	}
	begin := time.Now()
	h, use, of, err := l.take(room)
	if err == nil && h.entries == 0 && l.size() > 0 {
		err = fmt.Errorf("%w: it has no entry any more", ErrDamaged)
	}
	l.seen, l.gone = of, errors.Is(err, ErrFile)
	if errors.Is(err, errMoving) {
		l.seen = stamp{} // look again
	}
	l.failed.Store(err != nil)
	if err != nil {
		l.failures.Add(1)
		return &FileError{What: l.what, Path: l.path, Err: err}
	}
	use()
	h.changed = of.changed
	l.holds.Store(&h)
	l.reloads.Add(1)
	for _, tell := range f.onChange {
		tell()
	}
	if h.strange.n > 0 {
		f.log.WarnContext(ctx, "lines of a list are not understood and have no effect", slog.String("list", l.what), slog.String("file", l.path),
			slog.Int("lines", h.strange.n), slog.Int("first", h.strange.first))
	}
	f.log.InfoContext(ctx, "list in use", slog.String("list", l.what), slog.String("file", l.path), slog.Int("entries", h.entries),
		slog.Int("passed_over", h.passed.n), slog.String("took", time.Since(begin).Round(time.Millisecond).String()))
	return nil
}

// report logs why a file cannot be used.
func (f *files) report(ctx context.Context, l *list, err error) {
	if err != nil {
		f.log.ErrorContext(ctx, "a list cannot be used; its version before stays", slog.String("list", l.what),
			slog.Int("entries", l.size()), slog.Any("err", err))
	}
}

// Stats are counters since the start, and what is in use.
type Stats struct {
	Entries  int    // in all lists, one that stands in two counted twice
	Passed   int    // lines that were understood, and passed over
	Strange  int    // lines that were not understood; neither has an effect
	Unusable int    // lists whose newest version could not be used
	Reloads  uint64 // versions taken
	Failures uint64 // versions refused
	Bytes    int    // that the entries take in memory

	Oldest time.Time // when the file was written whose version in use is the oldest; zero = none is in use
}

// stats returns the counters of the lists of a role.
func (f *files) stats(as role) Stats {
	var s Stats
	for _, l := range f.lists {
		if l.role == as {
			s.add(l)
		}
	}
	return s
}

func (s *Stats) add(l *list) {
	if h := l.holds.Load(); h != nil {
		s.Entries += h.entries
		s.Passed += h.passed.n
		s.Strange += h.strange.n
		s.Bytes += h.bytes
		if s.Oldest.IsZero() || h.changed.Before(s.Oldest) {
			s.Oldest = h.changed
		}
	}
	if l.failed.Load() {
		s.Unusable++
	}
	s.Reloads += l.reloads.Load()
	s.Failures += l.failures.Load()
}

// probe is open for those who want to know whether every file is good, and what is in
// them.
func (f *files) probe(ctx context.Context) (Stats, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var s Stats
	for _, l := range f.lists {
		if err := f.load(ctx, l); err != nil {
			return s, err
		}
		s.add(l)
	}
	return s, nil
}
