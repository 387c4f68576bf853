package postgres

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/link"
)

// maxJoined is how many links one statement creates for several callers. It bounds how
// long the last of them waits.
const maxJoined = 512

// joiner joins the creates of many callers into one statement: while statements are under
// way, callers queue up, and the next statement is for all of them. Every caller gets an
// answer of their own.
//
// It runs up to lanes goroutines, and only while there is something to write, so that a
// caller whose context ends can leave at once; close waits for them.
type joiner struct {
	lanes  int
	create func(batch []*creation)

	mu      sync.Mutex
	idle    sync.Cond   // on mu: running became 0
	queue   []*creation // guarded by mu, as all below
	running int
	closed  bool
}

// creation is one link that a caller wants made. The result is valid once done is closed.
type creation struct {
	link   link.Link
	result link.Link
	err    error
	done   chan struct{}
	left   atomic.Bool // nobody waits for it any more
}

func newJoiner(lanes int, create func([]*creation)) *joiner {
	j := &joiner{lanes: lanes, create: create}
	j.idle.L = &j.mu
	return j
}

// submit creates l with whatever else is queued. link.ErrUncertain means "may have
// happened".
func (j *joiner) submit(ctx context.Context, l link.Link) (link.Link, error) {
	c := &creation{link: l, done: make(chan struct{})}
	if err := j.enqueue(c); err != nil {
		return link.Link{}, err
	}
	select {
	case <-c.done:
		return c.result, c.err
	case <-ctx.Done():
		c.left.Store(true)
		return link.Link{}, fmt.Errorf("gave up before the commit, which may still happen: %w", context.Cause(ctx))
	}
}

func (j *joiner) enqueue(c *creation) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return pgdb.ErrClosed
	}
	j.queue = append(j.queue, c)
	// A second statement beside the first begins only with enough for one: few callers
	// each in a statement of their own would cost the server more than waiting costs them.
	if j.running == 0 || j.running < j.lanes && len(j.queue) >= maxJoined/8 {
		j.running++
		go j.drain()
	}
	return nil
}

// drain creates until nothing is queued.
func (j *joiner) drain() {
	for {
		runtime.Gosched() // the callers that are about to queue up come first
		batch := j.take()
		if len(batch) == 0 {
			return
		}
		j.create(batch)
		for _, c := range batch {
			close(c.done)
		}
	}
}

// take removes the next batch from the queue; an empty one ends drain.
func (j *joiner) take() []*creation {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue = slices.DeleteFunc(j.queue, func(c *creation) bool { return c.left.Load() })
	n := min(len(j.queue), maxJoined)
	batch := j.queue[:n:n]
	j.queue = j.queue[n:]
	if n == 0 {
		j.queue = nil
		if j.running--; j.running == 0 {
			j.idle.Broadcast()
		}
	}
	return batch
}

// close refuses new creates and waits for those that were accepted.
func (j *joiner) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	for j.running > 0 {
		j.idle.Wait()
	}
}
