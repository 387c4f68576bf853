package sqlite

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"curt/internal/link"
	"curt/internal/search"
)

// SearchConfig says where and how search.db is opened. The zero value of every
// field but Path is usable.
type SearchConfig struct {
	Path string // of search.db; its folder must exist

	WriterCacheKiB int // page cache of the writing connection; default 1 MiB
	ReaderCacheKiB int // page cache of each second reading connection, of the others a quarter; default 1 MiB
	Readers        int // reading connections; default 2

	SegmentDocs int // documents of the biggest segments, at most 65,536, the default

	Aside Aside // what reads the index runs in it

	Rest func()               // called by Rank between two links, and may wait; default none
	Work func() (done func()) // called before a commit, which may wait for the disk, and done behind it; default none

	Log *slog.Logger // default none
}

//go:embed migrations/search/*.sql
var searchMigrations embed.FS

const (
	maxSegmentDocs = 1 << 16

	// searchWAL is the size of the WAL that a write brings into the file.
	searchWAL = 16 << 20
)

// Search is search.db: an index of segments, each a sorted dictionary of terms with
// the documents that have them. It implements search.Index.
//
// A new batch becomes a small segment; Tidy merges small ones into bigger ones. What
// is replaced or removed is only marked in its segment, until a merge leaves it out. A
// term is looked for in every segment, which costs one page each, so that any
// combination of terms costs at most that often as many pages: common words are
// bits, which are joined 64 at a time, and cannot be made slow by a stranger.
//
// The file is written with synchronous=NORMAL: a power cut may take the newest
// batches, and their position with them, so that those links are read again. A file
// that is damaged is thrown away.
type Search struct {
	config SearchConfig

	applying sync.Mutex // held by Apply, Tidy and Reset; guards write
	write    *conn

	mu      sync.RWMutex // guards all below; held for writing only while a commit ends
	handles handles
	readers *readers // nil after Close
	state   searchState
}

// searchState is what the file says, as of its last commit. It never changes.
type searchState struct {
	position search.Position
	segments []*segment // by place
}

// segment is what memory keeps of one segment: about 14 KiB of a full one.
type segment struct {
	n     int64
	place int64 // in the order in which the documents came
	docs  int
	heads []string  // first term of each page
	ids   []link.ID // first id of each chunk
	last  link.ID
	gone  docSet // empty = none
}

func (s *segment) first() link.ID { return s.ids[0] }

// live is how many documents were not removed.
func (s *segment) live() int { return s.docs - s.gone.count() }

var _ search.Index = (*Search)(nil)

