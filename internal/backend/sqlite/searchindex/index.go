// Package searchindex keeps the search index in search.db. Read index.go first, then apply.go for
// how links become segments, find.go for a query, and merge.go for how segments become one.
package searchindex

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/search"
)

// Schema returns the number of the newest migration that this program knows of
// search.db.
func Schema() (int64, error) { return sqlitedb.NewestMigration(migrations, "migrations/search") }

// Config says where and how search.db is opened. The zero value of every
// field but Path is usable.
type Config struct {
	Path string // of search.db; its folder must exist

	WriterCacheKiB int // page cache of the writing connection; default 1 MiB
	ReaderCacheKiB int // page cache of each second reading connection, of the others a quarter; default 1 MiB
	Readers        int // reading connections; default 2

	SegmentDocs int // documents of the biggest segments, at most 65,536, the default

	Yielder background.Yielder // schedules reads, ranking, and commits, which may wait for the disk; default none

	Log *slog.Logger // default none
}

//go:embed migrations/search/*.sql
var migrations embed.FS

const (
	maxSegmentDocs = 1 << 16

	// searchWAL is the size of the WAL that a write brings into the file.
	maxWAL = 16 << 20
)

// Index is search.db: an index of segments, each a sorted dictionary of terms with
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
type Index struct {
	config Config

	applying sync.Mutex // held by Apply, Tidy and Reset; guards write
	write    *sqlitedb.Conn

	mu      sync.RWMutex // guards all below; held for writing only while a commit ends
	handles sqlitedb.Handles
	readers *sqlitedb.Readers // nil after Close
	state   indexState
}

