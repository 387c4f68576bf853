package counts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// errApplied ends a transaction that has nothing to do.
var errApplied = errors.New("the batch was applied before")

// Apply implements rollup.Store.
func (s *Rollups) Apply(ctx context.Context, b rollup.Batch) error {
	pool, err := s.connected()
	if err != nil {
		return fmt.Errorf("apply roll-ups: %w", err)
	}
	within, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	if err = excuse(within, pool); err == nil {
		err = pgx.BeginFunc(within, pool, func(t pgx.Tx) error { return s.applyIn(within, t, b) })
	}
	if err == nil || errors.Is(err, errApplied) {
		return nil
	}
	return fmt.Errorf("apply roll-ups: %w", causeOf(ctx, err))
}

const (
	batchWaiting = "20s"
	// The limits hold from the next statement on, and end with the transaction.
	sqlLockWriter = `SELECT generation, segment, place, set_config('lock_timeout', $2, true), set_config('statement_timeout', $2, true)
	FROM click_writers WHERE instance = $1 FOR UPDATE`
	sqlMoveWriter = `UPDATE click_writers SET generation = $2, segment = $3, place = $4, complete = greatest(complete, $5), seen = now()
	WHERE instance = $1`
)

func (s *Rollups) applyIn(ctx context.Context, t pgx.Tx, b rollup.Batch) error {
	var generation, segment, place int64
	if err := t.QueryRow(ctx, sqlLockWriter, s.config.Instance, batchWaiting).Scan(&generation, &segment, &place, nil, nil); err != nil {
		return fmt.Errorf("lock the position in the click log: %w", err)
	}
	switch state := stateAt(generation, segment, place); {
	case state == b.State:
		return errApplied
	case state.Generation+1 != b.Generation:
		return fmt.Errorf("%w: another server uses the instance name in DATA/instance, probably on a copy of this data folder; "+
			"run only one of the two, and start the other on an empty folder (batch %d after %d)", rollup.ErrGeneration, b.Generation, state.Generation)
	}
	var c rollupChunk
	for chunk := range b.Links {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.apply(ctx, t, chunk); err != nil {
			return err
		}
	}
	_, err := t.Exec(ctx, sqlMoveWriter, s.config.Instance, int64(b.Generation), int64(b.Position.Segment), b.Position.Offset, link.Millis(b.Complete))
	return err
}

// rollupChunk is what a chunk of a batch is written with; its buffers serve the next one.
type rollupChunk struct {
	numbers  []int64 // of the links, in order
	rows     []rollup.RowDelta
	quarters []rollup.Minute
	packed   []byte
}

// apply adds one chunk: the links are locked and numbered, their totals added, then their
// rows that are there are read, merged and put back with the new ones.
func (c *rollupChunk) apply(ctx context.Context, t pgx.Tx, links []rollup.LinkDelta) error {
	c.rows, c.quarters, c.packed = c.rows[:0], c.quarters[:0], c.packed[:0]
	if err := c.number(ctx, t, links); err != nil {
		return fmt.Errorf("number links: %w", err)
	}
	for i := range links {
		c.rows, c.quarters = rollup.RowDeltas(c.rows, c.quarters, c.numbers[i], links[i].Buckets)
	}
	slices.SortFunc(c.rows, func(x, y rollup.RowDelta) int { return cmp.Compare(x.Number, y.Number) })
	stored := make([]rollup.PackedRow, len(c.rows))
	if err := c.add(ctx, t, links, stored); err != nil {
		return fmt.Errorf("add totals: %w", err)
	}
	if err := c.put(ctx, t, stored); err != nil {
		return fmt.Errorf("put roll-ups: %w", err)
	}
	return nil
}

// number locks the totals of the links and finds out their numbers.
func (c *rollupChunk) number(ctx context.Context, t pgx.Tx, links []rollup.LinkDelta) error {
	domains, codes := make([]string, len(links)), make([]string, len(links))
	for i := range links {
		domains[i], codes[i] = string(links[i].Key.Domain), string(links[i].Key.Code)
	}
	c.numbers = append(c.numbers[:0], make([]int64, len(links))...)
	found := 0
	err := pgdb.Each(ctx, t, func(row pgx.Row) error {
		var n, turn int64
		err := row.Scan(&n, &turn)
		if err == nil {
			c.numbers[turn-1], found = n, found+1
		}
		return err
	}, sqlLockTotals, domains, codes)
	if err != nil || found == len(links) {
		return err
	}
	return c.numberNew(ctx, t, links)
}

