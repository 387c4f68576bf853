package sqlite

import (
	"context"
	"os"
	"sync"
	"sync/atomic"

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

// ahead reads the pages that inserts are about to touch, so that they are in the memory
// of the system when the writer comes to them. New links lie at the end of curt.db but
// for their entry among the twins, which is at a random place: with ten million links
// every second of these pages came from the disk, one after the other, while everybody
// waited for the writer.
type ahead struct {
	path  string
	on    atomic.Bool // the file is large
	conns *readers
}

func (a *ahead) open(ctx context.Context, h handles, path string) (err error) {
	a.path = path
	a.measure()
	a.conns, err = newReaders(ctx, h, aheadConns, 0)
	return err
}

// measure finds out whether the file is large.
func (a *ahead) measure() {
	info, err := os.Stat(a.path)
	a.on.Store(err == nil && info.Size() >= largeFile)
}

// read reads ahead for one link. It may read nothing: then the writer does, meets the
// same errors, and answers for them.
func (a *ahead) read(ctx context.Context, closed <-chan struct{}, l *link.Link) {
	if !a.on.Load() || l.Status != link.Active || l.Safety != link.Clean || l.MaxClicks > 0 {
		return // no link of many, or nobody's twin
	}
	select {
	case <-a.conns.free:
		c := a.conns.pop()
		_ = c.do(func(t *tx) error {
			return t.each(sqlTwinPlace, ignore, string(l.Workspace), digest(l.Destination), millis(l.Expires))
		})
		a.conns.push(c)
	case <-closed:
	case <-ctx.Done():
	}
}

// readMany is read for a batch, as many at a time as there are connections.
func (a *ahead) readMany(ctx context.Context, closed <-chan struct{}, entries []link.Creation) {
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
