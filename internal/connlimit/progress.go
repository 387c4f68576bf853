package connlimit

import (
	"context"
	"sync/atomic"
	"time"
)

// The bounds of a body. Where the first were shorter, a client on a bad link would lose
// what the kernel repeats after one, three and seven seconds; the rate is that of GPRS.
const (
	BodyGrace = 10 * time.Second // of silence
	BodyRate  = 4 << 10          // bytes that earn a second
	bodySaved = 60 * time.Second // no client may save up more
)

// Progress tells who is to act next on a connection at net/http: its client, or the server.
// Requests of HTTP/1 count by what the connection does (Reads, Writes), those of HTTP/2 by
// what their handlers do. Its methods may be called from many goroutines.
type Progress struct {
	gate *Gate

	network atomic.Uint64
	since   atomic.Int64 // when the client fell behind, in the gate's time; later the faster a body comes
	working atomic.Int32 // handlers that do not wait for the client
	open    atomic.Int32 // requests in handlers
	body    atomic.Bool  // of HTTP/1, and not read to its end
	reading atomic.Bool  // net/http reads the connection
	counted atomic.Bool  // in gate.open, for a request of HTTP/1 until it is over
}

// Network returns whose connection it is.
func (p *Progress) Network() Network { return Network(p.network.Load()) }

// Owes reports whether nothing on the connection is the server's to do, since when, and for
// how many requests.
func (p *Progress) Owes() (since int64, requests int32, owes bool) {
	working := p.working.Load()
	if p.body.Load() && p.reading.Load() {
		working--
	}
	return p.since.Load(), max(p.open.Load(), 1), working <= 0
}

// Begin follows the head of a request.
func (p *Progress) Begin() { p.since.Store(p.gate.now()) }

// Over follows a connection's last request so far.
func (p *Progress) Over() {
	p.body.Store(false)
	if p.counted.Swap(false) {
		p.gate.open.Add(-1)
	}
}

// Reads goes before a read of the connection, and HasRead behind it. While a body of HTTP/1
// is unread a read waits for the client; later net/http only listens whether it leaves.
func (p *Progress) Reads() { p.reading.Store(true) }

// HasRead follows Reads.
func (p *Progress) HasRead() { p.reading.Store(false) }

// Writes goes before a write, which waits for the client to take what was written before.
// Resume is to follow.
func (p *Progress) Writes() {
	p.since.Store(p.gate.now())
	p.working.Add(-1)
}

// Resume says that the client acted.
func (p *Progress) Resume() { p.working.Add(1) }

// waits says that a handler of HTTP/2 reads.
func (p *Progress) waits() { p.working.Add(-1) }

// earn moves since by what n bytes of a body are worth.
func (p *Progress) earn(n int) {
	p.since.Store(min(p.since.Load()+int64(n)*int64(time.Second/time.Microsecond)/BodyRate, p.gate.now()))
}

type progressKey struct{}

// With returns a context of a connection by which Gate.Handler finds its progress. It is
// for an http.Server's ConnContext.
func With(ctx context.Context, p *Progress) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}
