package sqlite

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"

	"curt/internal/backend/sqlite/accounts"
	"curt/internal/backend/sqlite/leases"
	"curt/internal/backend/sqlite/reservations"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/background"
	"curt/internal/codegen"
	"curt/internal/link"
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

	// NeverIssued reports whether no link ever had a code, as known from the links and not from their
	// index by code: the index need not be checked for damage before such a code is entered. It must not block.
	// Nil = nobody knows.
	NeverIssued func(link.Code) bool

	Tracer *telemetry.Tracer // of transactions; default none

	Yielder background.Yielder // schedules all reads but those of single links; default none

	// Force opens a store whose write-ahead log lost what was confirmed, instead of
	// returning a LostError. What is lost is given up, and logged.
	Force bool

	Log *slog.Logger // default none
}

func (c LinksConfig) withDefaults() LinksConfig {
	c.Synchronous = cmp.Or(c.Synchronous, "FULL")
	if c.NeverIssued == nil {
		c.NeverIssued = func(link.Code) bool { return false }
	}
	c.WriterCacheKiB = cmp.Or(c.WriterCacheKiB, 2<<10)
	c.ReaderCacheKiB = cmp.Or(c.ReaderCacheKiB, 1<<10)
	c.Readers = cmp.Or(c.Readers, 4)
	c.ListReaders = cmp.Or(c.ListReaders, 2)
	c.ChangeLog = cmp.Or(c.ChangeLog, 1_000_000)
	c.LogBounds = cmp.Or(c.LogBounds, link.DefaultLogBounds())
	c.CheckpointMiB = cmp.Or(c.CheckpointMiB, 64)
	c.Yielder = background.Or(c.Yielder)
	c.Yielder = background.Or(c.Yielder)
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
// sqlitedb.Store says how it is written, and what a failure means. Run must be running for long use:
// nothing else shortens the WAL.
type Links struct {
	*leases.Leases
	*changeLog
	*createLog
	*linkReader
	*pending
	*reservations.Reservations

	db    *sqlitedb.Store
	ahead readAhead
	log   *slog.Logger
}

// pending is what the transaction under way has noted, and what it may assume of the file. It
// is owned by the writer's transactions.
type pending struct {
	stored     func(link.ID) // nil = nobody listens
	workspaces map[link.WorkspaceID]int64
	lastAlias  int64 // row of the newest alias, 0 = not known
	created    []link.ID
}

// The contracts that Links keeps.
var (
	_ link.Backend    = (*Links)(nil)
	_ link.ManyGetter = (*Links)(nil)
	_ link.EventLog   = (*Links)(nil)
	_ link.CreateLog  = (*Links)(nil)
	_ link.Discarder  = (*Links)(nil)
	_ link.Reserver   = (*Links)(nil)
	_ codegen.Leaser  = (*Links)(nil)
)

// OpenLinks opens or creates curt.db, brings its schema up to date, makes the key of
// the permutation at the first start, and moves leases past the newest counted link
// where they lie behind it, and past what the state file knows (package leases). It returns a
// LostError or ErrGone, and has changed nothing, where what was confirmed is not there.
func OpenLinks(ctx context.Context, config LinksConfig) (*Links, error) {
	config = config.withDefaults()
	outlook, err := leases.Inspect(ctx, config.Path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open links: %w", err)
	case outlook.Refuses() && !config.Force:
		return nil, fmt.Errorf("open links: %w", outlook.Lost)
	}
	s := &Links{
		Leases: leases.New(config.Path, config.Synchronous, config.Log), changeLog: &changeLog{config: config},
		createLog: &createLog{}, linkReader: &linkReader{config: config},
		pending: &pending{stored: config.Stored, workspaces: make(map[link.WorkspaceID]int64)},
		ahead:   readAhead{path: config.Path}, log: config.Log,
	}
	s.db, err = sqlitedb.OpenStore(ctx, sqlitedb.StoreConfig{
		Path: config.Path, Synchronous: config.Synchronous, Migrations: linksMigrations, Folder: "migrations/links", WriterCacheKiB: config.WriterCacheKiB,
		ReaderCacheKiB: config.ReaderCacheKiB, Readers: config.Readers, ListReaders: config.ListReaders, MoreReaders: aheadConns,
		CheckpointMiB: config.CheckpointMiB, Yielder: config.Yielder, Tracer: config.Tracer, Log: config.Log,
		BeforeCommit: s.logCreates, Committed: s.announce, RolledBack: s.forget,
		Checkpointing: s.ahead.measure, Checkpointed: s.Checkpointed, Emptied: s.Emptied,
	})
	if err != nil {
		return nil, fmt.Errorf("open links: %w", outlook.Unfit(err))
	}
	s.changeLog.db, s.createLog.db, s.linkReader.db = s.db, s.db, s.db
	s.changes = s.changeLog
	s.Reservations = reservations.New(s.db, reservations.Links{
		Has: func(t *sqlitedb.Tx, k link.Key) (found bool, err error) {
			_, _, found, err = s.byKey(t, k)
			return found, err
		},
		CheckAliases: func(t *sqlitedb.Tx, k link.Key) error {
			_, err := soundAliases(t, k, s.log)
			return err
		},
	})
	if err := s.start(ctx, outlook); err != nil {
		return nil, errors.Join(fmt.Errorf("open links: %w", outlook.Unfit(err)), s.db.Abandon())
	}
	return s, nil
}

func (s *Links) start(ctx context.Context, outlook leases.Outlook) (err error) {
	s.accounts = accounts.NewDB(s.db)
	s.ahead.measure()
	if s.ahead.conns, err = s.db.NewReaders(ctx, aheadConns); err != nil {
		return err
	}
	if err := s.adoptCreates(ctx); err != nil { // Begin leases more
		return err
	}
	s.codes, err = s.Begin(ctx, s.db, outlook)
	return err
}

// forget drops what a transaction that was rolled back has noted.
func (s *Links) forget() {
	clear(s.workspaces)
	s.lastAlias = 0
	s.created, s.counted = s.created[:0], s.counted[:0]
}

// announce tells of the links that a transaction has stored.
func (p *pending) announce() {
	for _, id := range p.created {
		p.stored(id)
	}
	p.created = p.created[:0]
}

// note remembers a link that a transaction stores.
func (p *pending) note(id link.ID) {
	if p.stored != nil {
		p.created = append(p.created, id)
	}
}

// Healthy returns nil while writes are accepted, and why not otherwise, wrapped in
// link.ErrUnavailable. It does no I/O.
func (s *Links) Healthy() error { return s.db.Healthy() }

// Run brings the WAL into the file whenever it has grown to CheckpointMiB, until ctx ends; then
// it returns nil.
func (s *Links) Run(ctx context.Context) error { return s.db.Run(ctx) }

// Close waits for writes and reads under way, brings the WAL into the file and
// closes it. A second Close does nothing.
func (s *Links) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close links: %w", err)
	}
	return nil
}

// Accounts returns the accounts beside the links.
func (s *Links) Accounts() accounts.Accounts { return accounts.New(s.accounts) }

// FreezerOf returns what has links refuse writes while they are handed over to a database (package
// handover).
func FreezerOf(l *Links) sqlitedb.Freezer { return sqlitedb.FreezerOf(l.db) }
