// Package lane is a front end to net/http: it reads plain redirect requests, answers each with one
// write, and hands every other connection off to net/http. Read conn.go first: it is the life of a
// connection from top to bottom. httpconn.go is its life at net/http; the others have one part each.
//
// # Plain requests
//
// The shape of the head alone decides, never the state of the link (package head):
//
//	request  = method SP "/" code [ "?" query ] SP "HTTP/1.1" CRLF *( field CRLF ) CRLF
//	method   = "GET" / "HEAD"
//	code     = 1*64( ALPHA / DIGIT / "-" / "_" )       ; no page of Config.Pages
//	query    = *( %x21-7E )
//	field    = token ":" OWS value OWS
//	value    = *( HTAB / %x20-7E / %x80-FF )
//
// with exactly one Host, not empty; a Connection of "close" and "keep-alive" only; no
// Content-Length, Transfer-Encoding, Upgrade or Expect; and no byte after the head
// (nothing pipelined). An L1 hit of a plain link is answered from prepared bytes;
// a miss, a 404, a 410 and all others are resolved in place by the same
// redirect.Handler and written by the lane.
//
// Any other head of HTTP/1.x that RFC 9112 allows goes to net/http with every byte
// read so far, and the connection with it. It returns with the next plain request that
// comes alone (httpconn.go).
//
// # Refused requests
//
// 400 and close, where net/http is lenient. This holds for every request of a connection, also
// pipelined or after a body at net/http, and for listeners without a lane (package strict):
// a bare LF or a bare CR, a folded line,
// a space before the colon, an empty name, a control byte in the head; no Host, two
// or an empty one; two Content-Lengths, even if equal, one that is not a number, one
// next to a Transfer-Encoding; a Transfer-Encoding on HTTP/1.0; the same lines in a chunked
// body. 431 and close: a head
// that does not end within 16 KiB. net/http answers a head that is cut off by the end of the stream,
// and a first line that is not a request line of HTTP/1.x. That
// includes an empty line before the request line, which RFC 9112, 2.2 asks servers to
// ignore: net/http answers 400, except after the body of a POST, and the lane does the same.
//
// # A connection
//
// The words in lower case are the states of conn.go. A failed read or write, a time-out and an
// eviction close a connection in every state.
//
//	accept ─► handshake ─────────── HTTP/2 ────────────┐
//	              │                                    │
//	              ▼                                    │
//	   ┌──────── new ◄─────────── a plain request ───┐ │
//	   │ bytes                                       │ ▼
//	   ▼                                            http ◄─► idle, reading: there, too
//	Parse ── another shape, end of stream ──────────►│
//	 ▲ │ │                                           │ net/http closes
//	 │ │ ├── incomplete ─► reading ─► Parse          │
//	 │ │ └── malformed ──► writing 400, 431 ──┐      │
//	 │ │                                      │      │
//	 │ ├── miss ─► resolving ─► writing ──┐   │      │
//	 │ └── hit: one write ────────────────┤   │      │
//	 │                            the click   │      │
//	 │ bytes                              │   │      │
//	 └─────────── idle ◄─── keep-alive ───┤   │      │
//	               ▲                      │   │      │
//	               ▼                      ▼   ▼      ▼
//	             unread                  lingering or closed
//
// An idle connection is unread where the end of its stream may have come without an event (Linux,
// see rawConn). A connection lingers when its client did not ask for the end: it closes its half
// and reads on, so that what the client still sends does not destroy its last answer (close.go).
//
// # Ownership
//
// A connection belongs to its goroutine. The loop of timeouts.go, one for all connections,
// reads their states (an atomic word) and closes those that time out; eviction closes
// others in the order of internal/connlimit, those at net/http included. Closing is the
// only thing that both do, and the goroutine then finds its reads and
// writes failing. Time-outs: 10 s for PROXY header, handshake and head together each,
// 75 s idle, 30 s for a client that does not read its answer, 1 s to linger; all are up to a tick
// (250 ms) longer. After the hand-off a connection has no
// deadline that net/http did not set; the lane only evicts it.
//
// An exchange (buffers for one request) belongs to a goroutine while it handles bytes,
// and to the pool otherwise, so that an idle connection has none. Only a head that
// came in pieces is kept in a buffer of its own, 1 KiB at first, 16 KiB at most. The slices of
// a head are valid until its exchange is put back.
package lane
