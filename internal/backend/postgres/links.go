package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

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
	*database

	config LinksConfig
	joiner *joiner

	replicas *replicas

	codeKey [32]byte
	codes   *codegen.Permutation

	doubts doubts // about changes of this process

	heldBack repeatlog.Condition // the log, by a follower

	closing sync.Once
}

// The contracts that Links keeps.
var (
	_ link.Backend    = (*Links)(nil)
	_ link.ManyGetter = (*Links)(nil)
	_ link.EventLog   = (*Links)(nil)
	_ codegen.Leaser  = (*Links)(nil)
)

// OpenLinks connects, brings the schema up to date, makes the key of the permutation at
// the first start, and moves leases past the newest counted links where they lie behind.
func OpenLinks(ctx context.Context, config LinksConfig) (*Links, error) {
	s := &Links{config: config.withDefaults()}
	s.database = newDatabase(linksHealth(config.ReadOnly), s.config.Readers, s.config.Log)
	if err := s.open(ctx); err != nil {
		s.replicas.close()
		s.closePools()
		return nil, fmt.Errorf("open links: %w", err)
	}
	return s, nil
}

func (s *Links) open(ctx context.Context) (err error) {
	if s.replicas, err = newReplicas(s.config.Replicas, s.config.MaxLag, int32(s.config.Readers), s.config.Log); err != nil {
		return err
	}
	if err := s.connect(ctx, s.config.URL, s.config.Readers, s.config.Writers); err != nil {
		return err
	}
	if err := s.Accounts().Free(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	s.joiner = newJoiner(max(1, s.config.Writers/2), s.createJoined)
	if s.codeKey, err = s.loadCodeKey(ctx); err != nil {
		return err
	}
	s.health.identity, s.codes = s.codeKey[:], codegen.NewPermutation(s.codeKey)
	return s.skipStaleLeases(ctx)
}

const (
	sqlSetting    = `SELECT value FROM settings WHERE name = $1`
	sqlAddSetting = `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`

	settingCodeKey = "code_key"
)

// loadCodeKey reads the key of the permutation, and makes it when there is none: of
// several processes that start at once, all read the one that was first.
func (s *Links) loadCodeKey(ctx context.Context) (key [32]byte, err error) {
	fresh := make([]byte, len(key))
	_, _ = rand.Read(fresh) // never fails: crypto/rand ends the process instead
	if _, err := s.write.Exec(ctx, sqlAddSetting, settingCodeKey, fresh); err != nil {
		return key, fmt.Errorf("make the key of codes: %w", err)
	}
	var stored []byte
	if err := s.write.QueryRow(ctx, sqlSetting, settingCodeKey).Scan(&stored); err != nil {
		return key, fmt.Errorf("read the key of codes: %w", err)
	}
	if copy(key[:], stored) != len(key) || len(stored) != len(key) {
		return key, fmt.Errorf("%w: the key of codes has %d bytes, want %d", ErrUnfit, len(stored), len(key))
	}
	return key, nil
}

// CodeKey returns the key of the permutation, which was made at the first start. It is a
// secret: whoever has it can tell the order of links from their codes.
func (s *Links) CodeKey(ctx context.Context) ([32]byte, error) {
	if ctx.Err() != nil {
		return [32]byte{}, fmt.Errorf("read the key of codes: %w", context.Cause(ctx))
	}
	return s.codeKey, nil
}

const (
	healthEvery = time.Second
	trimEvery   = 10 * time.Second
)

// Run looks after the database until ctx ends.
func (s *Links) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { s.replicas.watch(ctx, s.read) })
	defer watching.Wait()
	defer end()
	turns := time.NewTicker(healthEvery)
	defer turns.Stop()
	var trimmed time.Time
	for {
		s.look(ctx)
		if time.Since(trimmed) >= trimEvery {
			trimmed = time.Now()
			if err := s.trimChanges(ctx); err != nil && ctx.Err() == nil {
				s.config.Log.WarnContext(ctx, "old changes were not removed", slog.Any("err", err))
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-turns.C:
		}
	}
}

// Close waits for calls under way and closes the connections. A second Close does nothing.
func (s *Links) Close() error {
	s.closing.Do(func() {
		s.closed.Store(true)
		s.joiner.close()
		s.replicas.close()
		s.closePools()
	})
	return nil
}

// Replicas tells how look-ups are shared with replicas.
func (s *Links) Replicas() ReplicaStats { return s.replicas.stats() }
