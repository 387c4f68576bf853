package sqlite

import (
	"context"
	"os"
	"sync"
	"sync/atomic"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
)

const (
	// aheadConns read ahead, beside the connections of look-ups, which must not wait
	// for a create. Four reads at a time keep a disk busy.
	aheadConns = 4

	// largeFile is the size from which on a file may not lie in memory. Below it the
	// 10 µs that reading ahead takes for a link would be wasted.
	largeFile = 1 << 30
)

// readAhead reads the pages that inserts are about to touch, so that they are in the memory
// of the system when the writer comes to them. New links lie at the end of curt.db but
// for their entry among the twins, which is at a random place: with ten million links
// every second of these pages came from the disk, one after the other, while everybody
// waited for the writer.
type readAhead struct {
	path  string
	on    atomic.Bool // the file is large
	conns *sqlitedb.Readers
}

// measure finds out whether the file is large.
func (a *readAhead) measure() {
	info, err := os.Stat(a.path)
	a.on.Store(err == nil && info.Size() >= largeFile)
}

// The page that the entry of a new link will be in; it has no row for most.
const sqlTwinPlace = `SELECT 1 FROM links WHERE workspace = (SELECT n FROM workspaces WHERE name = ?)
	AND digest = ? AND expires = ? AND status = 1 AND safety = 1 AND max_clicks = 0 LIMIT 1`

// read reads ahead for one link. It may read nothing: then the writer does, meets the
// same errors, and answers for them.
func (a *readAhead) read(ctx context.Context, closed <-chan struct{}, l *link.Link) {
	if !a.on.Load() || l.Status != link.Active || l.Safety != link.Clean || l.MaxClicks > 0 {
		return // no link of many, or nobody's twin
	}
	_ = a.conns.Lend(ctx, closed, func(c *sqlitedb.Conn) error {
		return c.Do(func(t *sqlitedb.Tx) error {
			return t.Each(sqlTwinPlace, sqlitedb.Ignore, string(l.Workspace), link.Digest(l.Destination), link.Millis(l.Expires))
		})
	})
}

// readMany is read for a batch, as many at a time as there are connections.
func (a *readAhead) readMany(ctx context.Context, closed <-chan struct{}, entries []link.Creation) {
	if !a.on.Load() {
		return
	}
	var readers sync.WaitGroup
	for first := range aheadConns {
		readers.Go(func() {
			for i := first; i < len(entries); i += aheadConns {
				a.read(ctx, closed, &entries[i].Link)
			}
		})
	}
	readers.Wait()
}
