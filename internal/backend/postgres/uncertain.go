package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/link"
)

// A commit that waits for a synchronous standby is done on the primary already. When whoever
// waits for it gives up, PostgreSQL ends the wait, and from then on shows to everybody what
// no standby has. So what was found, instead of written, is no answer to a write until
// something that was written later is on the standby: the log that it gets has one order.
//
// The message is that something: it goes through the write-ahead log, to nobody.
const sqlConfirm = `SELECT pg_logical_emit_message(true, 'curt', '')`

// confirm returns when all that was read by now is where an acknowledged write has to be.
func confirm(ctx context.Context, q pgdb.Querier) error {
	if _, err := q.Exec(ctx, sqlConfirm); err != nil {
		return fmt.Errorf("wait for a read row to become durable: %w", err)
	}
	return nil
}

// uncertainFor is how long after a Replace failed its statement may still take effect, and be
// found by who asks what became of it: longer than any statement lasts.
const uncertainFor = 10 * time.Second

// uncertain are the links whose last Replace from here may have happened.
type uncertain struct {
	mu    sync.Mutex
	until map[link.Key]time.Time // guarded by mu
}

// add notes a link, and forgets those whose time is over.
func (d *uncertain) add(k link.Key, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.until == nil {
		d.until = map[link.Key]time.Time{}
	}
	for other, until := range d.until {
		if now.After(until) {
			delete(d.until, other)
		}
	}
	d.until[k] = now.Add(uncertainFor)
}

func (d *uncertain) about(k link.Key, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	until, doubted := d.until[k]
	return doubted && now.Before(until)
}
