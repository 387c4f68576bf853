package sqlitedb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/repeatlog"
	"curt/internal/telemetry"
)

// StoreConfig says where and how curt.db is opened, and what is called while it is written.
// The functions before Checkpointing are called by one goroutine at a time.
type StoreConfig struct {
	Path        string
	Synchronous string // FULL or NORMAL
	Migrations  fs.FS
	Folder      string // of Migrations, where they are

	WriterCacheKiB int   // page cache of the writing connection
	ReaderCacheKiB int   // page cache of each second reading connection, of the others a quarter
	Readers        int   // connections that read single rows
	ListReaders    int   // connections for all else that is read, such as lists
	MoreReaders    int   // connections for Readers of the caller
	CheckpointMiB  int64 // size of the WAL that Run brings into the file

	Yielder background.Yielder // queues reads of more than single rows; default none
	Tracer  *telemetry.Tracer
	Log     *slog.Logger

	BeforeCommit  func(*Tx) error             // belongs to a transaction as a whole
	Committed     func()                      // called after a commit
	RolledBack    func()                      // what was read meanwhile never was
	Checkpointing func()                      // called before the writer is held
	Checkpointed  func(context.Context) error // all of the WAL is in the file
	Emptied       func() error                // the same in Close, before the WAL is deleted
}

// Store is a database file that several callers write: one connection with a group commit
// (writer.go), and connections that read beside it and never wait for a write.
//
// After an fsync that failed, or damage found by the writer, it refuses writes with
// link.ErrUnavailable until it is opened anew, and reads go on; a full disk is link.ErrFull
// and heals by itself.
//
// Run must be running for long use: nothing else shortens the WAL.
type Store struct {
	config  StoreConfig
	handles Handles

	writer  *writer
	readers *Readers
	lists   *Readers   // for what reads many rows, which visitors never wait for
	more    []*Readers // set before the store is shared
	disk    Disk
	check   *Conn // for checkpoints; owned by whoever holds checking

	checking sync.Mutex
	scrub    atomic.Bool // erased content may still lie in the WAL
	closing  sync.Once
	closed   chan struct{}
}

// OpenStore opens or creates the file and brings its schema up to date.
func OpenStore(ctx context.Context, config StoreConfig) (*Store, error) {
	config.Yielder = background.Or(config.Yielder)
	h, err := Open(ctx, File{
		Path: config.Path, Synchronous: config.Synchronous, CacheKiB: config.ReaderCacheKiB,
		WriterCacheKiB: config.WriterCacheKiB, Readers: config.Readers + config.ListReaders + config.MoreReaders + 1,
		Migrations: config.Migrations, Folder: config.Folder, SecureDelete: true,
	})
	if err != nil {
		return nil, ClassifyFile(config.Path, err)
	}
	s := &Store{config: config, handles: h, closed: make(chan struct{}), disk: Disk{Read: NewFileReader()}}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return s, nil
}

const sqlShortWait = `PRAGMA busy_timeout = 250`

func (s *Store) start(ctx context.Context) error {
	w, err := NewConn(ctx, s.handles.Write)
	if err != nil {
		return err
	}
	s.writer = newWriter(w, s.config)
	s.writer.recover, s.writer.classify = s.recoverWrites, s.classify
	if s.check, err = NewConn(ctx, s.handles.Read); err != nil {
		return err
	}
	// The checkpoint that holds the writer must not wait long for a reader.
	if err := s.check.Do(func(t *Tx) error { return t.Each(sqlShortWait, Ignore) }); err != nil {
		return err
	}
	if s.lists, err = NewReaders(ctx, s.handles, s.config.ListReaders, (s.config.ListReaders+1)/2); err != nil {
		return err
	}
	s.readers, err = NewReaders(ctx, s.handles, s.config.Readers, (s.config.Readers+1)/2)
	return err
}

// NewReaders returns n connections of MoreReaders with a quarter of the page cache; Close
// closes them.
func (s *Store) NewReaders(ctx context.Context, n int) (*Readers, error) {
	r, err := NewReaders(ctx, s.handles, n, 0)
	if err == nil {
		s.more = append(s.more, r)
	}
	return r, err
}

// Renewed reports whether nothing of an earlier process was left in the WAL.
func (s *Store) Renewed() bool { return s.handles.renewed }

