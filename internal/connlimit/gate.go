package connlimit

import (
	"net/http"
	"sync/atomic"

	"curt/internal/clientaddr"
)

// Gate bounds the requests at net/http of one listener.
type Gate struct {
	now     func() int64 // microseconds since some moment
	clients clientaddr.Rule
	crowded func()
	most    int64
	open    atomic.Int64 // requests that are not over
}

const (
	// requestShare is the part of the connections that may be requests at net/http which are
	// not over. Each takes some 35 KB there, seven times what a connection takes without one,
	// and one connection of HTTP/2 can hold 250.
	requestShare = 5
	// leastRequests is for low limits: 35 MB.
	leastRequests = 1000
)

// NewGate returns the gate of a listener with a limit of connections. now tells microseconds
// since some moment. crowded is called when there are more requests than there may be, from
// the goroutine of the newest: it may close connections, and must not wait for them.
func NewGate(limit int, clients clientaddr.Rule, now func() int64, crowded func()) *Gate {
	return &Gate{now: now, clients: clients, crowded: crowded, most: int64(max(limit/requestShare, leastRequests))}
}

// Progress returns that of a connection that net/http gets.
func (g *Gate) Progress(n Network) *Progress {
	p := &Progress{gate: g}
	p.name(n)
	p.since.Store(g.now())
	return p
}

// Excess is by how many requests there are too many.
func (g *Gate) Excess() int { return int(g.open.Load() - g.most) }

func (p *Progress) name(n Network) { p.network.Store(uint64(n)) }

// Handler follows the requests of connections whose context is With. It is the outermost
// handler but for the lane's.
func (g *Gate) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := r.Context().Value(progressKey{}).(*Progress)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		g.follow(p, w, r, next)
	})
}

func (g *Gate) follow(p *Progress, w http.ResponseWriter, r *http.Request, next http.Handler) {
	multiplexed := r.ProtoMajor > 1
	hasBody := r.Body != nil && r.Body != http.NoBody
	if forwarded := r.Header["X-Forwarded-For"]; !multiplexed && len(forwarded) > 0 {
		p.name(NetworkOf(g.clients.Of(clientaddr.Peer(r.RemoteAddr), forwarded)))
	}
	p.open.Add(1)
	p.working.Add(1)
	defer p.working.Add(-1)
	defer p.open.Add(-1)
	if multiplexed {
		defer g.open.Add(-1)
	}
	if multiplexed || !p.counted.Swap(true) {
		if g.open.Add(1) > g.most {
			g.crowded()
		}
	}
	if multiplexed {
		w = &writer{w, p}
	} else {
		p.body.Store(hasBody)
	}
	if hasBody {
		b := newBody(p, w, r, multiplexed)
		defer b.leave()
		bare := r
		r = bare.WithContext(bare.Context()) // net/http looks at the body of its own request
		r.Body = b
	}
	next.ServeHTTP(w, r)
}

// writer is an answer of HTTP/2, which waits for room in a window that its client opens.
type writer struct {
	http.ResponseWriter
	of *Progress
}

// Write waits for the client.
func (w *writer) Write(b []byte) (int, error) {
	w.of.Writes()
	defer w.of.Resume()
	return w.ResponseWriter.Write(b)
}

// FlushError waits for the client, too.
func (w *writer) FlushError() error {
	w.of.Writes()
	defer w.of.Resume()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
