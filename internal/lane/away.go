package lane

import (
	"crypto/tls"
	"net"
	"net/http"
)

// A connection at net/http counts against Config.MaxConns, so it has a phase there too:
// idle between two requests, heading while a head of HTTP/1.1 is under way, and handing
// with a request, of which its progress knows whether it waits for the client. It makes
// room in the same order as the lane's own. The sweeper leaves it alone: its time-outs are
// net/http's, and those of a body internal/connlimit's.

// ConnState is for the http.Server that accepts from Listener. Without it connections
// at net/http are never closed to make room.
func (l *Lane) ConnState(nc net.Conn, state http.ConnState) {
	c := awayOf(nc)
	if c == nil {
		return
	}
	switch state {
	case http.StateIdle:
		c.progress.Over()
		c.enter(idle)
	case http.StateActive:
		c.progress.Begin()
		c.enter(handing)
	case http.StateClosed, http.StateHijacked:
		c.progress.Over()
	case http.StateNew: // as it was
	}
}

// awayOf returns what the lane knows a connection of net/http as, or nil.
func awayOf(nc net.Conn) *conn {
	switch h := nc.(type) {
	case *handed:
		return h.away
	case *handedTLS:
		return h.away
	case *tls.Conn: // HTTP/2
		if b, ok := h.NetConn().(*below); ok {
			return b.away
		}
	}
	return nil
}

// stir says that bytes came: between two requests they begin a head. Only net/http's
// goroutine of the connection reads then, and it is the one that calls ConnState.
func (c *conn) stir() {
	if p, _ := c.phase(); p == idle {
		c.enter(heading)
	}
}
