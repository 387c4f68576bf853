package server

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

// closeWhileDraining asks every client to leave once the server is draining.
func (h *health) closeWhileDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// connections counts the open connections of a listener, so that a server without
// any need not wait for them.
type connections struct {
	mu    sync.Mutex
	open  int
	empty chan struct{} // closed when open falls to zero; nil unless somebody waits
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

// drain ends the traffic: /readyz says no, the delay lets load balancers see it,
// streams end, clients are asked to leave, then the listeners close and requests under way may
// finish until the limit. What is left after the limit is cut off, and logged.
//
// The lane goes first, because it still hands connections to net/http meanwhile.
func (s *Server) drain(ctx context.Context) {
	s.health.draining.Store(true)
	s.log.InfoContext(ctx, "draining",
		slog.String("delay", s.config.DrainDelay.String()), slog.String("limit", s.config.DrainLimit.String()))
	ctx, cancel := context.WithTimeout(ctx, s.config.DrainDelay+s.config.DrainLimit)
	defer cancel()
	wait(ctx, s.config.DrainDelay, nil)
	if s.live != nil {
		s.live.Close() // streams would last for the whole limit
	}
	if s.inherited && s.listener != nil {
		_ = s.listener.Close() // who comes now waits for our successor
	}
	last := min(lastRequest, s.config.DrainLimit/2)
	if s.lane != nil {
		s.leave(ctx, last)
	} else {
		wait(ctx, last, s.connections.none())
		s.shut(ctx, s.listener)
	}
	s.shut(ctx, s.bound.api)
	// A server that is shut down reads a request that has come and does not answer it.
	wait(ctx, last, s.connections.none())
	for _, f := range s.fronts {
		if err := f.server.Shutdown(ctx); err != nil {
			s.log.WarnContext(ctx, "connections cut off", slog.Any("err", err))
			_ = f.server.Close() // their clients have been told already
		}
	}
	if s.lane != nil {
		s.lane.Settle(ctx)
	}
}

// leave empties the lane, and lets those at net/http send their last request.
func (s *Server) leave(ctx context.Context, last time.Duration) {
	s.lane.Leave()
	window, cancel := context.WithTimeout(ctx, last)
	defer cancel()
	wait(window, last, s.lane.None())
	wait(window, last, s.connections.none())
	s.shut(ctx, s.listener)
	<-s.serving // whoever was accepted is in the lane
	if err := s.lane.Drain(ctx); err != nil {
		s.log.WarnContext(ctx, "connections cut off", slog.Any("err", err))
	}
}

// shut closes a listener when whoever waits in its queue was accepted: they are asked
// to leave with their answer. A supervisor's keeps them for our successor.
func (s *Server) shut(ctx context.Context, g *gate) {
	if g == nil {
		return
	}
	if s.inherited {
		_ = g.Close() // who serves it stops, and nobody else does
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
