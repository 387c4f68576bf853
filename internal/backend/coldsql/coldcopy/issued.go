package coldcopy

import (
	"context"
	"fmt"

	"curt/internal/backend/coldsql"
)

// Issued is what a store of links gives to servers, each once: a store that takes the place of another
// goes on from there.
type Issued struct {
	Key      [32]byte         // of codes
	Counters map[string]int64 // the lowest id that was never leased, by name
	Days     map[int64][]byte // keys of visitor tags, by UTC day
}

const (
	sqlCounters    = `SELECT counter, next FROM leases`
	sqlDays        = `SELECT day, key FROM day_keys`
	sqlPutCounters = `INSERT INTO leases (counter, next) VALUES ($1, $2)
	ON CONFLICT (counter) DO UPDATE SET next = greatest(leases.next, excluded.next)`
	sqlPutDays = `INSERT INTO day_keys (day, key) VALUES ($1, $2) ON CONFLICT (day) DO UPDATE SET key = excluded.key`
)

// ReadIssued returns what a database has issued, but for its key of codes.
func ReadIssued(ctx context.Context, db coldsql.DB) (all Issued, err error) {
	err = db.ReadMany(ctx, func(t coldsql.Tx) error {
		all = Issued{Counters: map[string]int64{}, Days: map[int64][]byte{}}
		err := coldsql.Each(t, sqlCounters, func(r *coldsql.Row) {
			name := r.Text()
			all.Counters[name] = r.Int()
		})
		if err != nil {
			return err
		}
		return coldsql.Each(t, sqlDays, func(r *coldsql.Row) {
			day := r.Int()
			all.Days[day] = []byte(r.Text())
		})
	})
	if err != nil {
		return all, fmt.Errorf("read leases: %w", err)
	}
	return all, nil
}

// WriteIssued has a database of PostgreSQL go on from there.
func WriteIssued(ctx context.Context, db coldsql.DB, all Issued) error {
	err := db.Change(ctx, len(all.Counters)+len(all.Days), func(t coldsql.Tx) error {
		for name, next := range all.Counters {
			if _, err := t.Exec(sqlPutCounters, name, next); err != nil {
				return err
			}
		}
		for day, key := range all.Days {
			if _, err := t.Exec(sqlPutDays, day, key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write leases: %w", err)
	}
	return nil
}
