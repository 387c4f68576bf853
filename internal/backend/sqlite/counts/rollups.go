// Package counts keeps roll-ups of clicks in clicks.db. It is written by the fold with
// synchronous=NORMAL, because its log position makes a lost tail harmless. Read rollups.go first,
// then apply.go for a batch's way into the file.
package counts

import (
	"cmp"
	"context"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"sync"
	"time"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/background"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/rollup"
	"curt/internal/search"
)

// Config says where and how clicks.db is opened. The zero value of every
// field but Path is usable.
type Config struct {
	Path string // of clicks.db; its folder must exist

	WriterCacheKiB int   // page cache of the writing connection; default 2 MiB
	ReaderCacheKiB int   // page cache of each second reading connection, of the others a quarter; default 1 MiB
	Readers        int   // reading connections; default 2
	CheckpointMiB  int64 // size of the WAL that Run brings into the file; default 32

	// Yielder schedules reads, Apply, which yields every 0.3 ms, and writes that may wait for the
	// disk; default none.
	Yielder background.Yielder
}

//go:embed migrations/clicks/*.sql
var migrations embed.FS

// Rollups is clicks.db: what Fold has counted. It implements rollup.Store.
//
// It is written with synchronous=NORMAL: a power cut may take the newest batches,
// and their position in the click log with them, so that they are counted again.
// Run must be running for long use: nothing else shortens the WAL.
type Rollups struct {
	config  Config
	handles sqlitedb.Handles
	rows    int // that one statement takes

	applying sync.Mutex // held by Apply; guards write and batch
	write    *sqlitedb.Conn
	batch    batchBuffers

	disk     sqlitedb.Disk
	readers  *sqlitedb.Readers
	checking sync.Mutex // guards check
	check    *sqlitedb.Conn
	applied  chan struct{} // a batch was committed; Run listens
	closing  sync.Once
	closed   chan struct{}
}

var (
	_ rollup.Store  = (*Rollups)(nil)
	_ search.Counts = (*Rollups)(nil)
)

// errClosed is what a Rollups answers after Close.
var errClosed = fmt.Errorf("clicks.db is %w", sqlitedb.ErrClosed)

// rowsBetweenYields is the same with yields: about 0.3 ms.
const rowsBetweenYields = 16

// Open opens or creates clicks.db and brings its schema up to date. A file that is
// shorter than it says is ErrCut: SQLite reads zeros for what is missing, and counts would
// be wrong without a word.
func Open(ctx context.Context, config Config) (*Rollups, error) {
	config.WriterCacheKiB = cmp.Or(config.WriterCacheKiB, 2<<10)
	config.ReaderCacheKiB = cmp.Or(config.ReaderCacheKiB, 1<<10)
	config.Readers = cmp.Or(config.Readers, 2)
	config.CheckpointMiB = cmp.Or(config.CheckpointMiB, 32)
	config.Yielder = background.Or(config.Yielder)
	rows := sqlitedb.RowsAtOnce
	if config.Yielder.Yields() {
		rows = rowsBetweenYields
	}
	if err := sqlitedb.CheckLength(config.Path); err != nil {
		return nil, fmt.Errorf("open roll-ups: %w", err)
	}
	h, err := sqlitedb.Open(ctx, sqlitedb.File{
		Path: config.Path, Synchronous: "NORMAL", CacheKiB: config.ReaderCacheKiB,
		WriterCacheKiB: config.WriterCacheKiB, Readers: config.Readers + 1, Migrations: migrations, Folder: "migrations/clicks",
	})
	if err != nil {
		return nil, fmt.Errorf("open roll-ups: %w", err)
	}
	s := &Rollups{
		config: config, handles: h, rows: rows, batch: batchBuffers{yield: config.Yielder.Yield, most: rows},
		applied: make(chan struct{}, 1), closed: make(chan struct{}), disk: sqlitedb.Disk{Read: sqlitedb.NewFileReader()},
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open roll-ups: %w", err), h.Close())
	}
	return s, nil
}

