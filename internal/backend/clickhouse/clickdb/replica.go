package clickdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Replica is what a database says of itself as one of several with the same clicks. Its identity is
// the comment of the table replica, so that an emptied server is another one.
type Replica struct {
	ID      string // "" = the only or the first one, whose consumer group has the plain name
	Filling bool   // it lacks clicks that another one has
	Days    uint64 // that the refill has completed
	// Gap is the last time that Kafka gave up records before they came here; the Unix epoch or earlier = it never did.
	Gap time.Time
}

// first is the identity of the database that was fed before there were several.
const first = "first"

// The states of a refill, as the table replica has them.
const (
	refillDay    = "day"
	refillFilled = "filled"
	refillGap    = "gap"
)

const replicaTable = `CREATE TABLE IF NOT EXISTS replica (at DateTime64(6, 'UTC'), state LowCardinality(String), day DateTime('UTC'))
ENGINE = MergeTree ORDER BY at COMMENT '%s'`

// claim gives an empty database an identity. It takes no lock: of several that do so at once, the
// first one creates the table. The identity comes before the tables of clicks, so that a database
// with clicks and without an identity was fed as the only one.
func (d *DB) claim(ctx context.Context) error {
	id, fed, err := d.identity(ctx)
	if err != nil {
		return err
	}
	if err := d.ordered(id, fed); err != nil || id != "" {
		return err
	}
	if id = rand.Text(); fed {
		id = first
	}
	if err := d.Conn.Exec(ctx, fmt.Sprintf(replicaTable, id)); err != nil {
		return fmt.Errorf("create the identity of the replica: %w", Unavailable(ctx, err))
	}
	if id, fed, err = d.identity(ctx); err != nil { // another one may have been faster
		return err
	}
	return d.ordered(id, fed)
}

// ordered returns an error that wraps ErrUnfit if a database may not have its position: one that was fed
// alone keeps its consumer group, of which there is one.
func (d *DB) ordered(id string, fed bool) error {
	switch {
	case d.Config.Position < 2:
	case id == "" && fed:
		return fmt.Errorf("%w: %s has clicks and was not fed as a replica: name it first in CURT_ANALYTICS, or empty it", ErrUnfit, d.address)
	case id == first:
		return fmt.Errorf("%w: %s was the first of CURT_ANALYTICS: name it first again", ErrUnfit, d.address)
	}
	return nil
}

// Peers are the databases of one setting, which have to be different ones. All methods may be called by many
// goroutines at once.
type Peers struct {
	mu    sync.Mutex
	known map[int]peer // guarded by mu: by position
}

// peer is a database with its identity.
type peer struct{ id, address string }

// meet notes the identity of a database; "" = it has none. The error wraps ErrUnfit if one that is named
// earlier has the same: it has two names, or is a copy.
func (p *Peers) meet(position int, of peer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[int]peer{}
	}
	p.known[position] = of
	for at := 1; at < position; at++ {
		if other := p.known[at]; of.id != "" && other.id == of.id {
			return fmt.Errorf("%w: %s is the same database as %s, or a copy of its files: name each server once in CURT_ANALYTICS", ErrUnfit, of.address, other.address)
		}
	}
	return nil
}

// identity returns the identity, "" if there is none, and whether there are tables of clicks. The error
// wraps ErrUnfit if an earlier one of the peers has the same.
func (d *DB) identity(ctx context.Context) (id string, fed bool, err error) {
	err = d.Conn.QueryRow(ctx, `SELECT anyIf(comment, name = 'replica'), countIf(name = 'clicks') > 0
FROM system.tables WHERE database = currentDatabase() AND name IN ('replica', 'clicks')`).Scan(&id, &fed)
	if err != nil {
		return "", false, fmt.Errorf("read the identity of the replica: %w", Unavailable(ctx, err))
	}
	if d.Config.Peers != nil {
		err = d.Config.Peers.meet(d.Config.Position, peer{id, d.address})
	}
	return id, fed, err
}

// Is returns an error that wraps ErrReplaced unless the database has an identity that was read before.
func (d *DB) Is(ctx context.Context, id string) error {
	ctx, cancel := Bound(ctx)
	defer cancel()
	now, _, err := d.identity(ctx)
	if now == first {
		now = ""
	}
	if err == nil && now != id {
		err = ErrReplaced
	}
	return err
}

