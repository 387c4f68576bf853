package lane

import "io"

// The answers to what is no request, as net/http words them.
const (
	badRequest = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
	tooLarge   = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
		"431 Request Header Fields Too Large"
)

// refuse answers and takes leave.
func (c *conn) refuse(answer string) {
	c.enter(writing)
	_, err := io.WriteString(c.nc, answer)
	c.lingers = err == nil // the client may be in the middle of a long head
}
