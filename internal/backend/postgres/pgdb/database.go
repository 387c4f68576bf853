package pgdb

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"

	"curt/internal/backend/coldsql"
	"curt/internal/background"
)

// Database is what links and accounts have in common: connections with limits, and what is known
// of their health.
type Database struct {
	Dialect *coldsql.Dialect
	Log     *slog.Logger

	conns     liveness // of both pools
	ReadPool  *pgxpool.Pool
	WritePool *pgxpool.Pool
	lists     chan struct{} // a place for each read of many rows under way

	Health *Health
	Closed atomic.Bool
}

// New returns one that is not connected yet.
func New(h *Health, readers int, log *slog.Logger) *Database {
	return &Database{Dialect: coldsql.PostgreSQL(), Log: log, lists: make(chan struct{}, (readers+1)/2), Health: h}
}

// Connect opens both pools and brings the schema up to date.
func (s *Database) Connect(ctx context.Context, url string, readers, writers int) (err error) {
	if s.WritePool, err = s.conns.newPool(ctx, url, int32(writers)); err != nil {
		return err
	}
	warning, err := CheckServer(ctx, s.WritePool)
	if err != nil {
		return err
	}
	if warning != "" {
		s.Log.WarnContext(ctx, warning)
	}
	if err := checkNeeds(ctx, s.WritePool); err != nil {
		return err
	}
	if err := Migrate(ctx, s.WritePool, migrations, "migrations", goose.DefaultTablename); err != nil {
		return err
	}
	s.ReadPool, err = s.conns.resized(ctx, s.WritePool, int32(readers))
	return err
}

// ConnectAsIs is Connect for who migrates nothing. The error wraps ErrNotMigrated if the schema is older than that of
// this release, or there is none.
func (s *Database) ConnectAsIs(ctx context.Context, url string, readers, writers int) (err error) {
	if s.ReadPool, err = s.conns.newPool(ctx, url, int32(readers)); err != nil {
		return err
	}
	if _, err := CheckServer(ctx, s.ReadPool); err != nil {
		return err
	}
	if err := checkNeeds(ctx, s.ReadPool); err != nil {
		return err
	}
	if err := checkMigrated(ctx, s.ReadPool); err != nil {
		return err
	}
	s.WritePool, err = s.conns.resized(ctx, s.ReadPool, int32(writers))
	return err
}

// Ready says whether a call may go on, before it waits for a connection.
func (s *Database) Ready(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.Closed.Load() {
		return ErrClosed
	}
	if s.Health.elsewhere.Load() {
		return s.Tables()
	}
	return nil
}

// Read runs f, which asks the database once or twice, within the limit of a call, and again
// when the connection turned out to be dead: f must set all that it returns anew.
func (s *Database) Read(ctx context.Context, f func(ctx context.Context, q Querier) error) error {
	if err := s.Ready(ctx); err != nil {
		return err
	}
	within, cancel := Limited(ctx)
	defer cancel()
	return readError(ctx, s.RetryRead(within, func() error { return f(within, s.ReadPool) }))
}

// ReadMany is reading for what looks at many rows. However much is asked, it leaves half of the
// connections to look-ups: visitors never wait for a list.
func (s *Database) ReadMany(ctx context.Context, f func(ctx context.Context, q Querier) error) error {
	select {
	case s.lists <- struct{}{}:
		defer func() { <-s.lists }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.Read(ctx, f)
}

const (
	// rereads is how many connections that die under it a read is sent over: few, because it
	// may be what kills them.
	rereads = 4
	// A server or pooler that starts again refuses connections for a moment; it is dialled
	// until the call is over, each time after twice the pause, so that a crowd does not
	// keep it from starting.
	firstPause, longestPause = 10 * time.Millisecond, 250 * time.Millisecond
)

// RetryRead calls f again, on a fresh connection, while the one that it had turned out to be dead or
// there was none to be had.
func (s *Database) RetryRead(ctx context.Context, f func() error) (err error) {
	died, pause := 0, time.Duration(0)
	for {
		if err = f(); err == nil || ctx.Err() != nil || !isLost(err) {
			return err
		}
		if _, connecting := errors.AsType[*pgconn.ConnectError](err); !connecting {
			s.conns.doubt() // of the others that were idle, too
			if died++; died == rereads {
				return err
			}
			if died == 1 {
				continue
			}
		}
		pause = min(max(2*pause, firstPause), longestPause)
		if !background.Sleep(ctx, pause) {
			return err
		}
	}
}

// Write runs f, which changes the database by one statement, within the limit of a
// call, and again when that met another one so that the server undid it.
func (s *Database) Write(ctx context.Context, f func(ctx context.Context, q Querier) error) error {
	return s.WriteWithin(ctx, callLimit, func(ctx context.Context) error {
		return Retry(ctx, func() error { return f(ctx, s.WritePool) })
	})
}

// WriteWithin runs f, which changes the database, within a limit of its own, and gives its error the
// sentinel.
func (s *Database) WriteWithin(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	if err := s.Ready(ctx); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f(within)
	s.ResetIfReadOnly(err)
	return WriteError(ctx, err)
}

// repeats is how often a statement that met another one is sent.
const repeats = 5

// Retry calls f again while the server undid it because of others.
func Retry(ctx context.Context, f func() error) (err error) {
	for range repeats {
		if err = f(); !IsRepeatable(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// ResetIfReadOnly drops the connections to a server that takes no writes any more: it was a
// primary, and the next connection finds the one that is.
func (s *Database) ResetIfReadOnly(err error) {
	if StateOf(err) == stateReadOnly {
		s.WritePool.Reset()
		s.ReadPool.Reset()
	}
}

// ClosePools waits for calls under way and closes the connections.
func (s *Database) ClosePools() {
	for _, pool := range []*pgxpool.Pool{s.ReadPool, s.WritePool} {
		if pool != nil {
			pool.Close()
		}
	}
}

// Transact runs f in a transaction, within the limit of a call, and again when the
// server undid it because of others: f must set all that it returns anew. An error of f
// undoes everything.
func (s *Database) Transact(ctx context.Context, f func(ctx context.Context, t pgx.Tx) error) error {
	return s.transactWithin(ctx, callLimit, f)
}

// TransactMany is Transact for a batch of statements, within the limit of a batch.
func (s *Database) TransactMany(ctx context.Context, f func(ctx context.Context, t pgx.Tx) error) error {
	return s.transactWithin(ctx, StatementLimit, f)
}

func (s *Database) transactWithin(ctx context.Context, limit time.Duration, f func(ctx context.Context, t pgx.Tx) error) error {
	return s.WriteWithin(ctx, limit, func(ctx context.Context) error {
		return Retry(ctx, func() error {
			return pgx.BeginFunc(ctx, s.WritePool, func(t pgx.Tx) error { return f(ctx, t) })
		})
	})
}