// ErrReplaced says that a replica was emptied.
var ErrReplaced = errors.New("the replica of ClickHouse was emptied")

// Replica returns what the database says of itself.
func (d *DB) Replica(ctx context.Context) (r Replica, err error) {
	ctx, cancel := Bound(ctx)
	defer cancel()
	id, _, err := d.identity(ctx)
	if err != nil || id == "" {
		return r, err
	}
	var filled time.Time
	err = d.Conn.QueryRow(ctx, `SELECT countIf(state = {filled:String}) = 0, maxIf(at, state = {filled:String}),
    (SELECT max(at) FROM replica WHERE state = {gap:String}) AS since, uniqExactIf(day, state = {day:String} AND at >= since) FROM replica`,
		clickhouse.Named("filled", refillFilled), clickhouse.Named("day", refillDay), clickhouse.Named("gap", refillGap)).
		Scan(&r.Filling, &filled, &r.Gap, &r.Days)
	if err != nil {
		return r, fmt.Errorf("read the state of the replica: %w", Unavailable(ctx, err))
	}
	if r.ID = id; id == first { // it had all clicks when it was claimed
		r.ID, r.Filling = "", false
	}
	r.Filling = r.Filling || r.Gap.After(filled)
	return r, nil
}

// NoteGap records that Kafka gave up records before they came here, so that the replica is filling. It
// MUST precede everything that comes after these records, also the watermarks.
func (d *DB) NoteGap(ctx context.Context) error {
	ctx, cancel := Bound(ctx)
	defer cancel()
	// Later than all rows whatever the clock says: a refill closes the gaps that it knew of when it began.
	err := d.Conn.Exec(ctx, "INSERT INTO replica SELECT greatest(now64(6, 'UTC'), max(at) + toIntervalMicrosecond(1)), {gap:String}, toDateTime(0, 'UTC') FROM replica",
		clickhouse.Named("gap", refillGap))
	if err != nil {
		return fmt.Errorf("note a gap: %w", Unavailable(ctx, err))
	}
	return nil
}

// RefilledDays returns the days that a refill has completed since a gap.
func (d *DB) RefilledDays(ctx context.Context, gap time.Time) (days map[time.Time]bool, err error) {
	ctx, cancel := Bound(ctx)
	defer cancel()
	rows, err := d.Conn.Query(ctx, "SELECT DISTINCT day FROM replica WHERE state = {day:String} AND at >= fromUnixTimestamp64Micro({gap:Int64}, 'UTC')",
		clickhouse.Named("day", refillDay), clickhouse.Named("gap", fmt.Sprint(max(0, gap.UnixMicro()))))
	if err != nil {
		return nil, fmt.Errorf("read the state of the refill: %w", Unavailable(ctx, err))
	}
	defer func() { _ = rows.Close() }()
	days = map[time.Time]bool{}
	for rows.Next() {
		var day time.Time
		if err := rows.Scan(&day); err != nil {
			return nil, fmt.Errorf("read the state of the refill: %w", err)
		}
		days[day.UTC()] = true
	}
	return days, Unavailable(ctx, rows.Err())
}

// RefilledDay records that a day is complete but for gaps that are later than one.
func (d *DB) RefilledDay(ctx context.Context, gap, day time.Time) error {
	return d.note(ctx, gap, refillDay, day)
}

// Refilled records that the replica has what another one had, but for gaps that are later than one.
func (d *DB) Refilled(ctx context.Context, gap time.Time) error {
	return d.note(ctx, gap, refillFilled, time.Unix(0, 0))
}

// note writes a row with the time of the gap that it is about: a later gap is later than the row.
func (d *DB) note(ctx context.Context, gap time.Time, state string, day time.Time) error {
	ctx, cancel := Bound(ctx)
	defer cancel()
	err := d.Conn.Exec(ctx, "INSERT INTO replica SELECT fromUnixTimestamp64Micro({gap:Int64}, 'UTC'), {state:String}, {day:DateTime('UTC')}",
		clickhouse.Named("gap", fmt.Sprint(max(0, gap.UnixMicro()))), clickhouse.Named("state", state), clickhouse.Named("day", Seconds(day)))
	if err != nil {
		return fmt.Errorf("write the state of the refill: %w", Unavailable(ctx, err))
	}
	return nil
}
