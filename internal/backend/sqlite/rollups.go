package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"curt/internal/clicks"
)

// RollupsConfig says where and how clicks.db is opened. The zero value of every
// field but Path is usable.
type RollupsConfig struct {
	Path string // of clicks.db; its folder must exist

	WriterCacheKiB int   // page cache of the writing connection; default 2 MiB
	ReaderCacheKiB int   // page cache of each second reading connection, of the others a quarter; default 1 MiB
	Readers        int   // reading connections; default 2
	CheckpointMiB  int64 // size of the WAL that Run brings into the file; default 32

	// Rest is called by Apply and Totals between parts of their work, which are some 0.3 ms then,
	// and may wait; default none.
	Rest func()

	Aside Aside // what reads roll-ups runs in it

	// Work is called where they, or Run, may wait for the disk, and done behind it; default none.
	Work func() (done func())
}

//go:embed migrations/clicks/*.sql
var rollupsMigrations embed.FS

// Rollups is clicks.db: what Fold has counted. It implements clicks.RollupStore.
//
// It is written with synchronous=NORMAL: a power cut may take the newest batches,
// and their position in the click log with them, so that they are counted again.
// Run must be running for long use: nothing else shortens the WAL.
type Rollups struct {
	config  RollupsConfig
	handles handles
	rows    int // that one statement takes

	applying sync.Mutex // held by Apply; guards write and batch
	write    *conn
	batch    batchBuffers

	disk     disk
	readers  *readers
	checking sync.Mutex // guards check
	check    *conn
	applied  chan struct{} // a batch was committed; Run listens
	closing  sync.Once
	closed   chan struct{}
}

var _ clicks.RollupStore = (*Rollups)(nil)

// errClosed is what a Rollups answers after Close.
var errClosed = errors.New("clicks.db is closed")

// OpenRollups opens or creates clicks.db and brings its schema up to date. A file that is
// shorter than it says is ErrCut: SQLite reads zeros for what is missing, and counts would
// be wrong without a word.
func OpenRollups(ctx context.Context, config RollupsConfig) (*Rollups, error) {
	config.WriterCacheKiB = cmp.Or(config.WriterCacheKiB, 2<<10)
	config.ReaderCacheKiB = cmp.Or(config.ReaderCacheKiB, 1<<10)
	config.Readers = cmp.Or(config.Readers, 2)
	config.CheckpointMiB = cmp.Or(config.CheckpointMiB, 32)
	if config.Work == nil {
		config.Work = func() func() { return func() {} }
	}
	rows := rowsAtOnce
	if config.Rest == nil {
		config.Rest = func() {}
	} else {
		rows = rowsBetweenRests
	}
	if err := checkLength(config.Path); err != nil {
		return nil, fmt.Errorf("open roll-ups: %w", err)
	}
	migrations, err := fs.Sub(rollupsMigrations, "migrations/clicks")
	if err != nil {
		return nil, fmt.Errorf("open roll-ups: %w", err)
	}
	h, err := open(ctx, file{
		path: config.Path, synchronous: "NORMAL", cacheKiB: config.ReaderCacheKiB,
		writerCacheKiB: config.WriterCacheKiB, readers: config.Readers + 1, migrations: migrations,
	})
	if err != nil {
		return nil, fmt.Errorf("open roll-ups: %w", err)
	}
	s := &Rollups{
		config: config, handles: h, rows: rows, batch: batchBuffers{rest: config.Rest, most: rows},
		applied: make(chan struct{}, 1), closed: make(chan struct{}), disk: disk{read: wholeReader()},
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open roll-ups: %w", err), h.close())
	}
	return s, nil
}

func (s *Rollups) start(ctx context.Context) (err error) {
	if s.write, err = newConn(ctx, s.handles.write); err != nil {
		return err
	}
	if s.check, err = newConn(ctx, s.handles.read); err != nil {
		return err
	}
	s.readers, err = newReaders(ctx, s.handles, s.config.Readers, (s.config.Readers+1)/2)
	return err
}

// view lends f a reading connection inside a transaction: all that f reads is of
// one moment.
func (s *Rollups) view(ctx context.Context, f func(t *tx) error) error {
	return s.config.Aside.run(ctx, func(ctx context.Context) error { return s.lend(ctx, f) })
}

func (s *Rollups) lend(ctx context.Context, f func(t *tx) error) error {
	select {
	case <-s.closed:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
	}
	select {
	case <-s.readers.free:
		c := s.readers.pop()
		defer s.readers.push(c)
		return s.disk.tell(s.config.Path, c.do(func(t *tx) error {
			if _, err := t.exec(sqlBeginRead); err != nil {
				return err
			}
			err := f(t)
			_, end := t.exec(sqlRollback) // nothing was written; releases the view
			return errors.Join(err, end)
		}))
	case <-s.closed:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Load implements clicks.RollupStore.
func (s *Rollups) Load(ctx context.Context) (state clicks.State, err error) {
	err = s.view(ctx, func(t *tx) error {
		state, err = loadState(t)
		return err
	})
	if err != nil {
		return clicks.State{}, fmt.Errorf("load fold position: %w", err)
	}
	return state, nil
}

func loadState(t *tx) (state clicks.State, err error) {
	found, err := t.one(sqlState, func(row []driver.Value) error {
		r := scanner{row: row}
		state.Generation = uint64(r.int())
		state.Position = clicks.Position{Segment: uint64(r.int()), Offset: r.int()}
		return r.damage()
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
	return afterWrites(ctx, s.applied, checkpointEvery, func() error {
		if err := s.checkpoint(); err != nil && !errors.Is(err, errClosed) && resultCode(err) == 0 {
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
	return s.check.do(func(t *tx) error {
		w, err := walState(t, sqlWALSize)
		if err != nil || w.pages*pageSize < s.config.CheckpointMiB<<20 {
			return err
		}
		defer s.config.Work()()
		_, err = walState(t, sqlCheckpoint)
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
		errs := []error{s.readers.close()}
		s.checking.Lock()
		defer s.checking.Unlock()
		errs = append(errs, s.check.do(func(t *tx) error {
			_, err := walState(t, sqlTruncateWAL)
			return err
		}))
		errs = append(errs, s.check.close(), s.write.close(), s.handles.close())
		err = errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("close roll-ups: %w", err)
	}
	return nil
}