func (s *Rollups) start(ctx context.Context) (err error) {
	if s.write, err = sqlitedb.NewConn(ctx, s.handles.Write); err != nil {
		return err
	}
	if s.check, err = sqlitedb.NewConn(ctx, s.handles.Read); err != nil {
		return err
	}
	s.readers, err = sqlitedb.NewReaders(ctx, s.handles, s.config.Readers, (s.config.Readers+1)/2)
	return err
}

// view lends f a reading connection inside a transaction: all that f reads is of
// one moment.
func (s *Rollups) view(ctx context.Context, f func(t *sqlitedb.Tx) error) error {
	return s.config.Yielder.Queue(ctx, func(ctx context.Context) error {
		return s.readers.Lend(ctx, s.closed, func(c *sqlitedb.Conn) error {
			return s.disk.Explain(s.config.Path, c.Do(func(t *sqlitedb.Tx) error {
				return t.View(func() error { return f(t) })
			}))
		})
	})
}

// Load implements rollup.Store.
func (s *Rollups) Load(ctx context.Context) (state rollup.State, err error) {
	err = s.view(ctx, func(t *sqlitedb.Tx) error {
		state, err = loadState(t)
		return err
	})
	if err != nil {
		return rollup.State{}, fmt.Errorf("load fold position: %w", err)
	}
	return state, nil
}

const sqlState = `SELECT generation, segment, place FROM state WHERE one = 1`

func loadState(t *sqlitedb.Tx) (state rollup.State, err error) {
	found, err := t.One(sqlState, func(row []driver.Value) error {
		r := sqlitedb.Scanner{Row: row}
		state.Generation = uint64(r.Int())
		state.Position = clicklog.Position{Segment: uint64(r.Int()), Offset: r.Int()}
		return r.Damage()
	})
	if err == nil && !found {
		err = errors.New("clicks.db has lost its state")
	}
	return state, err
}

// checkpointEvery spaces looks at the WAL while batches come.
const checkpointEvery = time.Second

// Run brings the WAL into the file after a batch that made it long, until ctx ends;
// then it returns nil. Batches leave seconds between them, in which the copying
// reaches the log's end, so that the next batch starts it from its beginning. A
// checkpoint that fails is tried again after the next batch: until then the WAL
// holds everything.
func (s *Rollups) Run(ctx context.Context) error {
	return sqlitedb.AfterWrites(ctx, s.applied, checkpointEvery, func() error {
		if err := s.checkpoint(); err != nil && !errors.Is(err, errClosed) && sqlitedb.ResultCode(err) == 0 {
			return fmt.Errorf("checkpoint clicks.db: %w", err)
		}
		return nil
	})
}

func (s *Rollups) checkpoint() error {
	s.checking.Lock()
	defer s.checking.Unlock()
	select {
	case <-s.closed:
		return errClosed
	default:
	}
	return s.check.Do(func(t *sqlitedb.Tx) error {
		w, err := sqlitedb.WALState(t, sqlitedb.SQLWALSize)
		if err != nil || w.Pages*sqlitedb.PageSize < s.config.CheckpointMiB<<20 {
			return err
		}
		defer s.config.Yielder.Boost()()
		_, err = sqlitedb.WALState(t, sqlitedb.SQLCheckpoint)
		return err
	})
}

// Close waits for what is under way, brings the WAL into the file and closes it. A
// second Close does nothing.
func (s *Rollups) Close() error {
	var err error
	s.closing.Do(func() {
		s.applying.Lock()
		defer s.applying.Unlock()
		close(s.closed)
		errs := []error{s.readers.Close()}
		s.checking.Lock()
		defer s.checking.Unlock()
		errs = append(errs, s.check.Do(func(t *sqlitedb.Tx) error {
			_, err := sqlitedb.WALState(t, sqlitedb.SQLTruncateWAL)
			return err
		}))
		errs = append(errs, s.check.Close(), s.write.Close(), s.handles.Close())
		err = errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("close roll-ups: %w", err)
	}
	return nil
}
