// Package replicas asks standbys of PostgreSQL in place of the primary while they are known to be
// behind by no more than a bound. Read replicas.go first; probe.go is for before a start.
package replicas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"curt/internal/backend/postgres/linkrow"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/background"
	"curt/internal/link"
)

// Replicas are standbys that are asked in place of the primary, as long as they are known
// to be behind by no more than a bound.
//
// How far one is behind is not asked of any clock: each turn of watch notes where the
// primary's log ends and when that was asked, and a standby that has replayed up to there
// holds everything that was acknowledged before. Who follows another history than the
// primary, as after a fail-over that left it out, is not asked, nor is who follows another primary.
type Replicas struct {
	all   []*replica
	bound time.Duration
	start time.Time
	log   *slog.Logger
	marks []mark        // owned by Turn
	turn  atomic.Uint64 // of look-ups, so that all replicas are asked alike

	answered  atomic.Uint64 // look-ups that a replica answered
	confirmed atomic.Uint64 // look-ups that the primary was asked after a replica knew of no link
	failed    atomic.Uint64 // look-ups that the primary was asked after a replica gave no answer
}

// replica is one standby.
type replica struct {
	pool    *pgxpool.Pool
	name    string
	covered atomic.Int64 // what it surely holds, as time after start; 0 = nothing
	behind  bool         // as it was told last; owned by watch
	seen    bool         // owned by watch
}

// Stats are counters since the start.
type Stats struct {
	Usable    int    // replicas that may be asked now
	Answered  uint64 // look-ups that a replica answered
	Confirmed uint64 // look-ups of codes that a replica did not know, which the primary was asked
	Failed    uint64 // look-ups that a replica did not answer in time, which the primary was asked

	// Lags are how old the primary's log was at the least that each replica holds, in the order
	// of LinksConfig.Replicas; of one that never told, the time since the store was opened.
	Lags []time.Duration
}

// errNoStandby is said of a server that takes writes, which is never asked in place of itself.
var errNoStandby = errors.New("not a standby; expected one of the database in CURT_LINKS")

// mark is where the primary's log ended.
type mark struct {
	at       time.Duration // after start; before it was asked
	end      int64
	timeline int32
	cluster  int64 // see clusterOf
}

// New returns the standbys of URLs, which are connected when they are used.
func New(urls []string, bound time.Duration, size int32, log *slog.Logger) (*Replicas, error) {
	r := &Replicas{bound: bound, start: time.Now(), log: log}
	for _, url := range urls {
		pool, err := pgdb.NewLazyPool(url, size)
		if err != nil {
			r.Close()
			return nil, fmt.Errorf("replica: %w", err)
		}
		r.all = append(r.all, &replica{pool: pool, name: pool.Config().ConnConfig.Host, behind: true})
	}
	return r, nil
}

// Close closes the connections; nil has none.
func (r *Replicas) Close() {
	if r == nil {
		return
	}
	for _, one := range r.all {
		one.pool.Close()
	}
}

// usable reports whether a replica is behind by no more than the bound.
func (r *Replicas) usable(one *replica) bool {
	return one.covered.Load() > 0 && r.lag(one) <= r.bound
}

// lag is how far behind a replica may be by now.
func (r *Replicas) lag(one *replica) time.Duration {
	return time.Since(r.start) - time.Duration(one.covered.Load())
}

// next returns a replica that may be asked, or nil.
func (r *Replicas) next() *replica {
	n := uint64(len(r.all))
	if n == 0 {
		return nil
	}
	first := r.turn.Add(1)
	for i := range n {
		if one := r.all[(first+i)%n]; r.usable(one) {
			return one
		}
	}
	return nil
}

// Lookup asks a replica. answered is false when the primary has to be asked: there is no
// replica to ask, it failed, or it knows of no such link, which may be new.
func (r *Replicas) Lookup(ctx context.Context, args ...any) (t link.Target, answered bool) {
	one := r.next()
	if one == nil {
		return t, false
	}
	within, cancel := context.WithTimeout(ctx, pgdb.ReplicaLimit)
	defer cancel()
	t, needs, found, err := linkrow.Target(within, one.pool, args...)
	switch {
	case err != nil && ctx.Err() != nil: // the caller left
	case err != nil:
		one.covered.Store(0) // until it has answered again
		r.failed.Add(1)
	case !found, t.Limited, needs != 0: // what a link with a bound of clicks has left is the primary's word, too
		r.confirmed.Add(1)
	default:
		r.answered.Add(1)
		return t, true
	}
	return link.Target{}, false
}

