package lane

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// handed is an HTTP/1.1 connection at net/http.
type handed struct {
	replay
	strict  strict // guarded by reading
	lane    *Lane
	away    *conn // what the lane knew it as, and evicts it by
	tcp     net.Conn
	peer    netip.Addr
	trusted bool

	answered atomic.Bool            // a request without a body was, and nothing came since
	alone    bool                   // guarded by reading; the last bytes ended a head and held nothing else
	home     atomic.Pointer[[]byte] // what the lane is to go on with; nil = net/http goes on

	reading sync.Mutex   // held by whoever reads, so that lingering waits for net/http's reader
	closed  atomic.Bool  // Close was called
	ended   atomic.Bool  // the client closed, or reading failed
	wrote   atomic.Int64 // when the last write succeeded, by the lane's clock
}

// Read returns what was read before, then what comes.
func (h *handed) Read(p []byte) (int, error) {
	h.reading.Lock()
	defer h.reading.Unlock()
	if h.closed.Load() {
		return 0, net.ErrClosed
	}
	if h.home.Load() != nil {
		return 0, io.EOF
	}
	if h.strict.over {
		return h.strict.instead(p)
	}
	h.away.progress.Reads()
	n, err := h.replay.Read(p)
	h.away.progress.HasRead()
	if n > 0 {
		h.away.stir()
		if n = h.strict.pass(p[:n]); h.strict.over {
			h.alone = false
			if n > 0 {
				return n, nil
			}
			return h.strict.instead(p)
		}
	}
	if n > 0 && h.homesick(p[:n]) {
		return 0, io.EOF
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) { // net/http interrupts its reads by deadlines
		h.ended.Store(true)
	}
	return n, err
}

// Write writes, and remembers when.
func (h *handed) Write(p []byte) (int, error) {
	h.away.progress.Writes()
	n, err := h.Conn.Write(p)
	h.away.progress.Resume()
	if err == nil {
		h.wrote.Store(h.lane.clock.now())
	}
	return n, err
}

// Close ends the connection for net/http and counts it out. It never waits: net/http
// calls it under its lock too. When an answer may still be on its way, the lane takes
// the connection back to linger.
func (h *handed) Close() error {
	if h.closed.Swap(true) {
		return net.ErrClosed
	}
	if b := h.home.Load(); b != nil {
		return h.goHome(*b)
	}
	answered := h.lane.clock.now()-h.wrote.Load() <= lingerTime.Milliseconds()
	c := &conn{lane: h.lane, tcp: h.tcp, nc: h.Conn}
	c.enter(parting)
	if !h.lane.conns.back(h.away, c, answered && !h.ended.Load()) {
		return h.Conn.Close()
	}
	err := h.tcp.SetDeadline(time.Unix(1, 0)) // whoever still reads or writes there, leaves
	go c.part(h)
	return err
}
