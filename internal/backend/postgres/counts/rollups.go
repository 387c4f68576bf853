// Package counts keeps roll-ups of the clicks of several servers in PostgreSQL. Read rollups.go
// first, then apply.go for a batch's way into the database.
package counts

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

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/background"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

//go:embed migrations/clicks/*.sql
var migrations embed.FS

// Config says which database is opened, and by whom.
type Config struct {
	URL string // as LinksConfig.URL; it may be the same database

	// Instance names this writer among all, for good: its place in its own click log is kept
	// under this name. Two at once with one name fail with rollup.ErrGeneration.
	Instance string

	Lazy bool // OpenRollups does not connect: Load does

	Conns int          // connections; default 4
	Log   *slog.Logger // default none
}

// Rollups is a database of counted clicks that several servers write to, each with the
// place of its own click log. It implements rollup.Store for one of them: generations
// are its own, counts are those of all.
//
// A database that is away keeps nobody from starting: Load and Run connect again, and until
// then everything else fails. Run must be running for long use: Complete lives on it.
type Rollups struct {
	config Config

	opening sync.Mutex // held while pool is made
	pool    atomic.Pointer[pgxpool.Pool]
	closed  atomic.Bool

	health atomic.Pointer[error] // why Run could not ask last; nil = it could
	others atomic.Int64          // Unix milliseconds: up to when the other writers have counted; 0 = not known
}

var _ rollup.Store = (*Rollups)(nil)

// errNoRollups is the answer until the database was reached once.
var errNoRollups = errors.New("statistics database not reached yet")

// errClosed is the answer after Close.
var errClosed = errors.New("statistics database is closed")

