package sqlite

import (
	"context"
	"errors"
	"sync"
)

// readers are the idle reading connections of a file. The one that was used last is
// lent first: each has a page cache of its own, and while few are needed at once the
// caches of the others stay empty.
type readers struct {
	free chan struct{} // as many as are idle: who has received one may pop

	mu   sync.Mutex
	idle []*conn // guarded by mu
}

// newReaders takes n connections out of a pool.
func newReaders(ctx context.Context, h handles, n int) (*readers, error) {
	r := &readers{free: make(chan struct{}, n)}
	for range n {
		c, err := newConn(ctx, h.read)
		if err != nil {
			return nil, err
		}
		r.push(c)
	}
	return r, nil
}

func (r *readers) pop() *conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.idle) - 1
	c := r.idle[last]
	r.idle = r.idle[:last]
	return c
}

func (r *readers) push(c *conn) {
	r.mu.Lock()
	r.idle = append(r.idle, c)
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
