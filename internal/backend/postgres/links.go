package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"curt/internal/codegen"
	"curt/internal/link"
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

	// Holder, if set, is who has the database to itself: OpenLinks waits up to holdWait
	// for another holder to go or to fall silent, and Run ends with ErrHeld should one
	// have taken over. Whoever opens it with the name of the holder of before, who must
	// have ended, has it at once.
	Holder string

	// Stored is called with the id of each new link once it is durable, also when its
	// creator has gone home. It must not block. Nil = nobody listens.
	Stored func(link.ID)

	Log *slog.Logger // default none
}

func (c LinksConfig) withDefaults() LinksConfig {
	c.Readers = cmp.Or(c.Readers, 8)
	c.Writers = cmp.Or(c.Writers, 4)
	c.ChangeLog = cmp.Or(c.ChangeLog, 1_000_000)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Links is a database of links and leases that processes share. It implements link.Store
// with every optional interface, and codegen.Leaser. Look-ups ask the primary and never
// lag.
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
// Healthy.
type Links struct {
	config LinksConfig
	read   *pgxpool.Pool
	write  *pgxpool.Pool
	joiner *joiner

	codeKey [32]byte
	codes   *codegen.Permutation

	health  atomic.Pointer[error] // why writes fail; nil = they do not
	closing sync.Once
	closed  atomic.Bool
}

// The contracts that Links keeps.
var (
	_ link.Store     = (*Links)(nil)
	_ link.Batcher   = (*Links)(nil)
	_ link.Spender   = (*Links)(nil)
	_ link.Deduper   = (*Links)(nil)
	_ codegen.Leaser = (*Links)(nil)
)

// OpenLinks connects, brings the schema up to date, makes the key of the permutation at
// the first start, and moves leases past the newest minted links where they lie behind.
func OpenLinks(ctx context.Context, config LinksConfig) (*Links, error) {
	s := &Links{config: config.withDefaults()}
	if err := s.open(ctx); err != nil {
		s.endHold()
		s.closePools()
		return nil, fmt.Errorf("open links: %w", err)
	}
	return s, nil
}

func (s *Links) open(ctx context.Context) (err error) {
	if s.write, err = newPool(ctx, s.config.URL, int32(s.config.Writers)); err != nil {
		return err
	}
	warning, err := fit(ctx, s.write)
	if err != nil {
		return err
	}
	if warning != "" {
		s.config.Log.WarnContext(ctx, warning)
	}
	if err := migrate(ctx, s.write); err != nil {
		return err
	}
	if s.read, err = resized(ctx, s.write, int32(s.config.Readers)); err != nil {
		return err
	}
	if err := s.takeHold(ctx); err != nil {
		return err
	}
	s.joiner = newJoiner(max(1, s.config.Writers/2), s.createJoined)
	if s.codeKey, err = s.loadCodeKey(ctx); err != nil {
		return err
	}
	s.codes = codegen.NewPermutation(s.codeKey)
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

// ready says whether a call may go on, before it waits for a connection.
func (s *Links) ready(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.closed.Load() {
		return errClosed
	}
	return nil
}

// reading runs f, which asks the database once or twice, within the limit of a call.
func (s *Links) reading(ctx context.Context, f func(ctx context.Context, q querier) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	within, cancel := limited(ctx)
	defer cancel()
	return readError(ctx, f(within, s.read))
}

// writing runs f, which changes the database by one statement, within the limit of a
// call, and again when that met another one so that the server undid it.
func (s *Links) writing(ctx context.Context, f func(ctx context.Context, q querier) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	within, cancel := limited(ctx)
	defer cancel()
	err := repeated(within, func() error { return f(within, s.write) })
	s.heard(err)
	return writeError(ctx, err)
}

// repeats is how often a statement that met another one is sent.
const repeats = 5

// repeated calls f again while the server undid it because of others.
func repeated(ctx context.Context, f func() error) (err error) {
	for range repeats {
		if err = f(); !isRepeatable(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// heard drops the connections to a server that takes no writes any more: it was a
// primary, and the next connection finds the one that is.
func (s *Links) heard(err error) {
	if stateOf(err) == stateReadOnly {
		s.write.Reset()
		s.read.Reset()
	}
}

// Healthy returns nil while writes are accepted, and why not otherwise, wrapped in
// link.ErrUnavailable. It does no I/O: Run asks the database once a second.
func (s *Links) Healthy() error {
	if err := s.health.Load(); err != nil {
		return fmt.Errorf("the database of links: %w: %w", link.ErrUnavailable, *err)
	}
	return nil
}

const (
	healthEvery = time.Second
	trimEvery   = 10 * time.Second

	sqlWritable = `SELECT pg_is_in_recovery()`
)

// Run looks after the database until ctx ends.
func (s *Links) Run(ctx context.Context) error {
	turns := time.NewTicker(healthEvery)
	defer turns.Stop()
	var trimmed time.Time
	for {
		s.look(ctx)
		if err := s.keepHold(ctx); err != nil {
			return err
		}
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

// look asks whether writes would be accepted, and says so once when that changes.
func (s *Links) look(ctx context.Context) {
	within, cancel := limited(ctx)
	defer cancel()
	var standby bool
	err := s.write.QueryRow(within, sqlWritable).Scan(&standby)
	if err == nil && standby {
		s.write.Reset()
		err = errors.New("the server is a standby")
	}
	if ctx.Err() != nil {
		return
	}
	before := s.health.Load()
	switch {
	case err != nil:
		s.health.Store(&err)
		if before == nil {
			s.config.Log.ErrorContext(ctx, "the database of links takes no writes", slog.Any("err", err))
		}
	case before != nil:
		s.health.Store(nil)
		s.config.Log.InfoContext(ctx, "the database of links takes writes again")
	}
}

// Close waits for calls under way and closes the connections. A second Close does nothing.
func (s *Links) Close() error {
	s.closing.Do(func() {
		s.closed.Store(true)
		s.joiner.close()
		s.endHold()
		s.closePools()
	})
	return nil
}

func (s *Links) closePools() {
	for _, pool := range []*pgxpool.Pool{s.read, s.write} {
		if pool != nil {
			pool.Close()
		}
	}
}
