package lane

import (
	"io"
	"net/http"
	"time"

	"curt/internal/cache"
	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/redirect"
)

// resolve puts the answer into x.out that net/http's handler would give.
func (c *conn) resolve(x *exchange) {
	c.enter(stateResolving)
	h := &x.head
	q := redirect.Request{
		Method: http.MethodGet, Query: string(h.Query), Agent: string(h.Agent),
		Preview: h.Flags&(clicks.Head|clicks.Prefetch) != 0, Client: c.peer.client(c.lane.cfg.Clients, x),
	}
	if h.IsHead {
		q.Method = http.MethodHead
	}
	if !c.host.match.Configured() {
		q.UnconfiguredHost = string(h.Host)
	}
	for _, line := range h.Accept {
		q.Accept = append(q.Accept, string(line))
	}
	v := c.lane.cfg.Visitors
	code := link.Code(h.Code)
	out := v.Answer(c.lane.base, c.host.match, code, q)
	if v.Metered(out, code) {
		out = v.Meter(c.lane.base, out, q.Client)
	}
	if out.Warned {
		h.Flags |= clicks.Warned
	}
	x.outcome = out.Click
	x.close = h.Close || c.lane.draining.Load()
	x.out = v.AppendAnswer(x.out[:0], out, redirect.Wire{
		Date: c.lane.clock.dateValue(), Head: h.IsHead, Close: x.close,
	})
	x.sent = 0
}

// valid reports whether a prepared answer is the answer now. Most have no bounds.
func valid(p *cache.Prepared) bool {
	if p.From|p.Until == 0 {
		return true
	}
	now := time.Now().UnixMilli()
	return now >= p.From && (p.Until == 0 || now < p.Until)
}

// The answers to malformed requests, as net/http words them.
const (
	badRequest     = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
	headerTooLarge = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
		"431 Request Header Fields Too Large"
)

// refuse answers a malformed request; the connection ends.
func (c *conn) refuse(answer string) {
	c.enter(stateWriting)
	_, err := io.WriteString(c.nc, answer)
	c.lingers = err == nil // the client may be in the middle of a long head
}
