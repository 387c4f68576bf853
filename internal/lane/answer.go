package lane

import (
	"bytes"
	"net/http"
	"time"
	"unsafe"

	"curt/internal/cache"
	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/redirect"
)

// find sets place for the Host of the request.
func (c *conn) find(host []byte) {
	if c.host == nil || !bytes.Equal(host, c.host) {
		c.place = c.lane.cfg.Visitors.At(string(host))
		c.host = append(c.host[:0], host...)
	}
}

// hit puts the prepared answer into s.out, if L1 has one that holds now.
func (c *conn) hit(s *scratch) bool {
	h := &s.head
	c.find(h.host)
	if !c.place.Served() {
		return false
	}
	e := c.lane.cfg.Cache.Hit(c.place.Domain(), h.code)
	if e == nil || e.Prepared.Head == "" || !holds(&e.Prepared) {
		return false
	}
	if !c.place.Known() && redirect.LeadsBack(e.Target.Destination, view(h.host)) {
		return false
	}
	s.outcome = clicks.Redirected
	s.closing = h.closing || c.lane.leaving.Load()
	out := append(append(s.out[:0], e.Prepared.Head...), c.lane.clock.dateValue()...)
	if s.closing {
		out = append(out, "\r\nConnection: close"...)
	}
	s.out, s.sent = append(out, e.Prepared.Tail...), 0
	return true
}

// holds reports whether a prepared answer is the answer now. Most have no bounds.
func holds(p *cache.Prepared) bool {
	if p.From|p.Until == 0 {
		return true
	}
	now := time.Now().UnixMilli()
	return now >= p.From && (p.Until == 0 || now < p.Until)
}

// resolve puts the answer into s.out that net/http's handler would give.
func (c *conn) resolve(s *scratch) {
	c.enter(resolving)
	h := &s.head
	q := redirect.Request{
		Method: http.MethodGet, Query: string(h.query), Agent: string(h.agent),
		Preview: h.flags&(clicks.Head|clicks.Prefetch) != 0, Client: c.client(s),
	}
	if h.isHead {
		q.Method = http.MethodHead
	}
	if !c.place.Known() {
		q.Stranger = string(h.host)
	}
	for _, line := range h.accept {
		q.Accept = append(q.Accept, string(line))
	}
	v := c.lane.cfg.Visitors
	code := link.Code(h.code)
	out := v.Answer(c.lane.base, c.place, code, q)
	if v.Metered(out, code) {
		out = v.Meter(c.lane.base, out, q.Client)
	}
	if out.Warned {
		h.flags |= clicks.Warned
	}
	s.outcome = out.Click
	s.closing = h.closing || c.lane.leaving.Load()
	s.out = v.AppendAnswer(s.out[:0], out, redirect.Wire{
		Date: c.lane.clock.dateValue(), Head: h.isHead, Close: s.closing,
	})
	s.sent = 0
}

// view returns the bytes as a string without a copy, for a callee that keeps
// nothing of it: the bytes live in a buffer that is used again.
func view(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // see above; a copy would be an allocation for every request behind a proxy
}
