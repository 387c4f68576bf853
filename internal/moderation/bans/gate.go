package bans

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Gate lets a ban wait for the writes that were judged without it. Whoever asks about bans
// and then writes is inside between the two; who wants to see all that was written by
// those who did not know a ban yet drains the gate first.
type Gate struct {
	mu     sync.Mutex
	now    *crowd   // who enters; guarded by mu
	sealed []*crowd // who is still inside from before; guarded by mu
}

// crowd is who was let in between two drains.
type crowd struct {
	inside int           // guarded by gate.mu
	sealed bool          // guarded by gate.mu
	empty  chan struct{} // closed once it is sealed and nobody is inside
}

func NewGate() *Gate { return &Gate{now: &crowd{empty: make(chan struct{})}} }

// BeginWrite lets the caller in, who must call leave once.
func (g *Gate) BeginWrite() (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.now
	c.inside++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if c.inside--; c.sealed && c.inside == 0 {
			close(c.empty)
		}
	}
}

// Drain returns when everybody who is inside now has left.
func (g *Gate) Drain(ctx context.Context) error {
	for _, c := range g.seal() {
		select {
		case <-c.empty:
		case <-ctx.Done():
			return fmt.Errorf("wait for in-flight writes: %w", context.Cause(ctx))
		}
	}
	return nil
}

// seal lets nobody join those who are inside, and returns their crowds.
func (g *Gate) seal() []*crowd {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.now
	g.now = &crowd{empty: make(chan struct{})}
	if c.sealed = true; c.inside == 0 {
		close(c.empty)
	}
	g.sealed = slices.DeleteFunc(append(g.sealed, c), func(c *crowd) bool { return c.inside == 0 })
	return slices.Clone(g.sealed)
}
