package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"curt/internal/clicks"
	"curt/internal/link"
)

const (
	// The rows of a batch's links are locked in the order of the batch, which is the same for
	// all writers. Links that are new are an exception: two batches that count them first may
	// meet crosswise, and one of them is undone and comes again.
	sqlLockTotals = `SELECT t.n, d.turn FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS d (domain, code, turn)
	JOIN click_totals AS t ON t.domain = d.domain AND t.code = d.code ORDER BY d.turn FOR UPDATE OF t`
	// Numbers are few (see clicks.RowNumber), so none is taken for a link that has one.
	sqlNewTotals = `INSERT INTO click_totals AS t (domain, code, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked)
	SELECT d.domain, d.code, 0, 0, 0, 0, 0, d.first_seen, 0 FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS d (domain, code, first_seen, turn)
	ORDER BY d.turn ON CONFLICT (domain, code) DO UPDATE SET clicks = t.clicks RETURNING t.n, t.domain, t.code`
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
	sqlPutRollups = `INSERT INTO click_rollups (` + rollupColumns + `)
	SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::bytea[], $9::bytea[])
	ON CONFLICT (id) DO UPDATE SET clicks = excluded.clicks, humans = excluded.humans, previews = excluded.previews,
		fallbacks = excluded.fallbacks, refused = excluded.refused, minutes = excluded.minutes, dimensions = excluded.dimensions, visitors = excluded.visitors`

	rollupColumns = `id, clicks, humans, previews, fallbacks, refused, minutes, dimensions, visitors`
)

// errApplied ends a transaction that has nothing to do.
var errApplied = errors.New("the batch was applied before")

// Apply implements clicks.RollupStore.
func (s *Rollups) Apply(ctx context.Context, b clicks.Batch) error {
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

func (s *Rollups) applyIn(ctx context.Context, t pgx.Tx, b clicks.Batch) error {
	var generation, segment, place int64
	if err := t.QueryRow(ctx, sqlLockWriter, s.config.Instance, batchWaiting).Scan(&generation, &segment, &place, nil, nil); err != nil {
		return fmt.Errorf("lock the place in the click log: %w", err)
	}
	switch state := stateAt(generation, segment, place); {
	case state == b.State:
		return errApplied
	case state.Generation+1 != b.Generation:
		return fmt.Errorf("%w: another server counts under the name in DATA/instance, as one does on a copy of this data folder; "+
			"let only one of the two run, and start the other on an empty folder (batch %d after %d)", clicks.ErrGeneration, b.Generation, state.Generation)
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
	_, err := t.Exec(ctx, sqlMoveWriter, s.config.Instance, int64(b.Generation), int64(b.Position.Segment), b.Position.Offset, millis(b.Complete))
	return err
}

// rollupChunk is what a chunk of a batch is written with; its buffers serve the next one.
type rollupChunk struct {
	numbers  []int64 // of the links, in order
	rows     []clicks.RowDelta
	quarters []clicks.Minute
	packed   []byte
}

// apply adds one chunk: the links are locked and numbered, their totals added, then their
// rows that are there are read, merged and put back with the new ones.
func (c *rollupChunk) apply(ctx context.Context, t pgx.Tx, links []clicks.LinkDelta) error {
	c.rows, c.quarters, c.packed = c.rows[:0], c.quarters[:0], c.packed[:0]
	if err := c.number(ctx, t, links); err != nil {
		return fmt.Errorf("number links: %w", err)
	}
	for i := range links {
		c.rows, c.quarters = clicks.RowDeltas(c.rows, c.quarters, c.numbers[i], links[i].Buckets)
	}
	slices.SortFunc(c.rows, func(x, y clicks.RowDelta) int { return cmp.Compare(x.Number, y.Number) })
	stored := make([]clicks.PackedRow, len(c.rows))
	if err := c.add(ctx, t, links, stored); err != nil {
		return fmt.Errorf("add totals: %w", err)
	}
	if err := c.put(ctx, t, stored); err != nil {
		return fmt.Errorf("put roll-ups: %w", err)
	}
	return nil
}

// number locks the totals of the links and finds out their numbers.
func (c *rollupChunk) number(ctx context.Context, t pgx.Tx, links []clicks.LinkDelta) error {
	domains, codes := make([]string, len(links)), make([]string, len(links))
	for i := range links {
		domains[i], codes[i] = string(links[i].Key.Domain), string(links[i].Key.Code)
	}
	c.numbers = append(c.numbers[:0], make([]int64, len(links))...)
	found := 0
	err := each(ctx, t, func(row pgx.Row) error {
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

// numberNew makes the totals of links that have none.
func (c *rollupChunk) numberNew(ctx context.Context, t pgx.Tx, links []clicks.LinkDelta) error {
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
	return each(ctx, t, func(row pgx.Row) error {
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
func (c *rollupChunk) add(ctx context.Context, t pgx.Tx, links []clicks.LinkDelta, stored []clicks.PackedRow) error {
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
	return each(ctx, t, func(row pgx.Row) error {
		number, packed, err := scanRollup(row)
		if i, ok := slices.BinarySearch(ids, number); ok {
			stored[i] = packed
		}
		return err
	}, sqlAddTotals, c.numbers, counts.clicks, counts.humans, counts.previews, counts.fallbacks, counts.refused, first, last, ids)
}

// put writes the rows, with what is stored of them.
func (c *rollupChunk) put(ctx context.Context, t pgx.Tx, stored []clicks.PackedRow) (err error) {
	n := len(c.rows)
	ids, counts := make([]int64, n), newCountColumns(n)
	minutes, dimensions, visitors := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for i := range c.rows {
		d := &c.rows[i]
		var sum clicks.PackedRow
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

// countColumns are clicks.Counts as columns.
type countColumns struct{ clicks, humans, previews, fallbacks, refused []int64 }

func newCountColumns(n int) countColumns {
	return countColumns{make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)}
}

func (c countColumns) set(i int, s clicks.Counts) {
	c.clicks[i], c.humans[i], c.previews[i] = int64(s.Clicks), int64(s.Humans), int64(s.Previews)
	c.fallbacks[i], c.refused[i] = int64(s.Fallbacks), int64(s.Refused)
}
