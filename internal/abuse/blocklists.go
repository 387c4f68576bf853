package abuse

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
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
	// lookEvery is how often Run asks each file whether it has changed. Files are
	// looked at rather than watched: notifications miss what a network file system or
	// an exchanged link does, and a look costs a few microseconds.
	lookEvery = 5 * time.Second
	// rest is how old the last change of a file must be before Run reads it, so that
	// one that is being written is let be.
	rest = time.Second
)

// Config says which files are read.
type Config struct {
	Paths []string     // at most MaxLists
	Log   *slog.Logger // nil = none
}

// Blocklists are the files of an operator, in memory. It is safe for many goroutines.
//
// A file whose new version cannot be used, because it is missing, damaged, half-written,
// too large or without a host where there were some, is logged once and leaves the version in use as it was; a new version
// takes the place of the old one in one step.
type Blocklists struct {
	lists []*list // set once
	seed  maphash.Seed
	log   *slog.Logger

	mu       sync.Mutex // held while files are read
	reloads  atomic.Uint64
	failures atomic.Uint64
}

// list is one file.
type list struct {
	name, path string
	now        atomic.Pointer[edition] // nil = no version could be used yet
	failed     atomic.Bool             // the newest version could not be used

	// Guarded by Blocklists.mu.
	seen stamp // of the version that was read last
	gone bool  // there was no file at the last look
}

func (l *list) has(digest uint64) bool {
	e := l.now.Load()
	return e != nil && e.has(digest)
}

func (l *list) size() int {
	if e := l.now.Load(); e != nil {
		return len(e.digests)
	}
	return 0
}

// Open reads the files. A path that is no file is ErrFile, and more than MaxLists are
// refused; a file that is damaged or too large is logged, and forbids nothing until a
// good version takes its place.
func Open(ctx context.Context, cfg Config) (*Blocklists, error) {
	if len(cfg.Paths) > MaxLists {
		return nil, fmt.Errorf("want at most %d files", MaxLists)
	}
	b := &Blocklists{seed: maphash.MakeSeed(), log: cfg.Log}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	for _, path := range cfg.Paths {
		name := filepath.Base(path)
		b.lists = append(b.lists, &list{name: strings.TrimSuffix(name, filepath.Ext(name)), path: path})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lists {
		err := b.load(ctx, l)
		if errors.Is(err, ErrFile) {
			return nil, err
		}
		b.report(ctx, l, err)
	}
	return b, nil
}

// Run takes new versions of the files, until ctx ends; then it returns nil.
func (b *Blocklists) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			b.look(ctx, now)
		}
	}
}

// look reads the files that have changed and have come to rest.
func (b *Blocklists) look(ctx context.Context, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lists {
		found, err := stampOfPath(l.path)
		age := now.Sub(found.changed)
		switch {
		case err != nil && l.gone, err == nil && found.same(l.seen):
		case err == nil && 0 <= age && age < rest:
		default:
			b.report(ctx, l, b.load(ctx, l))
		}
	}
}

// Reload reads every file now, whether it has changed or not, and returns what is wrong
// with them, joined.
func (b *Blocklists) Reload(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, l := range b.lists {
		errs = append(errs, b.load(ctx, l))
	}
	return errors.Join(errs...)
}

// load reads one file and puts it in the place of its last version; mu is held.
func (b *Blocklists) load(ctx context.Context, l *list) error {
	room := MaxHosts
	for _, other := range b.lists {
		if other != l {
			room -= other.size()
		}
	}
	begin := time.Now()
	e, of, err := read(l.path, b.digest, room)
	if err == nil && len(e.digests) == 0 && l.size() > 0 {
		err = fmt.Errorf("%w: it has no host any more", ErrDamaged)
	}
	l.seen, l.gone = of, errors.Is(err, ErrFile)
	if errors.Is(err, errMoving) {
		l.seen = stamp{} // look again
	}
	l.failed.Store(err != nil)
	if err != nil {
		b.failures.Add(1)
		return fmt.Errorf("read the blocklist %s: %w", l.path, err)
	}
	l.now.Store(e)
	b.reloads.Add(1)
	if e.strange.lines > 0 {
		b.log.WarnContext(ctx, "lines of a blocklist are no hosts and forbid nothing", slog.String("file", l.path),
			slog.Int("lines", e.strange.lines), slog.Int("first", e.strange.first))
	}
	b.log.InfoContext(ctx, "blocklist in use", slog.String("file", l.path), slog.Int("hosts", len(e.digests)),
		slog.String("took", time.Since(begin).Round(time.Millisecond).String()))
	return nil
}

// report logs why a file cannot be used.
func (b *Blocklists) report(ctx context.Context, l *list, err error) {
	if err != nil {
		b.log.ErrorContext(ctx, "a blocklist cannot be used; its version before stays", slog.Int("hosts", l.size()), slog.Any("err", err))
	}
}

func (b *Blocklists) digest(host string) uint64 { return maphash.String(b.seed, host) }

// Stats are counters since the start, and what is in use.
type Stats struct {
	Hosts    int    // in all lists, a host that stands in two counted twice
	Strange  int    // lines of the lists that are no hosts and forbid nothing
	Unusable int    // lists whose newest version could not be used
	Reloads  uint64 // versions taken
	Failures uint64 // versions refused
}

// Stats returns the counters.
func (b *Blocklists) Stats() Stats {
	s := Stats{Reloads: b.reloads.Load(), Failures: b.failures.Load()}
	for _, l := range b.lists {
		s.Hosts += l.size()
		if e := l.now.Load(); e != nil {
			s.Strange += e.strange.lines
		}
		if l.failed.Load() {
			s.Unusable++
		}
	}
	return s
}
