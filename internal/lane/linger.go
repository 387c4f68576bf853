package lane

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

// Taking leave (RFC 9112, 9.6). A close with bytes unread, or with bytes on their way,
// makes the kernel reset the connection, and a reset may destroy the last answer before
// its client has read it. So whoever ends a connection that its client did not ask to
// end closes its own half and reads on: until the client closes, within these bounds.
// Such a connection is the lane's, in phase parting: it counts against Config.MaxConns,
// is the first to go when there is no room, and the sweeper keeps its time.
//
// A client that asked for the end itself must send nothing more, and gets a plain close.
// HTTP/2 takes leave by GOAWAY.
const (
	lingerTime  = time.Second
	lingerBytes = 4 << 20
)

// linger closes our half, throws away what comes and returns when the client has
// closed, or a bound is met; the caller closes.
func (c *conn) linger() {
	c.enter(parting)
	if c.surrender() != nil || c.tcp.SetDeadline(time.Time{}) != nil {
		return
	}
	if c.nc != c.tcp && closeWrite(c.nc) != nil { // close_notify
		return
	}
	if closeWrite(c.tcp) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.tcp, lingerBytes) // however it ends, the caller closes
}

func closeWrite(nc net.Conn) error {
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// part is the rest of the life of a connection that net/http closed.
func (c *conn) part(h *handed) {
	defer c.lane.conns.gone(c)
	h.reading.Lock() // its reader has left, or the sweeper makes it
	defer h.reading.Unlock()
	c.linger()
	c.late()
}

// Settle waits for connections whose last answer may still be on its way, after Drain
// and after the server behind the lane has ended; when ctx ends they are cut off. From
// then on connections that the server closes are closed at once. Run must be running.
func (l *Lane) Settle(ctx context.Context) {
	select {
	case <-l.conns.noneParted():
	case <-ctx.Done():
	}
	l.conns.settle()
	<-l.conns.noneParted()
}