// indexState is what the file says, as of its last commit. It never changes.
type indexState struct {
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

var _ search.Index = (*Index)(nil)

// Open opens or creates search.db. A file that is damaged is thrown away and
// made anew, which the log says.
func Open(ctx context.Context, config Config) (*Index, error) {
	config.WriterCacheKiB = cmp.Or(config.WriterCacheKiB, 1<<10)
	config.ReaderCacheKiB = cmp.Or(config.ReaderCacheKiB, 1<<10)
	config.Readers = cmp.Or(config.Readers, 2)
	config.SegmentDocs = min(cmp.Or(config.SegmentDocs, maxSegmentDocs), maxSegmentDocs)
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	config.Yielder = background.Or(config.Yielder)
	s := &Index{config: config}
	err := s.open(ctx)
	if err != nil && (sqlitedb.IsDamage(err) || errors.Is(err, search.ErrDamaged)) {
		config.Log.WarnContext(ctx, "search index is damaged, rebuilding it", slog.Any("err", err))
		if err = s.remove(); err == nil {
			err = s.open(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the search index: %w", err)
	}
	return s, nil
}

func (s *Index) open(ctx context.Context) error {
	h, err := sqlitedb.Open(ctx, sqlitedb.File{
		Path: s.config.Path, Synchronous: "NORMAL", CacheKiB: s.config.ReaderCacheKiB, Readers: s.config.Readers,
		WriterCacheKiB: s.config.WriterCacheKiB, Migrations: migrations, Folder: "migrations/search", SecureDelete: true,
	})
	if err != nil {
		return err
	}
	var lent *sqlitedb.Readers
	write, err := sqlitedb.NewConn(ctx, h.Write)
	if err == nil {
		lent, err = sqlitedb.NewReaders(ctx, h, s.config.Readers, (s.config.Readers+1)/2)
	}
	var state indexState
	if err == nil {
		err = write.Do(func(t *sqlitedb.Tx) error {
			state, err = loadState(t)
			return err
		})
	}
	if err != nil {
		return errors.Join(err, h.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write, s.handles, s.readers, s.state = write, h, lent, state
	return nil
}

// remove deletes the file and what SQLite keeps beside it.
func (s *Index) remove() error {
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
func (s *Index) view(ctx context.Context, f func(t *sqlitedb.Tx, state indexState) error) error {
	return s.config.Yielder.Queue(ctx, func(ctx context.Context) error { return s.lend(ctx, f) })
}

func (s *Index) lend(ctx context.Context, f func(t *sqlitedb.Tx, state indexState) error) error {
	s.mu.RLock()
	lent := s.readers
	s.mu.RUnlock()
	if lent == nil {
		return errClosed()
	}
	return withSentinel(lent.Lend(ctx, nil, func(c *sqlitedb.Conn) error {
		return c.Do(func(t *sqlitedb.Tx) error {
			state, err := s.snapshot(t, lent)
			if err == nil {
				err = f(t, state)
			}
			_, end := t.Exec(sqlitedb.SQLRollback) // nothing was written; releases the view
			return errors.Join(err, end)
		})
	}))
}

const sqlSearchTouch = `SELECT one FROM state WHERE one = 1`

func (s *Index) snapshot(t *sqlitedb.Tx, lent *sqlitedb.Readers) (indexState, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.readers != lent {
		return indexState{}, errClosed() // or made anew meanwhile
	}
	if _, err := t.Exec(sqlitedb.SQLBeginRead); err != nil {
		return indexState{}, err
	}
	_, _, err := t.Number(sqlSearchTouch) // a transaction begins with its first read
	return s.state, err
}

func errClosed() error { return fmt.Errorf("closed: %w", search.ErrUnavailable) }

// withSentinel gives errors of SQLite their sentinel.
func withSentinel(err error) error {
	switch {
	case err == nil:
		return nil
	case sqlitedb.IsDamage(err):
		return fmt.Errorf("%w: %w", search.ErrDamaged, err)
	case sqlitedb.ResultCode(err) != 0:
		return fmt.Errorf("%w: %w", search.ErrUnavailable, err)
	}
	return err
}

// commit runs f in a transaction and, with it, moves to the state that f returns.
// The caller holds applying.
func (s *Index) commit(f func(t *sqlitedb.Tx, state indexState) (indexState, error)) error {
	if s.write == nil {
		return errClosed()
	}
	return withSentinel(s.write.Do(func(t *sqlitedb.Tx) error {
		if _, err := t.Exec(sqlitedb.SQLBegin); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		state, err := f(t, s.state) // only commit writes the state, so this read needs no lock
		defer s.config.Yielder.Boost()()
		if err == nil {
			err = s.publish(t, state)
		}
		if err != nil {
			_, _ = t.Exec(sqlitedb.SQLRollback) // SQLite may have ended the transaction itself
			return err
		}
		return s.checkpoint(t)
	}))
}

func (s *Index) publish(t *sqlitedb.Tx, state indexState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := t.Exec(sqlitedb.SQLCommit); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.state = state
	return nil
}

// checkpoint brings a long WAL into the file. Readers may keep it from its end; the
// next write tries again.
func (s *Index) checkpoint(t *sqlitedb.Tx) error {
	w, err := sqlitedb.WALState(t, sqlitedb.SQLWALSize)
	if err != nil || w.Pages*sqlitedb.PageSize < maxWAL {
		return err
	}
	_, err = sqlitedb.WALState(t, sqlitedb.SQLCheckpoint)
	if sqlitedb.ResultCode(err)&0xff == sqlitedb.CodeBusy {
		return nil
	}
	return err
}

// Position implements search.Index.
func (s *Index) Position(context.Context) (search.Position, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.readers == nil {
		return search.Position{}, errClosed()
	}
	return s.state.position, nil
}

// Reset implements search.Index: the file is thrown away.
func (s *Index) Reset(ctx context.Context) error {
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
func (s *Index) Close() error {
	s.applying.Lock()
	defer s.applying.Unlock()
	if err := s.shut(); err != nil {
		return fmt.Errorf("close the search index: %w", err)
	}
	return nil
}

// shut waits for readers and closes the file.
func (s *Index) shut() error {
	s.mu.Lock()
	lent, h := s.readers, s.handles
	s.readers = nil
	s.mu.Unlock()
	if lent == nil {
		return nil
	}
	errs := []error{lent.Close()}
	errs = append(errs, s.write.Do(func(t *sqlitedb.Tx) error {
		_, err := sqlitedb.WALState(t, sqlitedb.SQLTruncateWAL)
		return err
	}))
	errs = append(errs, s.write.Close(), h.Close())
	s.write = nil
	return errors.Join(errs...)
}

// breathe lets others have the processor. Yielding is not enough on one core: the
// scheduler looks at the network only when nothing else can run.
func breathe() { time.Sleep(100 * time.Microsecond) }

// with returns a state with other segments, in their order.
func (s indexState) with(remove map[int64]bool, add ...*segment) indexState {
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
