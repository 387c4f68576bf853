package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"curt/internal/clicks"
	"curt/internal/link"
)

//go:embed migrations/clicks/*.sql
var rollupsMigrations embed.FS

// RollupsConfig says which database is opened, and by whom.
type RollupsConfig struct {
	URL string // as LinksConfig.URL; it may be the same database

	// Instance names this writer among all, for good: its place in its own click log is kept
	// under this name. Two at once with one name fail with clicks.ErrGeneration.
	Instance string

	Conns int          // connections; default 4
	Log   *slog.Logger // default none
}

// Rollups is a database of counted clicks that several servers write to, each with the
// place of its own click log. It implements clicks.RollupStore for one of them: generations
// are its own, counts are those of all.
//
// A database that is away keeps nobody from starting: Load and Run connect again, and until
// then everything else fails. Run must be running for long use: Complete lives on it.
type Rollups struct {
	config RollupsConfig

	opening sync.Mutex // held while pool is made
	pool    atomic.Pointer[pgxpool.Pool]
	closed  atomic.Bool

	health atomic.Pointer[error] // why Run could not ask last; nil = it could
	others atomic.Int64          // Unix milliseconds: up to when the other writers have counted; 0 = not known
}

var _ clicks.RollupStore = (*Rollups)(nil)

const (
	// othersEvery is how often Run asks what the others have counted.
	othersEvery = time.Second
	// othersSilent is after which silence a writer is believed to be gone for good, so that
	// Complete waits for it no more. Time in which nobody at all wrote does not count, as that
	// in which the database was away: it is taken for that from allSilent on.
	othersSilent = 10 * time.Minute
	allSilent    = time.Minute

	// A batch waits for those of other writers that count the same links, and may be large.
	applyLimit   = time.Minute
	batchWaiting = "20s"

	sqlAddWriter = `INSERT INTO click_writers (instance, generation, segment, place, complete, seen)
	VALUES ($1, 0, 0, 0, 0, now()) ON CONFLICT (instance) DO NOTHING`
	sqlWriter = `SELECT generation, segment, place FROM click_writers WHERE instance = $1`
	// The limits hold from the next statement on, and end with the transaction.
	sqlLockWriter = `SELECT generation, segment, place, set_config('lock_timeout', $2, true), set_config('statement_timeout', $2, true)
	FROM click_writers WHERE instance = $1 FOR UPDATE`
	sqlMoveWriter = `UPDATE click_writers SET generation = $2, segment = $3, place = $4, complete = greatest(complete, $5), seen = now()
	WHERE instance = $1`
	// Before the first one writes again, those who were not gone when it began to be silent are
	// taken to have written now. Whoever writes just then is locked, and needs no excuse.
	sqlExcuse = `UPDATE click_writers SET seen = now() WHERE instance IN (
		SELECT w.instance FROM click_writers w, (SELECT max(seen) AS latest FROM click_writers) AS all_of_them
		WHERE latest < now() - $1::interval AND w.seen > latest - $2::interval FOR UPDATE OF w SKIP LOCKED)`
	sqlOthers = `SELECT count(*), coalesce(min(complete), 0) FROM click_writers WHERE instance <> $1 AND seen > now() - $2::interval`
)

// errNoRollups is the answer until the database was reached once.
var errNoRollups = errors.New("the database of statistics was not reached yet")

// errRollupsClosed is the answer after Close.
var errRollupsClosed = errors.New("the database of statistics is closed")

