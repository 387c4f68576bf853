// Package limitrows keeps rate limits and counts of created links in the database of accounts, for
// servers without Redis: beside the links in curt.db, or in PostgreSQL.
package limitrows

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"
	"time"

	"curt/internal/backend/coldsql"
	"curt/internal/ratelimit"
)

const (
	// lateCommits is how much longer than the last read changes are read: a transaction has the time
	// of its beginning.
	lateCommits = 5 * time.Second
	// mostLevels bounds the buckets of one read.
	mostLevels = 200_000
	// sweepEvery is how often rows are removed that say nothing, and how long they stay.
	sweepEvery = time.Minute

	sqlNow    = `SELECT {now}`
	sqlCharge = `INSERT INTO limits AS old (kind, bucket, full_at, size, changed) VALUES ($1, $2, {now} + $3, $4, {now})
	ON CONFLICT (kind, bucket) DO UPDATE SET size = excluded.size, changed = excluded.changed,
		full_at = {least}({greatest}(old.full_at, excluded.changed), excluded.changed + 2 * excluded.size) + excluded.full_at - excluded.changed`
	sqlLevels = `SELECT bucket, {least}(full_at - $3, 2 * size) FROM limits WHERE kind = $1 AND changed >= $2 AND full_at > $3 LIMIT $4`
	sqlSweep  = `DELETE FROM limits WHERE full_at < {now} - $1`

	sqlCount = `INSERT INTO creator_minutes AS old (creator, minute, links) VALUES ($1, $2, $3)
	ON CONFLICT (creator, minute) DO UPDATE SET links = old.links + excluded.links`
	sqlSums       = `SELECT minute, links FROM creator_minutes WHERE creator = $1 AND minute > $2`
	sqlSweepCount = `DELETE FROM creator_minutes WHERE minute <= $1`
)

// Statements are those of requests, by name, for tests of their plans.
func Statements(d *coldsql.Dialect) map[string]string {
	return map[string]string{"levels": d.SQL(sqlLevels), "sums": d.SQL(sqlSums)}
}

// Ledger is a ratelimit.Ledger in a table, for buckets of one kind. It also returns the levels of
// buckets that other servers have charged since its last call, and of all in the first. A ledger that
// is not shared returns levels in its first call alone.
type Ledger struct {
	db     coldsql.DB
	kind   string
	shared bool

	mu    sync.Mutex
	since int64     // guarded by mu: from which change on levels are read, by the database's clock
	swept time.Time // guarded by mu
}

var _ ratelimit.Ledger = (*Ledger)(nil)

// NewLedger returns the ledger of buckets of one kind, which other processes may share.
func NewLedger(db coldsql.DB, kind string, shared bool) *Ledger {
	return &Ledger{db: db, kind: kind, shared: shared}
}

// Add implements ratelimit.Ledger.
func (l *Ledger) Add(ctx context.Context, spent []ratelimit.Spent) (levels []ratelimit.Level, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.add(ctx, spent); err != nil {
		return nil, fmt.Errorf("store rate limits: %w", err)
	}
	if !l.shared && l.since != 0 {
		return nil, nil // its only server knows
	}
	var now int64
	err = l.db.ReadMany(ctx, func(t coldsql.Tx) error {
		levels, now = nil, 0
		if err := t.Each(sqlNow, func(row []driver.Value) error { now = number(row[0]); return nil }); err != nil {
			return err
		}
		// A clock that was set back wrote its changes at an earlier time.
		since := min(l.since, now-lateCommits.Milliseconds())
		return t.Each(sqlLevels, func(row []driver.Value) error {
			levels = append(levels, ratelimit.Level{Bucket: uint64(number(row[0])), Full: time.Duration(number(row[1])) * time.Millisecond})
			return nil
		}, l.kind, since, now, int64(mostLevels))
	})
	if err != nil {
		return nil, fmt.Errorf("read rate limits: %w", err)
	}
	l.since = now - lateCommits.Milliseconds()
	return levels, nil
}

// add writes what was spent, and sometimes removes what is full. All servers write in the order of
// buckets, so that none waits for another that waits for it.
func (l *Ledger) add(ctx context.Context, spent []ratelimit.Spent) error {
	if len(spent) == 0 {
		return nil
	}
	rows := make([][]any, len(spent))
	for i, s := range slices.SortedFunc(slices.Values(spent), func(a, b ratelimit.Spent) int { return cmp.Compare(a.Bucket, b.Bucket) }) {
		rows[i] = []any{l.kind, int64(s.Bucket), millis(s.Add), millis(s.Size)}
	}
	if err := l.db.Write(ctx, len(rows), func(t coldsql.Tx) error { return t.ExecMany(sqlCharge, rows) }); err != nil {
		return err
	}
	return sweep(ctx, l.db, &l.swept, sqlSweep, sweepEvery.Milliseconds())
}

// Tally is a ratelimit.Tally in a table.
type Tally struct {
	db coldsql.DB

	mu    sync.Mutex
	swept time.Time // guarded by mu
}

var _ ratelimit.Tally = (*Tally)(nil)

// NewTally returns the tally of a database.
func NewTally(db coldsql.DB) *Tally { return &Tally{db: db} }

// Count implements ratelimit.Tally.
func (c *Tally) Count(ctx context.Context, add []ratelimit.Count, since int64) (sums []ratelimit.Count, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sorted := slices.SortedFunc(slices.Values(add), func(a, b ratelimit.Count) int {
		return cmp.Or(cmp.Compare(a.Creator, b.Creator), cmp.Compare(a.Minute, b.Minute))
	})
	rows := make([][]any, len(sorted))
	for i, a := range sorted {
		rows[i] = []any{int64(a.Creator), a.Minute, int64(a.Links)}
	}
	err = c.db.Write(ctx, len(rows), func(t coldsql.Tx) error { return t.ExecMany(sqlCount, rows) })
	if err == nil {
		err = c.db.ReadMany(ctx, func(t coldsql.Tx) (err error) {
			sums, err = read(t, sorted, since)
			return err
		})
	}
	if err == nil {
		err = sweep(ctx, c.db, &c.swept, sqlSweepCount, since)
	}
	if err != nil {
		return nil, fmt.Errorf("count created links: %w", err)
	}
	return sums, nil
}

// read returns the sums of the creators of sorted counts.
func read(t coldsql.Tx, sorted []ratelimit.Count, since int64) (sums []ratelimit.Count, err error) {
	for i, a := range sorted {
		if i > 0 && sorted[i-1].Creator == a.Creator {
			continue
		}
		err = t.Each(sqlSums, func(row []driver.Value) error {
			sums = append(sums, ratelimit.Count{Creator: a.Creator, Minute: number(row[0]), Links: int(number(row[1]))})
			return nil
		}, int64(a.Creator), since)
		if err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// sweep removes rows once in a while.
func sweep(ctx context.Context, db coldsql.DB, last *time.Time, statement string, arg int64) error {
	now := time.Now()
	if now.Sub(*last) < sweepEvery {
		return nil
	}
	*last = now
	return db.Change(ctx, 1, func(t coldsql.Tx) error {
		_, err := t.Exec(statement, arg)
		return err
	})
}

func number(v driver.Value) int64 {
	n, _ := v.(int64)
	return n
}

// millis rounds up.
func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
