package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// readers are the reading connections of a file. Of those that are idle the first is
// lent: each has a page cache of its own, and what few readers need at once stays in
// few caches. The first half have the whole cache of the file's configuration, the
// others, which a burst alone needs, a quarter of it.
type readers struct {
	free chan struct{} // as many as are idle: who has received one may pop

	mu   sync.Mutex
	all  []*conn // guarded by mu; in the order in which they are lent
	busy []bool  // guarded by mu; which of them are lent
}

// newReaders takes n connections out of a pool, of which full keep the cache that the pool
// gave them.
func newReaders(ctx context.Context, h handles, n, full int) (*readers, error) {
	r := &readers{free: make(chan struct{}, n), busy: make([]bool, n)}
	for i := range n {
		c, err := newConn(ctx, h.read)
		if err != nil {
			return nil, err
		}
		r.all = append(r.all, c)
		r.free <- struct{}{}
		if i >= full {
			if err := c.do(func(t *tx) error { return quarterCache(t) }); err != nil {
				return nil, fmt.Errorf("set the page cache of a spare connection: %w", err)
			}
		}
	}
	return r, nil
}

// quarterCache leaves a connection a quarter of its page cache.
func quarterCache(t *tx) error {
	size, _, err := t.number(sqlCacheSize) // in KiB, and negative
	if err != nil {
		return err
	}
	_, err = t.exec(sqlSetCacheSize + fmt.Sprint(size/4))
	return err
}

func (r *readers) pop() *conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := slices.Index(r.busy, false)
	r.busy[first] = true
	return r.all[first]
}

func (r *readers) push(c *conn) {
	r.mu.Lock()
	r.busy[slices.Index(r.all, c)] = false
	r.mu.Unlock()
	r.free <- struct{}{}
}

// close waits for reads under way.
func (r *readers) close() error {
	var errs []error
	for range cap(r.free) {
		<-r.free
		errs = append(errs, r.pop().close())
	}
	return errors.Join(errs...)
}

// Aside runs compute where it keeps nobody from a processor, and returns its error, or the cause
// of ctx's end when that came before. Nil runs it at once, on the caller's goroutine.
type Aside func(ctx context.Context, compute func(context.Context) error) error

func (a Aside) run(ctx context.Context, compute func(context.Context) error) error {
	if a == nil {
		return compute(ctx)
	}
	return a(ctx, compute)
}