// Closed is closed when Close begins.
func (s *Store) Closed() <-chan struct{} { return s.closed }

// Read lends f a reading connection for single rows. f must be short: nothing interrupts it.
func (s *Store) Read(ctx context.Context, f func(t *Tx) error) error {
	return s.lend(ctx, s.readers, f)
}

// ReadMany is Read for what looks at many rows. It waits for its turn aside, and has connections
// of its own.
func (s *Store) ReadMany(ctx context.Context, f func(t *Tx) error) error {
	return s.config.Yielder.Queue(ctx, func(ctx context.Context) error { return s.lend(ctx, s.lists, f) })
}

// ReadList is ReadMany for a caller who is aside already.
func (s *Store) ReadList(ctx context.Context, f func(t *Tx) error) error {
	return s.lend(ctx, s.lists, f)
}

func (s *Store) lend(ctx context.Context, from *Readers, f func(t *Tx) error) error {
	err := from.Lend(ctx, s.closed, func(c *Conn) error { return s.classify(c.Do(f)) })
	if errors.Is(err, ErrClosed) {
		err = fmt.Errorf("%w: %w", err, link.ErrUnavailable)
	}
	return err
}

// classify says what an error of a read is.
func (s *Store) classify(err error) error {
	if !IsDamage(err) {
		return Classify(err)
	}
	if disk := s.disk.check(s.config.Path); disk != nil {
		return fmt.Errorf("%w: %w", link.ErrUnavailable, disk)
	}
	return Classify(err)
}

// Write runs apply in a transaction, with what others write, and returns its error once that is
// durable. apply may run again, and must leave the file unchanged when it returns an error that
// is not SQLite's. link.ErrUncertain, and the cause of an ended context, mean "may have happened".
func (s *Store) Write(ctx context.Context, rows int, apply func(t *Tx) error) error {
	return s.writer.write(ctx, rows, apply)
}

// Stop refuses all writes from now on.
func (s *Store) Stop(cause error) { s.writer.stop(cause) }

// Healthy returns nil while writes are accepted, or frozen for a move, during which visitors are
// served; and why not otherwise, wrapped in link.ErrUnavailable. It does no I/O.
func (s *Store) Healthy() error {
	if err := s.writer.failure(); err != nil && !errors.Is(err, ErrFrozen) {
		return fmt.Errorf("writes stopped: %w: %w", link.ErrUnavailable, err)
	}
	return nil
}

// Run brings the WAL into the file whenever it has grown to CheckpointMiB, until ctx
// ends; then it returns nil. It sleeps while nobody writes. A checkpoint that fails
// is logged and tried again after the next write, because look-ups go on whatever
// happens to it; where it breaks the store for writes, Healthy says so.
//
// The pages are copied beside the writer (PASSIVE). Under steady writes such a
// checkpoint never reaches the end of the log, which then grows for ever; so the
// last few pages are copied while the writer is held, and the next write starts the
// log from its beginning. A reader that stays in an old state, such as a backup,
// delays this; the log grows meanwhile.
func (s *Store) Run(ctx context.Context) error {
	var failing repeatlog.Condition
	return AfterWrites(ctx, s.writer.committed, checkpointPause, func() error {
		if err := s.checkpointIfDue(ctx); err != nil && ctx.Err() == nil {
			failing.Log(ctx, time.Now(), s.config.Log, slog.LevelError, "checkpoint of links failed, retrying", err)
		} else {
			failing.LogRecovery(ctx, time.Now(), s.config.Log, "checkpoint of links recovered")
		}
		return nil
	})
}

const (
	SQLWALSize    = `PRAGMA wal_checkpoint(NOOP)`
	SQLCheckpoint = `PRAGMA wal_checkpoint(PASSIVE)`
)

func (s *Store) checkpointIfDue(ctx context.Context) error {
	if s.scrub.Load() {
		return s.checkpoint(ctx, SQLTruncateWAL)
	}
	w, err := s.checkpointer(SQLWALSize)
	if err != nil || w.Pages*PageSize < s.config.CheckpointMiB<<20 || s.writer.failure() != nil {
		return err
	}
	return s.checkpoint(ctx, SQLCheckpoint)
}

// Scrub cuts what a write has erased out of the WAL. What fails here, Run and Close do again.
func (s *Store) Scrub(ctx context.Context) {
	s.scrub.Store(true)
	_ = s.checkpoint(ctx, SQLTruncateWAL)
}