// Numbers are few (see rollup.RowNumber), so none is taken for a link that has one.
const sqlNewTotals = `INSERT INTO click_totals AS t (domain, code, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked)
	SELECT d.domain, d.code, 0, 0, 0, 0, 0, d.first_seen, 0 FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS d (domain, code, first_seen, turn)
	ORDER BY d.turn ON CONFLICT (domain, code) DO UPDATE SET clicks = t.clicks RETURNING t.n, t.domain, t.code`

// numberNew makes the totals of links that have none.
func (c *rollupChunk) numberNew(ctx context.Context, t pgx.Tx, links []rollup.LinkDelta) error {
	var domains, codes []string
	var seen []int64
	at := map[link.Key]int{}
	for i, n := range c.numbers {
		if n == 0 {
			k := links[i].Key
			domains, codes, seen = append(domains, string(k.Domain)), append(codes, string(k.Code)), append(seen, links[i].Total.FirstSeen)
			at[k] = i
		}
	}
	return pgdb.Each(ctx, t, func(row pgx.Row) error {
		var n int64
		var k link.Key
		err := row.Scan(&n, (*string)(&k.Domain), (*string)(&k.Code))
		if err == nil {
			c.numbers[at[k]] = n
		}
		return err
	}, sqlNewTotals, domains, codes, seen)
}

// add adds the totals and reads the rows that are there.
func (c *rollupChunk) add(ctx context.Context, t pgx.Tx, links []rollup.LinkDelta, stored []rollup.PackedRow) error {
	counts := newCountColumns(len(links))
	first, last, ids := make([]int64, len(links)), make([]int64, len(links)), make([]int64, len(c.rows))
	for i := range links {
		total := &links[i].Total
		counts.set(i, total.Counts)
		first[i], last[i] = total.FirstSeen, total.LastClicked
	}
	for i := range c.rows {
		ids[i] = c.rows[i].Number
	}
	return pgdb.Each(ctx, t, func(row pgx.Row) error {
		number, packed, err := scanRollup(row)
		if i, ok := slices.BinarySearch(ids, number); ok {
			stored[i] = packed
		}
		return err
	}, sqlAddTotals, c.numbers, counts.clicks, counts.humans, counts.previews, counts.fallbacks, counts.refused, first, last, ids)
}

const sqlPutRollups = `INSERT INTO click_rollups (` + rollupColumns + `)
	SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::bytea[], $9::bytea[])
	ON CONFLICT (id) DO UPDATE SET clicks = excluded.clicks, humans = excluded.humans, previews = excluded.previews,
		fallbacks = excluded.fallbacks, refused = excluded.refused, minutes = excluded.minutes, dimensions = excluded.dimensions, visitors = excluded.visitors`

// put writes the rows, with what is stored of them.
func (c *rollupChunk) put(ctx context.Context, t pgx.Tx, stored []rollup.PackedRow) (err error) {
	n := len(c.rows)
	ids, counts := make([]int64, n), newCountColumns(n)
	minutes, dimensions, visitors := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for i := range c.rows {
		d := &c.rows[i]
		var sum rollup.PackedRow
		if sum, c.packed, err = d.Salvage(c.packed, stored[i]); err != nil {
			return fmt.Errorf("roll-up %d: %w", d.Number, err)
		}
		ids[i], minutes[i], dimensions[i], visitors[i] = d.Number, sum.Minutes, sum.Dimensions, sum.Visitors
		counts.set(i, sum.Counts)
	}
	_, err = t.Exec(ctx, sqlPutRollups, ids, counts.clicks, counts.humans, counts.previews, counts.fallbacks, counts.refused,
		minutes, dimensions, visitors)
	return err
}

// countColumns are rollup.Counts as columns.
type countColumns struct{ clicks, humans, previews, fallbacks, refused []int64 }

func newCountColumns(n int) countColumns {
	return countColumns{make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)}
}

func (c countColumns) set(i int, s rollup.Counts) {
	c.clicks[i], c.humans[i], c.previews[i] = int64(s.Clicks), int64(s.Humans), int64(s.Previews)
	c.fallbacks[i], c.refused[i] = int64(s.Fallbacks), int64(s.Refused)
}