// Stats tells how look-ups are shared with replicas.
func (r *Replicas) Stats() Stats {
	s := Stats{Answered: r.answered.Load(), Confirmed: r.confirmed.Load(), Failed: r.failed.Load()}
	for _, one := range r.all {
		if r.usable(one) {
			s.Usable++
		}
		s.Lags = append(s.Lags, r.lag(one))
	}
	return s
}

const (
	replicaEvery = 500 * time.Millisecond
)

// Watch finds out again and again how far each replica is, until ctx ends.
func (r *Replicas) Watch(ctx context.Context, primary pgdb.Querier) {
	if len(r.all) == 0 {
		return
	}
	for range background.Every(ctx, replicaEvery) {
		_ = r.Turn(ctx, primary) // the next one asks the primary anew
	}
}

const (
	// marksKept is how many ends of the log are remembered: more than fit in a bound.
	marksKept = 256
)

// Turn asks once where the primary's log ends, and how far each replica is. One goroutine at a time
// may call it. An error is the primary's: replicas are asked all the same.
func (r *Replicas) Turn(ctx context.Context, primary pgdb.Querier) error {
	m, err := r.mark(ctx, primary)
	if err == nil {
		r.marks = append(r.marks, m)
		r.marks = r.marks[max(0, len(r.marks)-marksKept):]
	}
	r.look(ctx, r.marks)
	return err
}

// The number of the history is in the name of the file that is being written; a standby
// knows the one that it replays once it has written a page of it back.
const sqlLogEnd = `SELECT (pg_current_wal_lsn() - '0/0')::bigint, ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
	WHERE NOT pg_is_in_recovery()`

// mark asks where the log of the primary ends.
func (r *Replicas) mark(ctx context.Context, primary pgdb.Querier) (m mark, err error) {
	ctx, cancel := context.WithTimeout(ctx, replicaEvery)
	defer cancel()
	m.at = time.Since(r.start)
	if err = primary.QueryRow(ctx, sqlLogEnd).Scan(&m.end, &m.timeline); err != nil {
		return m, err
	}
	m.cluster, err = clusterOf(ctx, primary)
	return m, err
}

// look asks every replica at once what it has replayed.
func (r *Replicas) look(ctx context.Context, marks []mark) {
	within, cancel := context.WithTimeout(ctx, replicaEvery)
	defer cancel()
	var asked sync.WaitGroup
	for _, one := range r.all {
		asked.Go(func() { r.see(within, one, marks) })
	}
	asked.Wait()
}

// see notes what one replica surely holds.
func (r *Replicas) see(ctx context.Context, one *replica, marks []mark) {
	end, timeline, err := replayed(ctx, one.pool)
	if err == nil && len(marks) > 0 {
		err = follows(ctx, one.pool, marks[len(marks)-1].cluster)
	}
	switch {
	case err == nil:
		one.covered.Store(int64(covers(marks, end, timeline)))
	case errors.Is(err, errForeign):
		one.covered.Store(0)
	}
	usable := r.usable(one)
	if usable == one.behind || err != nil && !one.seen {
		one.behind, one.seen = !usable, true
		if usable {
			r.log.InfoContext(ctx, "replica in use for look-ups", slog.String("host", one.name))
		} else {
			attrs := []slog.Attr{slog.String("host", one.name), slog.String("behind", r.lag(one).Round(time.Millisecond).String())}
			if err != nil {
				attrs = append(attrs, slog.Any("err", err))
			}
			r.log.LogAttrs(ctx, slog.LevelWarn, "replica lagging or unavailable, using the primary", attrs...)
		}
	}
}

const sqlReplayed = `SELECT (pg_last_wal_replay_lsn() - '0/0')::bigint,
	greatest((SELECT timeline_id FROM pg_control_checkpoint()), (SELECT min_recovery_end_timeline FROM pg_control_recovery()))
	WHERE pg_is_in_recovery()`

// replayed asks a standby up to where it has replayed the log, and on which history. Of a
// primary it says that it is no standby.
func replayed(ctx context.Context, standby pgdb.Querier) (end int64, timeline int32, err error) {
	err = standby.QueryRow(ctx, sqlReplayed).Scan(&end, &timeline)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNoStandby
	}
	return end, timeline, err
}

// covers returns when the newest mark was taken that lies within what was replayed, on the
// history of the newest; 0 = none does.
func covers(marks []mark, end int64, timeline int32) time.Duration {
	if len(marks) == 0 || marks[len(marks)-1].timeline != timeline {
		return 0
	}
	for i := len(marks) - 1; i >= 0 && marks[i].timeline == timeline; i-- {
		if marks[i].end <= end {
			return marks[i].at
		}
	}
	return 0
}
