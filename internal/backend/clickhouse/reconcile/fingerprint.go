package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/finalize"
)

// Fingerprint stands for what a replica has of a UTC day.
type Fingerprint struct {
	Rows, Hash uint64 // of the clicks, in any order; 0 if some may have expired
	Sums       uint64 // a hash of the sums of a day whose clicks may have expired or were imported as sums; else 0
	Finalized  uint64 // clicks that its values were added up of; likewise
}

// Imported reports whether another store has counted the day.
func (f Fingerprint) Imported() bool { return f.Finalized == finalize.Imported }

// Covers reports whether a replica with a fingerprint lacks nothing of another one. Of sums that differ
// nobody can say which are larger.
func (f Fingerprint) Covers(other Fingerprint) bool {
	return f.Rows == other.Rows && f.Hash == other.Hash && f.Sums == other.Sums && f.Finalized >= other.Finalized
}

// Fingerprints returns those of all days: from recent on of their clicks, before, where clicks may have
// expired, of their sums. A day of which there is nothing has none.
func (t *Tables) Fingerprints(ctx context.Context, recent time.Time) (map[time.Time]Fingerprint, error) {
	recent = recent.UTC().Truncate(clickdb.Day).Add(clickdb.Day)
	all := map[time.Time]Fingerprint{}
	of := func(query string, set func(*Fingerprint, uint64, uint64)) error {
		ctx := clickhouse.Context(ctx, clickhouse.WithSettings(copySettings()))
		rows, err := t.db.Conn.Query(ctx, query, clickhouse.Named("recent", clickdb.Seconds(recent)))
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var at time.Time
			var a, b uint64
			if err := rows.Scan(&at, &a, &b); err != nil {
				return err
			}
			f := all[at.UTC()]
			set(&f, a, b)
			all[at.UTC()] = f
		}
		return rows.Err()
	}
	err := of(`SELECT toDateTime(toStartOfDay(time, 'UTC'), 'UTC') AS day, count(), sum(cityHash64(instance, sequence)) FROM clicks
WHERE time >= {recent:DateTime('UTC')} GROUP BY day`, func(f *Fingerprint, a, b uint64) { f.Rows, f.Hash = a, b })
	for _, a := range kept() {
		if err != nil {
			break
		}
		err = of(fmt.Sprintf(`SELECT toDateTime(toStartOfDay(at, 'UTC'), 'UTC') AS day, sum(%s * toUInt64(%s)), toUInt64(0) FROM %s
WHERE %[3]s.at < {recent:DateTime('UTC')} OR toStartOfDay(%[3]s.at, 'UTC') IN (SELECT at FROM settled WHERE clicks = %[4]d) GROUP BY day`, hashed("domain", "code", a.Table+".at"), weigh, a.Table, uint64(finalize.Imported)), func(f *Fingerprint, a, _ uint64) { f.Sums = f.Sums*31 + a })
	}
	if err == nil {
		err = of("SELECT at, argMax(clicks, version), toUInt64(0) FROM settled WHERE at < {recent:DateTime('UTC')} OR clicks = "+fmt.Sprint(uint64(finalize.Imported))+" GROUP BY at",
			func(f *Fingerprint, a, _ uint64) { f.Finalized = a })
	}
	if err != nil {
		return nil, fmt.Errorf("compare days: %w", clickdb.Unavailable(ctx, err))
	}
	return all, nil
}
