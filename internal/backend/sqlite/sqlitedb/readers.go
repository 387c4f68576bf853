package sqlitedb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Readers are the reading connections of a file. Of those that are idle the first is
// lent: each has a page cache of its own, and what few readers need at once stays in
// few caches. The first half have the whole cache of the file's configuration, the
// others, which a burst alone needs, a quarter of it.
type Readers struct {
	free chan struct{} // as many as are idle: who has received one may pop

	mu   sync.Mutex
	all  []*Conn // guarded by mu; in the order in which they are lent
	busy []bool  // guarded by mu; which of them are lent
}

// NewReaders takes n connections out of a pool, of which full keep the cache that the pool
// gave them.
func NewReaders(ctx context.Context, h Handles, n, full int) (*Readers, error) {
	r := &Readers{free: make(chan struct{}, n), busy: make([]bool, n)}
	for i := range n {
		c, err := NewConn(ctx, h.Read)
		if err != nil {
			return nil, err
		}
		r.all = append(r.all, c)
		r.free <- struct{}{}
		if i >= full {
			if err := c.Do(func(t *Tx) error { return quarterCache(t) }); err != nil {
				return nil, fmt.Errorf("set the page cache of a spare connection: %w", err)
			}
		}
	}
	return r, nil
}

const (
	sqlCacheSize    = `PRAGMA cache_size`
	sqlSetCacheSize = `PRAGMA cache_size = `
)

// quarterCache leaves a connection a quarter of its page cache.
func quarterCache(t *Tx) error {
	size, _, err := t.Number(sqlCacheSize) // in KiB, and negative
	if err != nil {
		return err
	}
	_, err = t.Exec(sqlSetCacheSize + fmt.Sprint(size/4))
	return err
}

// ErrClosed means that a file was closed.
var ErrClosed = errors.New("closed")

// Lend lends f a connection, or returns ErrClosed, or the cause of ctx's end.
func (r *Readers) Lend(ctx context.Context, closed <-chan struct{}, f func(*Conn) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select { // of one case: the runtime takes no lock for it
	case <-closed:
		return ErrClosed
	default:
	}
	select {
	case <-r.free:
		c := r.pop()
		defer r.push(c)
		return f(c)
	case <-closed:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("wait for a connection: %w", context.Cause(ctx))
	}
}

// pop lends the first idle connection to a caller who has received from free.
func (r *Readers) pop() *Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := slices.Index(r.busy, false)
	r.busy[first] = true
	return r.all[first]
}

// push takes a connection back.
func (r *Readers) push(c *Conn) {
	r.mu.Lock()
	r.busy[slices.Index(r.all, c)] = false
	r.mu.Unlock()
	r.free <- struct{}{}
}

// Close waits for reads under way.
func (r *Readers) Close() error {
	var errs []error
	for range cap(r.free) {
		<-r.free
		errs = append(errs, r.pop().Close())
	}
	return errors.Join(errs...)
}