// OpenRollups connects and brings the schema up to date. What asking again may help with is
// logged, and tried again by Load and Run; any other error is ErrUnfit.
func OpenRollups(ctx context.Context, config RollupsConfig) (*Rollups, error) {
	if config.Conns == 0 {
		config.Conns = 4
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	s := &Rollups{config: config}
	_, err := s.connect(ctx)
	if errors.Is(err, ErrUnfit) {
		return nil, fmt.Errorf("open roll-ups: %w", err)
	}
	if err != nil {
		config.Log.WarnContext(ctx, "the database of statistics is away; clicks wait in the log", slog.Any("err", err))
	}
	return s, nil
}

// connect returns the pool, which it makes first where there is none yet.
func (s *Rollups) connect(ctx context.Context) (*pgxpool.Pool, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if p := s.pool.Load(); p != nil || s.closed.Load() {
		return s.connected()
	}
	pool, err := newPool(ctx, s.config.URL, int32(s.config.Conns))
	if err != nil {
		return nil, err
	}
	if _, err = fit(ctx, pool); err == nil {
		err = migrate(ctx, pool, rollupsMigrations, "migrations/clicks", "goose_clicks_version")
	}
	if err == nil {
		err = excuse(ctx, pool)
	}
	if err == nil {
		_, err = pool.Exec(ctx, sqlAddWriter, s.config.Instance)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	s.pool.Store(pool)
	return pool, nil
}

// excuse is to be called before anything is written by which others look gone.
func excuse(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, sqlExcuse, allSilent, othersSilent); err != nil {
		return fmt.Errorf("excuse who could not write: %w", err)
	}
	return nil
}

// connected returns the pool if there is one.
func (s *Rollups) connected() (*pgxpool.Pool, error) {
	if s.closed.Load() {
		return nil, errRollupsClosed
	}
	if p := s.pool.Load(); p != nil {
		return p, nil
	}
	return nil, errNoRollups
}

// Load implements clicks.RollupStore.
func (s *Rollups) Load(ctx context.Context) (state clicks.State, err error) {
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	pool, err := s.connect(ctx)
	if err == nil {
		state, err = s.state(ctx, pool)
	}
	if err != nil {
		return clicks.State{}, fmt.Errorf("load fold position: %w", causeOf(ctx, err))
	}
	return state, nil
}

func (s *Rollups) state(ctx context.Context, q querier) (clicks.State, error) {
	var generation, segment, place int64
	err := q.QueryRow(ctx, sqlWriter, s.config.Instance).Scan(&generation, &segment, &place)
	return stateAt(generation, segment, place), err
}

func stateAt(generation, segment, place int64) clicks.State {
	return clicks.State{Generation: uint64(generation), Position: clicks.Position{Segment: uint64(segment), Offset: place}}
}

// causeOf tells why a caller left, where it did.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Complete returns up to when every click that any writer kept is counted for good, given
// up to when those of this one are; zero = not known. It asks nobody.
func (s *Rollups) Complete(own time.Time) time.Time {
	until := timeOf(s.others.Load())
	if own.Before(until) {
		return own
	}
	return until
}

// Run keeps Complete up to date until ctx ends; then it returns nil.
func (s *Rollups) Run(ctx context.Context) error {
	turns := time.NewTicker(othersEvery)
	defer turns.Stop()
	for {
		s.listen(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-turns.C:
		}
	}
}

// Healthy returns nil while Run can ask; else why not. It asks nobody.
func (s *Rollups) Healthy() error {
	if err := s.health.Load(); err != nil {
		return fmt.Errorf("the database of statistics: %w: %w", link.ErrUnavailable, *err)
	}
	return nil
}

// listen asks what the others have counted. While that cannot be asked, what is known stays
// true: nobody counts less later.
func (s *Rollups) listen(ctx context.Context) {
	asked := time.Now()
	others, complete, err := s.askOthers(ctx)
	if err != nil {
		if ctx.Err() == nil { // else it is us who leave
			s.health.Store(&err)
		}
		return
	}
	if others == 0 {
		complete = asked.UnixMilli() // who begins later has no earlier clicks
	}
	s.health.Store(nil)
	s.others.Store(complete)
}

func (s *Rollups) askOthers(ctx context.Context) (others, complete int64, err error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	pool, err := s.connected()
	if err != nil {
		return 0, 0, err
	}
	err = pool.QueryRow(ctx, sqlOthers, s.config.Instance, othersSilent).Scan(&others, &complete)
	return others, complete, err
}

// Close closes the connections. A second Close does nothing.
func (s *Rollups) Close() error {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.closed.CompareAndSwap(false, true) {
		if p := s.pool.Load(); p != nil {
			p.Close()
		}
	}
	return nil
}

// view runs f in a transaction that reads one moment.
func (s *Rollups) view(ctx context.Context, f func(ctx context.Context, t pgx.Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	pool, err := s.connected()
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	err = pgx.BeginTxFunc(within, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(t pgx.Tx) error { return f(within, t) })
	if err != nil {
		return causeOf(ctx, err)
	}
	return nil
}
