package lane

import (
	"net"

	"curt/internal/lane/head"
)

// input is the buffer of a head that comes in pieces. A connection has no other buffer of its own: a head
// that comes at once is parsed in the exchange.
type input struct {
	pending []byte // the pieces; nil or empty between heads
	partial bool   // pending was parsed: incomplete, and valid so far
	scanned int    // up to here pending holds no end of a head
}

const firstRoom = 1 << 10

// room returns the buffer to read to: after pending, which grows up to the largest head.
func (i *input) room() []byte {
	if n := len(i.pending); n == cap(i.pending) {
		grown := make([]byte, n, min(max(2*n, firstRoom), head.MaxSize))
		copy(grown, i.pending)
		i.pending = grown
	}
	return i.pending[len(i.pending):cap(i.pending)]
}

// extend adds n bytes that were read into room, and returns the head so far.
func (i *input) extend(n int) []byte {
	i.pending = i.pending[:len(i.pending)+n]
	return i.pending
}

// parse reads b, the head so far. It does not parse a head that comes in pieces again for each byte.
func (i *input) parse(h *head.Head, b []byte, pages []string) head.Verdict {
	if i.partial && !head.Ends(b, i.scanned) {
		i.scanned = len(b)
		return head.Incomplete
	}
	verdict := h.Parse(b, pages)
	switch {
	case verdict == head.Incomplete:
		i.partial, i.scanned = h.HasRequestLine, len(b)
	case verdict == head.Plain && h.Size < len(b):
		return head.Other // pipelined
	}
	return verdict
}

// keep holds the beginning of a head.
func (i *input) keep(b []byte) {
	if len(i.pending) == 0 {
		for cap(i.pending) < len(b) {
			i.pending = make([]byte, 0, min(max(2*cap(i.pending), firstRoom), head.MaxSize))
		}
		i.pending = append(i.pending, b...)
	}
}

// drop frees the memory of a head that was answered.
func (i *input) drop() {
	if cap(i.pending) > firstRoom {
		i.pending = nil
	}
	i.pending, i.partial, i.scanned = i.pending[:0], false, 0
}

// readClientHello waits until the first record of a handshake is complete. A client that stops in
// it costs a few KB; the stack and the buffers of TLS are much larger, from the first byte on.
func (i *input) readClientHello(nc net.Conn) bool {
	const (
		recordHeader = 5 // type, version, length
		handshake    = 22
	)
	for {
		b := i.pending
		if len(b) >= recordHeader && (b[0] != handshake || len(b) >= min(recordHeader+int(b[3])<<8+int(b[4]), head.MaxSize)) {
			return true // whatever it is, TLS has the alert for it
		}
		n, err := nc.Read(i.room())
		i.extend(n)
		if n == 0 && err != nil {
			return false
		}
	}
}
