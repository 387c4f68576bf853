package worker

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// waitFirst and waitMost are how long all partitions of a worker wait before anybody
	// inserts again: a database that is ill gets no storm of what it could not take.
	waitFirst = 250 * time.Millisecond
	waitMost  = 10 * time.Second

	// maxInserts is how many blocks of a worker are inserted at once.
	maxInserts = 2
)

// pressure keeps the inserts of all partitions from being more than the store can take.
type pressure struct {
	room chan struct{} // holds one for each insert under way

	mu    sync.Mutex
	wait  time.Duration // guarded by mu: after the next failure
	until time.Time     // guarded by mu: nobody inserts before
}

func newPressure() *pressure {
	return &pressure{room: make(chan struct{}, maxInserts), wait: waitFirst}
}

// do calls f when it may; an error of f has everybody wait for longer. It returns f's error, or
// that of ctx.
func (p *pressure) do(ctx context.Context, f func() error) error {
	select {
	case p.room <- struct{}{}:
		defer func() { <-p.room }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.mu.Lock()
	rest := time.Until(p.until)
	p.mu.Unlock()
	if err := pause(ctx, rest); err != nil {
		return err
	}
	err := f()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.wait, p.until = waitFirst, time.Time{}
		return nil
	}
	p.until = time.Now().Add(p.wait/2 + rand.N(p.wait)) // several workers come one after the other
	p.wait = min(2*p.wait, waitMost)
	return err
}

// pause waits for d, or until ctx ends, whose error it returns.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
