package listen

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// gate is a listener that drains its accept queue. The kernel resets the connections in the queue
// of a listener that is closed, although their handshake was done. So a gate that shuts accepts
// until the queue is empty, and closes then. A connection that arrives between the last look and
// the close is still reset: only a process whose socket stays open elsewhere (Sockets.inherited)
// can prevent that.
type gate struct {
	net.Listener
	shutting atomic.Bool
	closed   chan struct{}
	once     sync.Once
	err      error // of closing; set by once
}

func newGate(l net.Listener) *gate { return &gate{Listener: l, closed: make(chan struct{})} }

// Accept returns the next connection. Once the gate is to shut and the queue is empty,
// it closes the listener and returns net.ErrClosed.
func (g *gate) Accept() (net.Conn, error) {
	for {
		if g.shutting.Load() && (!queued(g.Listener) || g.wait(time.Now().Add(queueLook)) != nil) {
			_ = g.Close() // its error is for who closes
			return nil, net.ErrClosed
		}
		nc, err := g.Listener.Accept()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return nc, err // as it is: who serves asks it whether to go on
		}
	}
}

// addr returns the gate's address; nil = there is no gate.
func (g *gate) addr() net.Addr {
	if g == nil {
		return nil
	}
	return g.Addr()
}

// queueLook bounds an Accept for which a connection waits, unless it has left.
const queueLook = 50 * time.Millisecond

// wait bounds Accept.
func (g *gate) wait(until time.Time) error {
	if l, ok := g.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		return l.SetDeadline(until)
	}
	return errors.ErrUnsupported
}

// shut has Accept empty the queue, and returns when the listener is closed. At the end of ctx it is
// closed in any case.
func (g *gate) shut(ctx context.Context) {
	g.shutting.Store(true)
	if g.wait(time.Unix(1, 0)) == nil {
		select {
		case <-g.closed:
		case <-ctx.Done():
		}
	}
	_ = g.Close() // who was to be served has been
}

// Close closes the listener; only the first time does anything.
func (g *gate) Close() error {
	g.once.Do(func() {
		g.err = g.Listener.Close()
		close(g.closed)
	})
	return g.err
}
