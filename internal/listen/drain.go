package listen

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// lastRequest is how long a draining server waits for the next request of a
// keep-alive connection, to answer it with Connection: close. A connection that is
// closed while its client sends a request fails that request; one that is silent
// for this long most likely has none to send.
const lastRequest = time.Second

// connections counts the open connections of a listener, so that a server without
// any need not wait for them.
type connections struct {
	mu    sync.Mutex
	open  int
	empty chan struct{} // closed when open falls to zero; nil without a waiter
}

// track is the http.Server's ConnState.
func (c *connections) track(_ net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open++
	case http.StateClosed, http.StateHijacked:
		if c.open--; c.open == 0 && c.empty != nil {
			close(c.empty)
			c.empty = nil
		}
	case http.StateActive, http.StateIdle: // still open
	}
}

// none returns a channel that is closed once no connection is open. One waiter.
func (c *connections) none() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := make(chan struct{})
	if c.open == 0 {
		close(done)
		return done
	}
	c.empty = done
	return done
}

// Drain ends the traffic. Readiness fails at once, and the delay lets load balancers see it;
// streams end, clients are asked to leave, then the sockets close and requests in flight may
// finish until the limit. The rest is cut off, and logged.
//
// The lane goes first, because it hands connections over to net/http until its end.
func (t *Traffic) Drain(ctx context.Context) {
	t.draining.Store(true)
	t.cfg.Log.InfoContext(ctx, "draining",
		slog.String("delay", t.cfg.DrainDelay.String()), slog.String("limit", t.cfg.DrainLimit.String()))
	ctx, cancel := context.WithTimeout(ctx, t.cfg.DrainDelay+t.cfg.DrainLimit)
	defer cancel()
	wait(ctx, t.cfg.DrainDelay, nil)
	t.endStreams() // they would last for the whole limit
	sockets := t.cfg.Sockets
	if sockets.inherited && sockets.public != nil {
		_ = sockets.public.Close() // connections from now on wait for our successor
	}
	last := min(lastRequest, t.cfg.DrainLimit/2)
	if t.lane != nil {
		t.drainLane(ctx, last)
	} else {
		wait(ctx, last, t.connections.none())
		t.shut(ctx, sockets.public)
	}
	t.shut(ctx, sockets.api)
	// A server that is shut down reads a request that has come and does not answer it.
	wait(ctx, last, t.connections.none())
	for _, f := range t.fronts {
		if err := f.server.Shutdown(ctx); err != nil {
			t.cfg.Log.WarnContext(ctx, "drain limit reached, closed remaining connections", slog.Any("err", err))
			_ = f.server.Close() // their clients have been told already
		}
	}
	if t.lane != nil {
		t.lane.AwaitLingering(ctx)
	}
}

// drainLane empties the lane, and lets the connections at net/http send their last request.
func (t *Traffic) drainLane(ctx context.Context, last time.Duration) {
	t.lane.BeginDrain()
	window, cancel := context.WithTimeout(ctx, last)
	defer cancel()
	wait(window, last, t.lane.None())
	wait(window, last, t.connections.none())
	t.shut(ctx, t.cfg.Sockets.public)
	<-t.serving // every accepted connection is in the lane
	if err := t.lane.Shutdown(ctx); err != nil {
		t.cfg.Log.WarnContext(ctx, "drain limit reached, closed remaining connections", slog.Any("err", err))
	}
}

// shut closes a socket when the connections in its queue have been accepted: they are asked to
// leave with their answer. A supervisor's socket keeps them for our successor.
func (t *Traffic) shut(ctx context.Context, g *gate) {
	if g == nil {
		return
	}
	if t.cfg.Sockets.inherited {
		_ = g.Close() // this process accepts no more, and the socket stays open
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastRequest)
	defer cancel()
	g.shut(ctx)
}

// wait returns after d, when early is closed, or when ctx ends.
func wait(ctx context.Context, d time.Duration, early <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-early:
	case <-ctx.Done():
	}
}
