package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"

	"curt/internal/backend/coldsql"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/repeatlog"
	"curt/internal/statefile"
	"curt/internal/telemetry"
)

// LinksConfig says where and how curt.db is opened. The zero value of every
// field but Path is usable.
type LinksConfig struct {
	Path string // of curt.db; its folder must exist

	// Synchronous is FULL unless set. NORMAL loses acknowledged links in a power
	// cut and exists only as the control of the test that proves FULL does not.
	Synchronous string

	WriterCacheKiB int            // page cache of the writing connection; default 2 MiB
	ReaderCacheKiB int            // page cache of each second reading connection, of the others a quarter; default 1 MiB
	Readers        int            // connections that read single links; default 4
	ListReaders    int            // connections for all else that is read, such as lists; default 2
	ChangeLog      int64          // changes kept for readers of Changes; default 1,000,000
	Region         string         // of this server, for the change log; "" = there is one
	LogBounds      link.LogBounds // of what is kept for followers; default link.DefaultLogBounds
	CheckpointMiB  int64          // size of the WAL that Run brings into the file; default 64

	// Stored is called with the id of each new link once it is durable, also when its
	// creator has gone home. It must not block. Nil = nobody listens.
	Stored func(link.ID)

	Tracer *telemetry.Tracer // of transactions; default none

	Rest func() // called by GetMany between two links, and may wait; default none

	Aside Aside // what reads more than single links runs in it

	// Force opens a store whose write-ahead log lost what was confirmed, instead of
	// returning a LostError. What is lost is given up, and logged.
	Force bool

	Log *slog.Logger // default none
}

