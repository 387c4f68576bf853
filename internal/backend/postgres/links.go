package postgres

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"curt/internal/backend/postgres/accounts"
	"curt/internal/backend/postgres/leases"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/backend/postgres/replicas"
	"curt/internal/backend/postgres/reservations"
	"curt/internal/background"
	"curt/internal/codegen"
	"curt/internal/link"
)

// Accounts returns the accounts beside the links.
func (s *Links) Accounts() accounts.Accounts { return accounts.New(s.db, s.config.Instance) }

// LinksConfig says which database is opened, and how. The zero value of every field but
// URL is usable.
type LinksConfig struct {
	// URL is what libpq reads: postgres://user:password@host:5432/database, with several
	// hosts separated by commas, sslmode and what else it knows.
	URL string

	Readers   int   // connections for reads; default 8
	Writers   int   // connections for writes; default 4
	ChangeLog int64 // changes kept for readers of Changes; default 1,000,000

	Region    string         // of this server, for the change log; "" = there is one
	LogBounds link.LogBounds // of what is kept for followers; default link.DefaultLogBounds

	// Instance names this process among those that share the database, for good: whoever
	// opens it with the same name comes after the one of before, who must have ended.
	Instance string

	// Stored is called with the id of each new link once it is durable, also when its
	// creator has gone home. It must not block. Nil = nobody listens.
	Stored func(link.ID)

	// Replicas are URLs of standbys, one each, that Lookup asks while they are behind the
	// primary by no more than MaxLag, which is 5 s by default.
	Replicas []string
	MaxLag   time.Duration

	// ReadOnly says that this process follows links and neither makes nor changes any: Tables
	// then asks for no right to write.
	ReadOnly bool

	Log *slog.Logger // default none
}

func (c LinksConfig) withDefaults() LinksConfig {
	c.Readers = cmp.Or(c.Readers, 8)
	c.Writers = cmp.Or(c.Writers, 4)
	c.ChangeLog = cmp.Or(c.ChangeLog, 1_000_000)
	c.MaxLag = cmp.Or(c.MaxLag, 5*time.Second)
	c.LogBounds = cmp.Or(c.LogBounds, link.DefaultLogBounds())
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Links is a database of links and leases that processes share. It implements link.Store
// with every optional interface, and codegen.Leaser. Look-ups ask
// the primary and never lag, unless there are replicas: then by LinksConfig.MaxLag at most.
//
// A write that returned nil is durable as far as synchronous_commit of the role says: on
// the disk of the primary, and of its synchronous standbys where there are any. A server
// whose role has it off is refused.
//
// Reads and writes have connections of their own, so that neither can use up the other's.
// Every call ends within two seconds, CreateMany and FindOrCreate within five, whatever
// the server does.
//
// Run must be running for long use: nothing else shortens the change log and looks after
// Healthy and Tables.
type Links struct {
	*leases.Leases
	*changeLog
	*linkReader
	*creator
	*reservations.Reservations

	db      *pgdb.Database
	config  LinksConfig
	closing sync.Once
}

// The contracts that Links keeps.
var (
	_ link.Backend    = (*Links)(nil)
	_ link.ManyGetter = (*Links)(nil)
	_ link.EventLog   = (*Links)(nil)
	_ link.CreateLog  = (*Links)(nil)
	_ link.Reserver   = (*Links)(nil)
	_ codegen.Leaser  = (*Links)(nil)
	_ codegen.Dated   = (*Links)(nil)
)

// OpenLinks connects, brings the schema up to date, makes the key of the permutation at
// the first start, and moves leases past the newest counted links where they lie behind.
func OpenLinks(ctx context.Context, config LinksConfig) (*Links, error) {
	config = config.withDefaults()
	db := pgdb.New(pgdb.LinksHealth(config.ReadOnly), config.Readers, config.Log)
	reader := &linkReader{db: db}
	reserved := reservations.New(db, reader.place, confirm)
	s := &Links{
		Leases: leases.New(db), changeLog: &changeLog{db: db, config: config}, linkReader: reader,
		creator: &creator{linkReader: reader, config: config, reserved: reserved}, Reservations: reserved, db: db, config: config,
	}
	if err := s.open(ctx); err != nil {
		s.replicas.Close()
		db.ClosePools()
		return nil, fmt.Errorf("open links: %w", err)
	}
	return s, nil
}

func (s *Links) open(ctx context.Context) (err error) {
	if s.replicas, err = replicas.New(s.config.Replicas, s.config.MaxLag, int32(s.config.Readers), s.config.Log); err != nil {
		return err
	}
	if err := s.db.Connect(ctx, s.config.URL, s.config.Readers, s.config.Writers); err != nil {
		return err
	}
	if err := s.db.AwaitMove(ctx); err != nil {
		return err
	}
	if err := s.Accounts().Free(ctx); err != nil {
		return fmt.Errorf("%w: %w", pgdb.ErrUnfit, err)
	}
	s.joiner = newJoiner(max(1, s.config.Writers/2), s.createJoined)
	s.codes, err = s.Begin(ctx)
	return err
}

// Healthy returns nil while the server takes writes, and why not otherwise. It does no I/O.
func (s *Links) Healthy() error { return s.db.Healthy() }

// Tables returns nil while this process can work there, and why not otherwise. It does no I/O.
func (s *Links) Tables() error { return s.db.Tables() }

const (
	trimEvery = 10 * time.Second
)

// Run looks after the database until ctx ends.
func (s *Links) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { s.replicas.Watch(ctx, s.db.ReadPool) })
	defer watching.Wait()
	defer end()
	var trimmed time.Time
	for range background.Every(ctx, pgdb.HealthEvery) {
		s.db.CheckHealth(ctx)
		if time.Since(trimmed) >= trimEvery {
			trimmed = time.Now()
			if err := s.trimChanges(ctx); err != nil && ctx.Err() == nil {
				s.config.Log.WarnContext(ctx, "trimming the change log failed, retrying", slog.Any("err", err))
			}
		}
	}
	return context.Cause(ctx)
}

// Close waits for calls under way and closes the connections. A second Close does nothing.
func (s *Links) Close() error {
	s.closing.Do(func() {
		s.db.Closed.Store(true)
		s.joiner.close()
		s.replicas.Close()
		s.db.ClosePools()
	})
	return nil
}

// Replicas tells how look-ups are shared with replicas.
func (s *Links) Replicas() replicas.Stats { return s.replicas.Stats() }