// Open connects and brings the schema up to date. What asking again may help with is
// logged, and tried again by Load and Run; any other error is ErrUnfit.
func Open(ctx context.Context, config Config) (*Rollups, error) {
	if config.Conns == 0 {
		config.Conns = 4
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	s := &Rollups{config: config}
	if config.Lazy {
		s.health.Store(&errNoRollups)
		return s, nil
	}
	_, err := s.connect(ctx)
	if errors.Is(err, pgdb.ErrUnfit) {
		return nil, fmt.Errorf("open roll-ups: %w", err)
	}
	if err != nil {
		config.Log.WarnContext(ctx, "statistics database unavailable, clicks wait in the click log", slog.Any("err", err))
	}
	return s, nil
}

const sqlAddWriter = `INSERT INTO click_writers (instance, generation, segment, place, complete, seen)
	VALUES ($1, 0, 0, 0, 0, now()) ON CONFLICT (instance) DO NOTHING`

// connect returns the pool, which it makes first where there is none yet.
func (s *Rollups) connect(ctx context.Context) (*pgxpool.Pool, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if p := s.pool.Load(); p != nil || s.closed.Load() {
		return s.connected()
	}
	pool, err := pgdb.NewPool(ctx, s.config.URL, int32(s.config.Conns))
	if err != nil {
		return nil, err
	}
	if _, err = pgdb.CheckServer(ctx, pool); err == nil {
		err = pgdb.Migrate(ctx, pool, migrations, "migrations/clicks", "goose_clicks_version")
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

const (
	// othersSilent is after which silence a writer is believed to be gone for good, so that
	// Complete waits for it no more. Time in which nobody at all wrote does not count, as that
	// in which the database was away: it is taken for that from allSilent on.
	othersSilent = 10 * time.Minute
	allSilent    = time.Minute
	// Before the first one writes again, those who were not gone when it began to be silent are
	// taken to have written now. Whoever writes just then is locked, and needs no excuse.
	sqlExcuse = `UPDATE click_writers SET seen = now() WHERE instance IN (
		SELECT w.instance FROM click_writers w, (SELECT max(seen) AS latest FROM click_writers) AS all_of_them
		WHERE latest < now() - $1::interval AND w.seen > latest - $2::interval FOR UPDATE OF w SKIP LOCKED)`
)

// excuse is to be called before anything is written by which others look gone.
func excuse(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, sqlExcuse, allSilent, othersSilent); err != nil {
		return fmt.Errorf("forgive a writer's outage: %w", err)
	}
	return nil
}

// connected returns the pool if there is one.
func (s *Rollups) connected() (*pgxpool.Pool, error) {
	if s.closed.Load() {
		return nil, errClosed
	}
	if p := s.pool.Load(); p != nil {
		return p, nil
	}
	return nil, errNoRollups
}

const (
	// A batch waits for those of other writers that count the same links, and may be large.
	applyLimit = time.Minute
)

// Load implements rollup.Store.
func (s *Rollups) Load(ctx context.Context) (state rollup.State, err error) {
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	pool, err := s.connect(ctx)
	if err == nil {
		state, err = s.state(ctx, pool)
	}
	if err != nil {
		return rollup.State{}, fmt.Errorf("load fold position: %w", causeOf(ctx, err))
	}
	return state, nil
}

const sqlWriter = `SELECT generation, segment, place FROM click_writers WHERE instance = $1`

func (s *Rollups) state(ctx context.Context, q pgdb.Querier) (rollup.State, error) {
	var generation, segment, place int64
	err := q.QueryRow(ctx, sqlWriter, s.config.Instance).Scan(&generation, &segment, &place)
	return stateAt(generation, segment, place), err
}

func stateAt(generation, segment, place int64) rollup.State {
	return rollup.State{Generation: uint64(generation), Position: clicklog.Position{Segment: uint64(segment), Offset: place}}
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
	until := link.TimeOf(s.others.Load())
	if own.Before(until) {
		return own
	}
	return until
}

const (
	// othersEvery is how often Run asks what the others have counted.
	othersEvery = time.Second
)

// Run keeps Complete up to date until ctx ends; then it returns nil.
func (s *Rollups) Run(ctx context.Context) error {
	for range background.Every(ctx, othersEvery) {
		s.Listen(ctx)
	}
	return nil
}

// Healthy returns nil while Run can ask; else why not. It asks nobody.
func (s *Rollups) Healthy() error {
	if err := s.health.Load(); err != nil {
		return fmt.Errorf("statistics database: %w: %w", link.ErrUnavailable, *err)
	}
	return nil
}

// Listen asks what the others have counted. While that cannot be asked, what is known stays
// true: nobody counts less later.
func (s *Rollups) Listen(ctx context.Context) {
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

const sqlOthers = `SELECT count(*), coalesce(min(complete), 0) FROM click_writers WHERE instance <> $1 AND seen > now() - $2::interval`

func (s *Rollups) askOthers(ctx context.Context) (others, complete int64, err error) {
	ctx, cancel := pgdb.Limited(ctx)
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
	within, cancel := context.WithTimeout(ctx, pgdb.StatementLimit)
	defer cancel()
	err = pgx.BeginTxFunc(within, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(t pgx.Tx) error { return f(within, t) })
	if err != nil {
		return causeOf(ctx, err)
	}
	return nil
}

const (
	totalColumns   = `clicks, humans, previews, fallbacks, refused, first_seen, last_clicked`
	sqlClickTotals = `SELECT d.turn, t.clicks, t.humans, t.previews, t.fallbacks, t.refused, t.first_seen, t.last_clicked
	FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS d (domain, code, turn)
	JOIN click_totals AS t ON t.domain = d.domain AND t.code = d.code`
	sqlClickTotal = `SELECT n, ` + totalColumns + ` FROM click_totals WHERE domain = $1 AND code = $2`
	sqlClicked    = `SELECT n, domain, code FROM click_totals WHERE n > $1 ORDER BY n LIMIT $2`
	// A range is a day of one link; LATERAL asks the index for each.
	sqlRollups = `SELECT r.id, r.clicks, r.humans, r.previews, r.fallbacks, r.refused, r.minutes, NULL::bytea, `
	sqlRanges  = ` FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS asked (first, last, turn)
	CROSS JOIN LATERAL (SELECT * FROM click_rollups WHERE id BETWEEN asked.first AND asked.last ORDER BY id) AS r
	ORDER BY asked.turn, r.id`
	sqlRollupRows     = sqlRollups + `NULL::bytea` + sqlRanges
	sqlRollupVisitors = sqlRollups + `r.visitors` + sqlRanges
	sqlRollupSums     = `SELECT r.id, r.dimensions` + sqlRanges
	// The rows of a batch's links are locked in the order of the batch, which is the same for
	// all writers. Links that are new are an exception: two batches that count them first may
	// meet crosswise, and one of them is undone and comes again.
	sqlLockTotals = `SELECT t.n, d.turn FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS d (domain, code, turn)
	JOIN click_totals AS t ON t.domain = d.domain AND t.code = d.code ORDER BY d.turn FOR UPDATE OF t`
	// The rows of roll-ups are read under the locks of their links, so that they are what
	// sqlPutRollups replaces.
	sqlAddTotals = `WITH added AS (
	UPDATE click_totals AS t SET clicks = t.clicks + d.clicks, humans = t.humans + d.humans, previews = t.previews + d.previews,
		fallbacks = t.fallbacks + d.fallbacks, refused = t.refused + d.refused,
		first_seen = least(t.first_seen, d.first_seen), last_clicked = greatest(t.last_clicked, d.last_clicked)
	FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
		AS d (n, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked) WHERE t.n = d.n
)
SELECT ` + rollupColumns + ` FROM click_rollups WHERE id = ANY($9::bigint[])`
	rollupColumns = `id, clicks, humans, previews, fallbacks, refused, minutes, dimensions, visitors`
)

// Statements are those of roll-ups, by name, for whom their plans interest.
func Statements() map[string]string {
	return map[string]string{
		"lock totals": sqlLockTotals, "add totals": sqlAddTotals, "click totals": sqlClickTotals, "click total": sqlClickTotal,
		"clicked": sqlClicked, "rollups": sqlRollupRows, "visitors": sqlRollupVisitors, "sums": sqlRollupSums, "writer": sqlWriter,
	}
}