// checkpoint brings the whole WAL into the file; last is the pragma of the step that
// holds the writer.
func (s *Store) checkpoint(ctx context.Context, last string) error {
	for range checkpointRounds {
		w, err := s.checkpointer(SQLCheckpoint)
		if err != nil {
			return err
		}
		if w.Pages-w.moved <= heldPages {
			break
		}
	}
	s.config.Checkpointing()
	var w WAL
	err := s.writer.exclusive(ctx, func() (err error) {
		w, err = s.checkpointer(last)
		if err == nil && last == SQLTruncateWAL && !w.busy {
			s.scrub.Store(false)
		}
		return err
	})
	if err != nil || w.busy || w.moved < w.Pages {
		return err
	}
	return s.config.Checkpointed(ctx)
}

// checkpointer runs a pragma on the connection for checkpoints. A failure to write
// or sync stops all writes: the file may miss pages, which only the WAL still has.
func (s *Store) checkpointer(pragma string) (w WAL, err error) {
	s.checking.Lock()
	defer s.checking.Unlock()
	select {
	case <-s.closed:
		return w, fmt.Errorf("closed: %w", link.ErrUnavailable)
	default:
	}
	err = s.check.Do(func(t *Tx) error {
		w, err = WALState(t, pragma)
		return err
	})
	if code := ResultCode(err); code&0xff == codeIOErr || IsDamage(err) {
		s.writer.stop(err)
	}
	if code := ResultCode(err) & 0xff; code == codeFull || code == CodeBusy {
		return WAL{busy: true}, nil // it is tried again after the next write
	}
	return w, Classify(err)
}

// Abandon closes a store that was opened and is not used: its WAL stays.
func (s *Store) Abandon() error {
	close(s.closed)
	s.writer.recoveries.Wait() // it looks at the files where a write found damage
	return s.handles.Close()
}

// Close waits for writes and reads under way, brings the WAL into the file and
// closes it. A second Close does nothing.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		s.writer.close()
		close(s.closed)
		s.writer.recoveries.Wait()
		var errs []error
		for _, r := range append(s.more, s.readers, s.lists) {
			errs = append(errs, r.Close())
		}
		s.checking.Lock()
		defer s.checking.Unlock()
		if err := s.writer.failure(); err == nil || errors.Is(err, ErrFrozen) {
			errs = append(errs, s.empty())
		}
		errs = append(errs, s.check.Close(), s.writer.conn.Close(), s.handles.Close())
		err = errors.Join(errs...)
	})
	return err
}

// empty brings the WAL into the file.
func (s *Store) empty() error {
	var w WAL
	err := s.check.Do(func(t *Tx) (err error) {
		w, err = WALState(t, SQLTruncateWAL)
		return err
	})
	if err != nil || w.busy || w.Pages > 0 {
		return err
	}
	return s.config.Emptied()
}

const (
	PageSize = 4096

	// checkpointPause spaces looks at the WAL: at 100 MB/s of WAL it grows by 10 MB
	// meanwhile.
	checkpointPause = 100 * time.Millisecond

	// heldPages is how much a checkpoint may leave to the last step, which holds the
	// writer: 4 MiB are copied and synced in about 10 ms.
	heldPages = 1024

	// checkpointRounds bounds the rounds beside the writer. Each leaves what was
	// written during it, which shrinks unless the disk is slower than the writer.
	checkpointRounds = 5
)

// WAL is the state of the write-ahead log in pages.
type WAL struct {
	Pages int64 // in the log
	moved int64 // of them already in the file
	busy  bool  // somebody kept the checkpoint from its end
}

// WALState runs a pragma that returns the state of the WAL.
func WALState(t *Tx, pragma string) (w WAL, err error) {
	_, err = t.One(pragma, func(row []driver.Value) error {
		s := Scanner{Row: row}
		w.busy, w.Pages, w.moved = s.Bool(), s.Int(), s.Int()
		return s.Damage()
	})
	return w, err
}

// AfterWrites calls f when something was written, and then not before the pause is over,
// until ctx ends, which is nil, or f fails.
func AfterWrites(ctx context.Context, written <-chan struct{}, pause time.Duration, f func() error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-written:
		}
		if err := f(); err != nil {
			return err
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}
