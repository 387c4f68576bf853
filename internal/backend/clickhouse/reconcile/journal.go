package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/backend/clickhouse/clickdb"
)

// The outcomes of a reconciliation.
const (
	Matches = "matches"
	Healing = "healing" // begun; an entry that stays the last one was interrupted
	Healed  = "healed"
	Differs = "differs"
)

// Entry is a line of the journal: an hour at a time.
type Entry struct {
	Hour, At   time.Time
	Rows, Hash uint64 // of the clicks that were compared
	Kafka      uint64 // clicks that Kafka has
	Missing    uint64 // clicks without a row
	Surplus    uint64 // rows of clicks that have one already, or of no click in Kafka
	Off        bool   // sums differ from rows
	Attempt    uint8  // how often the hour was healed in a row
	Outcome    string
	Reason     string
}

// Wrong is how many rows are missing or too many.
func (e *Entry) Wrong() uint64 { return e.Missing + e.Surplus }

// Journal appends entries.
func (t *Tables) Journal(ctx context.Context, entries []Entry) error {
	ctx, cancel := clickdb.Bound(ctx)
	defer cancel()
	batch, err := t.db.Conn.PrepareBatch(ctx, "INSERT INTO reconciliations")
	if err != nil {
		return fmt.Errorf("write the journal of reconciliations: %w", clickdb.Unavailable(ctx, err))
	}
	defer func() { _ = batch.Close() }() // does nothing once it is sent
	for _, e := range entries {
		if err := batch.Append(e.Hour, e.At, e.Rows, e.Hash, e.Kafka, e.Missing, e.Surplus, e.Off, e.Attempt, e.Outcome, e.Reason); err != nil {
			return fmt.Errorf("write the journal of reconciliations: %w", err)
		}
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("write the journal of reconciliations: %w", clickdb.Unavailable(ctx, err))
	}
	return nil
}

// Reconciled returns the last entry of each hour from a time on.
func (t *Tables) Reconciled(ctx context.Context, from time.Time) (map[time.Time]Entry, error) {
	ctx, cancel := clickdb.Bound(ctx)
	defer cancel()
	rows, err := t.db.Conn.Query(ctx, `SELECT * FROM reconciliations WHERE hour >= {from:DateTime('UTC')} ORDER BY hour, at DESC LIMIT 1 BY hour`,
		clickhouse.Named("from", clickdb.Seconds(from)))
	if err != nil {
		return nil, fmt.Errorf("read the journal of reconciliations: %w", clickdb.Unavailable(ctx, err))
	}
	defer func() { _ = rows.Close() }()
	all := map[time.Time]Entry{}
	for rows.Next() {
		var e Entry
		if err := rows.Scan(&e.Hour, &e.At, &e.Rows, &e.Hash, &e.Kafka, &e.Missing, &e.Surplus, &e.Off, &e.Attempt, &e.Outcome, &e.Reason); err != nil {
			return nil, fmt.Errorf("read the journal of reconciliations: %w", err)
		}
		all[e.Hour.UTC()] = e
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the journal of reconciliations: %w", clickdb.Unavailable(ctx, err))
	}
	return all, nil
}