func (c LinksConfig) withDefaults() LinksConfig {
	c.Synchronous = cmp.Or(c.Synchronous, "FULL")
	c.WriterCacheKiB = cmp.Or(c.WriterCacheKiB, 2<<10)
	c.ReaderCacheKiB = cmp.Or(c.ReaderCacheKiB, 1<<10)
	c.Readers = cmp.Or(c.Readers, 4)
	c.ListReaders = cmp.Or(c.ListReaders, 2)
	c.ChangeLog = cmp.Or(c.ChangeLog, 1_000_000)
	c.LogBounds = cmp.Or(c.LogBounds, link.DefaultLogBounds())
	c.CheckpointMiB = cmp.Or(c.CheckpointMiB, 64)
	if c.Rest == nil {
		c.Rest = func() {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

//go:embed migrations/links/*.sql
var linksMigrations embed.FS

// Links is curt.db: links, leases and keys on one machine. It implements link.Store
// with every optional interface, and codegen.Leaser. Look-ups never lag.
//
// Writes go through one group commit (writer.go); reads have connections of their
// own and never wait for a write. After an fsync that failed, or damage found by the
// writer, it refuses writes with link.ErrUnavailable until it is opened anew, and
// reads go on; a full disk is link.ErrFull and heals by itself.
//
// Run must be running for long use: nothing else shortens the WAL.
type Links struct {
	config  LinksConfig
	handles handles
	dialect *coldsql.Dialect
	codes   *codegen.Permutation
	codeKey [32]byte

	writer  *writer
	readers *readers
	lists   *readers // for List and what else reads many rows, which visitors never wait for
	damages damages
	disk    disk
	check   *conn // for checkpoints; owned by whoever holds checking

	ahead ahead
	state *statefile.File // set last in OpenLinks

	checking sync.Mutex
	scrub    atomic.Bool // destroyed keys may still lie in the WAL
	closing  sync.Once
	closed   chan struct{}

	workspaces map[link.WorkspaceID]int64 // owned by the writer's transactions
	lastAlias  int64                      // row of the newest alias, 0 = not known; owned by the writer's transactions
	created    []link.ID                  // owned by the writer's transactions
	counted    []int64                    // rows created with counted codes; owned by the writer's transactions
	heldBack   repeatlog.Condition        // the log, by a follower
}

// The contracts that Links keeps.
var (
	_ link.Backend    = (*Links)(nil)
	_ link.ManyGetter = (*Links)(nil)
	_ link.EventLog   = (*Links)(nil)
	_ codegen.Leaser  = (*Links)(nil)
)

// OpenLinks opens or creates curt.db, brings its schema up to date, makes the key of
// the permutation at the first start, and moves leases past the newest counted link
// where they lie behind it, and past what the state file knows (outside.go). It returns a
// LostError or ErrGone, and has changed nothing, where what was confirmed is not there.
func OpenLinks(ctx context.Context, config LinksConfig) (*Links, error) {
	config = config.withDefaults()
	outlook, err := Look(ctx, config.Path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open links: %w", err)
	case outlook.refuses() && !config.Force:
		return nil, fmt.Errorf("open links: %w", outlook.Lost)
	}
	migrations, err := fs.Sub(linksMigrations, "migrations/links")
	if err != nil {
		return nil, fmt.Errorf("open links: %w", err)
	}
	h, err := open(ctx, file{
		path: config.Path, synchronous: config.Synchronous, cacheKiB: config.ReaderCacheKiB,
		writerCacheKiB: config.WriterCacheKiB, readers: config.Readers + config.ListReaders + aheadConns + 1, migrations: migrations, secureDelete: true,
	})
	if err != nil {
		return nil, fmt.Errorf("open links: %w", outlook.unfit(broken(config.Path, err)))
	}
	s := &Links{
		config: config, handles: h, dialect: coldsql.SQLite(),
		closed: make(chan struct{}), workspaces: make(map[link.WorkspaceID]int64), disk: disk{read: wholeReader()},
	}
	err = s.start(ctx)
	if err == nil {
		err = s.settle(ctx, outlook)
	}
	if err != nil {
		close(s.closed)
		if s.writer != nil {
			s.writer.looking.Wait() // it looks at the files where a write of the start found damage
		}
		return nil, errors.Join(fmt.Errorf("open links: %w", outlook.unfit(err)), h.close())
	}
	return s, nil
}

func (s *Links) start(ctx context.Context) error {
	w, err := newConn(ctx, s.handles.write)
	if err != nil {
		return err
	}
	s.writer = newWriter(w, s.forget, s.tell, s.config.Tracer)
	s.writer.revive, s.writer.says, s.writer.last = s.revive, s.failed, s.logCreates
	if s.check, err = newConn(ctx, s.handles.read); err != nil {
		return err
	}
	// The checkpoint that holds the writer must not wait long for a reader.
	if err := s.check.do(func(t *tx) error { return t.each(sqlShortWait, ignore) }); err != nil {
		return err
	}
	if s.lists, err = newReaders(ctx, s.handles, s.config.ListReaders, (s.config.ListReaders+1)/2); err != nil {
		return err
	}
	if s.readers, err = newReaders(ctx, s.handles, s.config.Readers, (s.config.Readers+1)/2); err != nil {
		return err
	}
	if err := s.ahead.open(ctx, s.handles, s.config.Path); err != nil {
		return err
	}
	if s.codeKey, err = s.loadCodeKey(ctx); err != nil {
		return err
	}
	s.codes = codegen.NewPermutation(s.codeKey)
	if err := s.adoptCreates(ctx); err != nil {
		return err
	}
	return s.skipStaleLeases(ctx)
}

// forget drops what a transaction that was rolled back has noted.
func (s *Links) forget() {
	clear(s.workspaces)
	s.lastAlias = 0
	s.created, s.counted = s.created[:0], s.counted[:0]
}

// tell tells of the links that a transaction has stored.
func (s *Links) tell() {
	for _, id := range s.created {
		s.config.Stored(id)
	}
	s.created = s.created[:0]
}

// note remembers a link that a transaction stores.
func (s *Links) note(id link.ID) {
	if s.config.Stored != nil {
		s.created = append(s.created, id)
	}
}

// read lends f a reading connection for single rows. f must be short: nothing interrupts it.
func (s *Links) read(ctx context.Context, f func(t *tx) error) error {
	return s.lend(ctx, s.readers, f)
}

// readMany is read for what looks at many rows. It waits for its turn aside, and has connections
// of its own.
func (s *Links) readMany(ctx context.Context, f func(t *tx) error) error {
	return s.config.Aside.run(ctx, func(ctx context.Context) error { return s.lend(ctx, s.lists, f) })
}

func (s *Links) lend(ctx context.Context, from *readers, f func(t *tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-s.closed:
		return fmt.Errorf("closed: %w", link.ErrUnavailable)
	default:
	}
	select {
	case <-from.free:
		c := from.pop()
		defer from.push(c)
		return s.failed(c.do(f))
	case <-s.closed:
		return fmt.Errorf("closed: %w", link.ErrUnavailable)
	case <-ctx.Done():
		return fmt.Errorf("wait for a connection: %w", context.Cause(ctx))
	}
}

// Healthy returns nil while writes are accepted, and why not otherwise, wrapped in
// link.ErrUnavailable. It does no I/O.
func (s *Links) Healthy() error {
	if err := s.writer.failure(); err != nil {
		return fmt.Errorf("writes stopped: %w: %w", link.ErrUnavailable, err)
	}
	return nil
}

// Close waits for writes and reads under way, brings the WAL into the file and
// closes it. A second Close does nothing.
func (s *Links) Close() error {
	var err error
	s.closing.Do(func() {
		s.writer.close()
		close(s.closed)
		s.writer.looking.Wait()
		errs := []error{s.readers.close(), s.lists.close(), s.ahead.conns.close()}
		s.checking.Lock()
		defer s.checking.Unlock()
		if s.writer.failure() == nil {
			errs = append(errs, s.leave())
		}
		errs = append(errs, s.check.close(), s.writer.conn.close(), s.handles.close())
		err = errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("close links: %w", err)
	}
	return nil
}

// leave brings the WAL into the file. When all of it is there, the state file says so
// before the last connection deletes the WAL, which nobody needs from now on.
func (s *Links) leave() error {
	var w wal
	err := s.check.do(func(t *tx) (err error) {
		w, err = walState(t, sqlTruncateWAL)
		return err
	})
	if err != nil || w.busy || w.pages > 0 {
		return err
	}
	return s.state.Update(func(now *statefile.State) { now.Open = false })
}

// ignore drops a row that a pragma returns.
func ignore([]driver.Value) error { return nil }
