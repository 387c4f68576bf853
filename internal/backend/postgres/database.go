package postgres

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"

	"curt/internal/backend/coldsql"
)

// database is what links and accounts have in common: connections with limits, and what is known
// of their health.
type database struct {
	dialect *coldsql.Dialect
	log     *slog.Logger

	conns liveness // of both pools
	read  *pgxpool.Pool
	write *pgxpool.Pool
	lists chan struct{} // a place for each read of many rows under way

	health *health
	closed atomic.Bool
}

// newDatabase returns one that is not connected yet.
func newDatabase(h *health, readers int, log *slog.Logger) *database {
	return &database{dialect: coldsql.PostgreSQL(), log: log, lists: make(chan struct{}, (readers+1)/2), health: h}
}

// connect opens both pools and brings the schema up to date.
func (s *database) connect(ctx context.Context, url string, readers, writers int) (err error) {
	if s.write, err = s.conns.newPool(ctx, url, int32(writers)); err != nil {
		return err
	}
	warning, err := fit(ctx, s.write)
	if err != nil {
		return err
	}
	if warning != "" {
		s.log.WarnContext(ctx, warning)
	}
	if err := migrate(ctx, s.write, migrationFiles, "migrations", goose.DefaultTablename); err != nil {
		return err
	}
	s.read, err = s.conns.resized(ctx, s.write, int32(readers))
	return err
}

// ready says whether a call may go on, before it waits for a connection.
func (s *database) ready(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.closed.Load() {
		return errClosed
	}
	if s.health.elsewhere.Load() {
		return s.Tables()
	}
	return nil
}

// reading runs f, which asks the database once or twice, within the limit of a call, and again
// when the connection turned out to be dead: f must set all that it returns anew.
func (s *database) reading(ctx context.Context, f func(ctx context.Context, q querier) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	within, cancel := limited(ctx)
	defer cancel()
	return readError(ctx, s.reread(within, func() error { return f(within, s.read) }))
}

// readingMany is reading for what looks at many rows. However much is asked, it leaves half of the
// connections to look-ups: visitors never wait for a list.
func (s *database) readingMany(ctx context.Context, f func(ctx context.Context, q querier) error) error {
	select {
	case s.lists <- struct{}{}:
		defer func() { <-s.lists }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.reading(ctx, f)
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

// reread calls f again, on a fresh connection, while the one that it had turned out to be dead or
// there was none to be had.
func (s *database) reread(ctx context.Context, f func() error) (err error) {
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
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// writing runs f, which changes the database by one statement, within the limit of a
// call, and again when that met another one so that the server undid it.
func (s *database) writing(ctx context.Context, f func(ctx context.Context, q querier) error) error {
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
func (s *database) heard(err error) {
	if stateOf(err) == stateReadOnly {
		s.write.Reset()
		s.read.Reset()
	}
}

func (s *database) closePools() {
	for _, pool := range []*pgxpool.Pool{s.read, s.write} {
		if pool != nil {
			pool.Close()
		}
	}
}
