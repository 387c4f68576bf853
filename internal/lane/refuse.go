package lane

import (
	"io"
	"time"
)

// The answers to what is no request, as net/http words them.
const (
	badRequest = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
	tooLarge   = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
		"431 Request Header Fields Too Large"
)

const (
	// lingerTime and lingerBytes bound what is read and thrown away after a refusal.
	// Closing with bytes unread would reset the connection, and the client would
	// lose the answer on its way: it may be in the middle of a long head.
	lingerTime  = time.Second
	lingerBytes = 4 << 20
)

// refuse answers and takes leave; the caller closes.
func (c *conn) refuse(answer string) {
	c.enter(parting)
	if c.surrender() != nil || c.nc.SetDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	if _, err := io.WriteString(c.nc, answer); err != nil {
		return
	}
	if half, ok := c.nc.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.nc, lingerBytes) // until the client closes, or the deadline
}