// OpenSearch opens or creates search.db. A file that is damaged is thrown away and
// made anew, which the log says.
func OpenSearch(ctx context.Context, config SearchConfig) (*Search, error) {
	config.WriterCacheKiB = cmp.Or(config.WriterCacheKiB, 1<<10)
	config.ReaderCacheKiB = cmp.Or(config.ReaderCacheKiB, 1<<10)
	config.Readers = cmp.Or(config.Readers, 2)
	config.SegmentDocs = min(cmp.Or(config.SegmentDocs, maxSegmentDocs), maxSegmentDocs)
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	if config.Rest == nil {
		config.Rest = func() {}
	}
	if config.Work == nil {
		config.Work = func() func() { return func() {} }
	}
	s := &Search{config: config}
	err := s.open(ctx)
	if err != nil && (damaged(err) || errors.Is(err, search.ErrDamaged)) {
		config.Log.WarnContext(ctx, "the search index is damaged and is made anew", slog.Any("err", err))
		if err = s.remove(); err == nil {
			err = s.open(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the search index: %w", err)
	}
	return s, nil
}

func (s *Search) open(ctx context.Context) error {
	migrations, err := fs.Sub(searchMigrations, "migrations/search")
	if err != nil {
		return err
	}
	h, err := open(ctx, file{
		path: s.config.Path, synchronous: "NORMAL", cacheKiB: s.config.ReaderCacheKiB, readers: s.config.Readers,
		writerCacheKiB: s.config.WriterCacheKiB, migrations: migrations, secureDelete: true,
	})
	if err != nil {
		return err
	}
	var lent *readers
	write, err := newConn(ctx, h.write)
	if err == nil {
		lent, err = newReaders(ctx, h, s.config.Readers, (s.config.Readers+1)/2)
	}
	var state searchState
	if err == nil {
		err = write.do(func(t *tx) error {
			state, err = loadSearch(t)
			return err
		})
	}
	if err != nil {
		return errors.Join(err, h.close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write, s.handles, s.readers, s.state = write, h, lent, state
	return nil
}

// remove deletes the file and what SQLite keeps beside it.
func (s *Search) remove() error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(s.config.Path + suffix); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// view lends f a reading connection inside a transaction, and the state that the
// transaction sees: they are taken together, while no commit ends.
func (s *Search) view(ctx context.Context, f func(t *tx, state searchState) error) error {
	return s.config.Aside.run(ctx, func(ctx context.Context) error { return s.lend(ctx, f) })
}

func (s *Search) lend(ctx context.Context, f func(t *tx, state searchState) error) error {
	s.mu.RLock()
	lent := s.readers
	s.mu.RUnlock()
	if lent == nil {
		return errSearchClosed()
	}
	var c *conn
	select {
	case <-lent.free:
		c = lent.pop()
		defer lent.push(c)
	case <-ctx.Done():
		return fmt.Errorf("wait for a connection: %w", context.Cause(ctx))
	}
	return searchError(c.do(func(t *tx) error {
		state, err := s.snapshot(t, lent)
		if err == nil {
			err = f(t, state)
		}
		_, end := t.exec(sqlRollback) // nothing was written; releases the view
		return errors.Join(err, end)
	}))
}

func (s *Search) snapshot(t *tx, lent *readers) (searchState, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.readers != lent {
		return searchState{}, errSearchClosed() // or made anew meanwhile
	}
	if _, err := t.exec(sqlBeginRead); err != nil {
		return searchState{}, err
	}
	_, _, err := t.number(sqlSearchTouch) // a transaction begins with its first read
	return s.state, err
}

func errSearchClosed() error { return fmt.Errorf("closed: %w", search.ErrUnavailable) }

// searchError gives errors of SQLite their sentinel.
func searchError(err error) error {
	switch {
	case err == nil:
		return nil
	case damaged(err):
		return fmt.Errorf("%w: %w", search.ErrDamaged, err)
	case resultCode(err) != 0:
		return fmt.Errorf("%w: %w", search.ErrUnavailable, err)
	}
	return err
}

// commit runs f in a transaction and, with it, moves to the state that f returns.
// The caller holds applying.
func (s *Search) commit(f func(t *tx, state searchState) (searchState, error)) error {
	if s.write == nil {
		return errSearchClosed()
	}
	return searchError(s.write.do(func(t *tx) error {
		if _, err := t.exec(sqlBegin); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		state, err := f(t, s.state) // only commit writes the state, so this read needs no lock
		defer s.config.Work()()
		if err == nil {
			err = s.publish(t, state)
		}
		if err != nil {
			_, _ = t.exec(sqlRollback) // SQLite may have ended the transaction itself
			return err
		}
		return s.checkpoint(t)
	}))
}

func (s *Search) publish(t *tx, state searchState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := t.exec(sqlCommit); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.state = state
	return nil
}

// checkpoint brings a long WAL into the file. Readers may keep it from its end; the
// next write tries again.
func (s *Search) checkpoint(t *tx) error {
	w, err := walState(t, sqlWALSize)
	if err != nil || w.pages*pageSize < searchWAL {
		return err
	}
	_, err = walState(t, sqlCheckpoint)
	if resultCode(err)&0xff == codeBusy {
		return nil
	}
	return err
}

// Position implements search.Index.
func (s *Search) Position(context.Context) (search.Position, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.readers == nil {
		return search.Position{}, errSearchClosed()
	}
	return s.state.position, nil
}

// Reset implements search.Index: the file is thrown away.
func (s *Search) Reset(ctx context.Context) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	_ = s.shut() // what is wrong with the file does not matter any more
	if err := s.remove(); err != nil {
		return fmt.Errorf("reset the search index: %w", err)
	}
	if err := s.open(ctx); err != nil {
		return fmt.Errorf("reset the search index: %w", err)
	}
	return nil
}

// Close implements search.Index. A second Close does nothing.
func (s *Search) Close() error {
	s.applying.Lock()
	defer s.applying.Unlock()
	if err := s.shut(); err != nil {
		return fmt.Errorf("close the search index: %w", err)
	}
	return nil
}

// shut waits for readers and closes the file.
func (s *Search) shut() error {
	s.mu.Lock()
	lent, h := s.readers, s.handles
	s.readers = nil
	s.mu.Unlock()
	if lent == nil {
		return nil
	}
	errs := []error{lent.close()}
	errs = append(errs, s.write.do(func(t *tx) error {
		_, err := walState(t, sqlTruncateWAL)
		return err
	}))
	errs = append(errs, s.write.close(), h.close())
	s.write = nil
	return errors.Join(errs...)
}

// breathe lets others have the processor. Yielding is not enough on one core: the
// scheduler looks at the network only when nothing else can run.
func breathe() { time.Sleep(100 * time.Microsecond) }

// with returns a state with other segments, in their order.
func (s searchState) with(remove map[int64]bool, add ...*segment) searchState {
	list := make([]*segment, 0, len(s.segments)+len(add))
	for _, g := range s.segments {
		if !remove[g.n] {
			list = append(list, g)
		}
	}
	list = append(list, add...)
	slices.SortFunc(list, func(a, b *segment) int { return cmp.Compare(a.place, b.place) })
	s.segments = list
	return s
}
