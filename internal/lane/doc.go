// Package lane is the express lane in front of net/http: it reads the requests
// that a shortener gets by the million, answers them with one write, and gives
// everything else to net/http. Read conn.go for the life of a connection, head.go
// for the grammar, handover.go for the way to net/http.
//
// # What stays in the lane
//
// The shape of the head alone decides, never what the link turns out to be:
//
//	request  = method SP "/" code [ "?" query ] SP "HTTP/1.1" CRLF *( field CRLF ) CRLF
//	method   = "GET" / "HEAD"
//	code     = 1*64( ALPHA / DIGIT / "-" / "_" )       ; no page of Config.Pages
//	query    = *( %x21-7E )
//	field    = token ":" OWS value OWS
//	value    = *( HTAB / %x20-7E / %x80-FF )
//
// with exactly one Host, not empty; a Connection of "close" and "keep-alive" only; no
// Content-Length, Transfer-Encoding, Upgrade or Expect; and no byte behind the head
// (nothing pipelined). An L1 hit of a plain link is answered from prepared bytes;
// a miss, a 404, a 410 and all others are resolved in place by the same
// redirect.Handler and written by the lane.
//
// Any other head of HTTP/1.x that RFC 9112 allows goes to net/http with every byte
// read so far, and the connection with it. It comes back with the next request of the
// lane's shape that comes alone (homeward.go).
//
// # What is refused
//
// 400 and close, in every request of a connection, be it pipelined or behind a body at
// net/http, and on listeners that net/http serves alone, too (strict.go), where net/http is
// lenient: a bare LF or a bare CR, a folded line,
// a space before the colon, an empty name, a control byte in the head; no Host, two
// or an empty one; two Content-Lengths, even if equal, one that is no number, one
// beside a Transfer-Encoding; a Transfer-Encoding on HTTP/1.0; the same lines in a chunked
// body. 431 and close: a head
// that does not end within 16 KiB. A head that is cut off by the end of the stream
// and a first line that is no request line of HTTP/1.x are net/http's to answer. That
// includes an empty line before the request line, which RFC 9112, 2.2 asks servers to
// ignore: net/http answers 400, except behind the body of a POST, and the lane does not
// differ from it.
//
// # A connection
//
//	accept ─► [PROXY header] ─► [TLS handshake] ─h2─► net/http
//	                                  │
//	   ┌────────► idle ◄──────────────┘
//	   │           │ bytes
//	   │         head ──── other shape, end of stream ─► net/http
//	   │           │  └─── refused ─► 400, 431 ─► linger ─► closed
//	   │           │ complete
//	   │      hit  ├──── miss ─► resolving
//	   │           ▼                │
//	   └──────── writing ◄──────────┘   then the click is recorded
//	               │ Connection: close                 net/http closes it,
//	               ├── draining ─► linger ─► closed    as the last answer says
//	               ▼                  ▲                         │
//	             closed               └─────────────────────────┘
//
// To linger is to close our half and to read on for a second, so that what the client
// still sends does not destroy its last answer; see linger.go.
//
// # Who owns what
//
// A connection belongs to its goroutine. The sweeper, one for all connections,
// reads their phase (an atomic word) and closes those that are late; who makes room closes
// others as internal/connlimit says, those at net/http included: closing is the
// only thing that it does to them, and the goroutine then finds its reads and
// writes failing. Limits: 10 s for PROXY header, handshake and head together each,
// 75 s idle, 30 s for a client that does not take its answer, 1 s to linger; all are up to a tick
// (250 ms) longer. Before a hand-over the connection leaves the sweeper, and it has no
// deadline that net/http did not set; only to make room it is closed from here
// (away.go). What net/http closes with an answer on its way
// is the lane's once more, to linger.
//
// A scratch (buffers for one request) belongs to a goroutine while it handles bytes,
// and to the spare ones (scratches.go) otherwise, so that an idle connection has none. Only a head that
// came in pieces is kept in a buffer of its own, 1 KiB at first, 16 KiB at most. What
// a head's fields point to is valid until its scratch goes back.
//
// Lock order: connections.mu is a leaf; under it connections are marked and closed.
//
// # Not obvious
//
// On Linux the goroutine runs inside of syscall.RawConn.Read for as long as only
// hits come: read and write are system calls without a way through the runtime's
// descriptor lock, and waiting costs none. See raw_linux.go for the one trap.
package lane
