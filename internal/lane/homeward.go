package lane

import (
	"bytes"
	"slices"
	"time"
)

// The way back from net/http. A proxy that pools connections would otherwise keep one
// there for good because of one health check, and a redirect costs three times as much
// there. So a handed-over connection looks at what comes between two requests: where it
// is a request of the lane's shape, net/http is told that the client has left, and the
// lane goes on with the bytes when net/http closes. The client notices nothing.
//
// What net/http has not read yet is plain only when it holds nothing: the last bytes
// that it got ended a head and held nothing else (alone), the request was answered and
// had no body (answered), and nothing was read since. Who sends requests before their
// turn, or a body, stays until a request comes alone; so does, for one request more,
// who is so quick that net/http finds its next byte while it looks whether it left.

// homesick judges bytes that were just read, and keeps them when they are the lane's to
// answer. The caller holds reading.
func (h *handed) homesick(b []byte) bool {
	answered := h.answered.Swap(false)
	between := h.alone && answered
	h.alone = endsAlone(b)
	if !between || !h.alone || h.lane.leaving.Load() {
		return false
	}
	shard := h.lane.count.Add(1)
	s := h.lane.spare.get(shard)
	defer h.lane.spare.put(shard, s)
	if s.head.parse(b, h.lane.cfg.Pages) != express || s.head.size < len(b) {
		return false
	}
	b = slices.Clone(b)
	h.home.Store(&b)
	return true
}

// goHome continues the connection in the lane.
func (h *handed) goHome(b []byte) error {
	c := &conn{lane: h.lane, tcp: h.tcp, nc: h.Conn, peer: h.peer, trusted: h.trusted, own: b, greeted: true, shard: h.lane.count.Add(1)}
	c.enter(fresh)
	if !h.lane.conns.home(h.away, c) {
		return h.Conn.Close()
	}
	h.lane.stats.returned.Add(1)
	err := h.tcp.SetDeadline(time.Time{}) // net/http's; an error means that it is closed
	go c.run()
	return err
}

// endsAlone reports whether b ends with the end of a head and holds no other end of
// one. Bytes that begin with a line's end may have completed a head before.
func endsAlone(b []byte) bool {
	if len(b) == 0 || b[0] == '\r' || b[0] == '\n' {
		return false
	}
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			return false
		}
		b = b[i+1:]
		switch {
		case bytes.HasPrefix(b, []byte("\n")):
			return len(b) == 1
		case bytes.HasPrefix(b, []byte("\r\n")):
			return len(b) == 2
		}
	}
}
