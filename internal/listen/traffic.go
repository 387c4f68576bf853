package listen

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"curt/internal/clientaddr"
	"curt/internal/lane"
	"curt/internal/lane/proxyproto"
	"curt/internal/lane/strict"
	"curt/internal/telemetry"
)

// Config is what [New] needs. All but TLS is required.
type Config struct {
	Sockets        *Sockets
	TLS            *tls.Config // of the public socket and the API's own; nil = in clear
	Clients        clientaddr.Rule
	ProxyProtocol  bool // of the public socket
	MaxConnections int

	DrainDelay time.Duration // between readiness and sockets, for load balancers
	DrainLimit time.Duration // then connections are cut off

	// Streams reports whether the answer to a request lasts until its client leaves.
	Streams func(*http.Request) bool

	Metrics *telemetry.Metrics
	Log     *slog.Logger
}

// Traffic serves sockets. Its fields are set in New and by the methods that put a handler behind
// a socket, all before Serve.
type Traffic struct {
	cfg         Config
	lane        *lane.Lane // nil = net/http alone
	fronts      []front    // of net/http; the first is the public one's
	connections connections
	serving     chan struct{} // closed when the lane accepts no more
	draining    atomic.Bool
	endStreams  func()
}

// front is an http.Server with what it accepts from.
type front struct {
	server   *http.Server
	listener net.Listener
	strict   bool // the listener refuses what the lane refuses
}

// New returns the Traffic of sockets, without a handler.
func New(cfg Config) *Traffic {
	return &Traffic{cfg: cfg, serving: make(chan struct{}), endStreams: func() {}}
}

// BeforeDrain has a drain call end, which ends the answers that last until their client leaves.
func (t *Traffic) BeforeDrain(end func()) { t.endStreams = end }

// Draining reports whether a drain has begun.
func (t *Traffic) Draining() bool { return t.draining.Load() }

// ServeLane puts the lane behind the public socket, and a handler of net/http behind the lane. c
// has what this package does not know.
func (t *Traffic) ServeLane(ctx context.Context, c lane.Config, h http.Handler) (err error) {
	c.Clients, c.TLS, c.ProxyProtocol, c.MaxConns, c.Log = t.cfg.Clients, withHTTP2(t.cfg.TLS), t.cfg.ProxyProtocol, t.publicLimit(ctx), t.cfg.Log
	if t.lane, err = lane.New(c); err != nil {
		return fmt.Errorf("open the lane: %w", err)
	}
	behind := t.httpServer(t.lane.Handler(t.handler(h)), nil) // the lane has spoken TLS
	behind.ConnContext = t.lane.ConnContext
	behind.ConnState = func(nc net.Conn, state http.ConnState) {
		t.connections.track(nc, state)
		t.lane.ConnState(nc, state)
	}
	t.fronts = append(t.fronts, front{behind, t.lane.Listener(), true})
	countLane(t.cfg.Metrics, t.lane.Stats)
	return nil
}

// ServeNetHTTP puts a handler of net/http behind the public socket, under the same limit.
func (t *Traffic) ServeNetHTTP(ctx context.Context, h http.Handler) {
	var l net.Listener = t.cfg.Sockets.public
	if t.cfg.ProxyProtocol {
		l = proxyproto.Listener(l, t.cfg.Clients)
	}
	alone := t.httpServer(t.handler(h), t.cfg.TLS)
	alone.ConnState = t.connections.track
	visible, bound := bounded(alone, l, t.publicLimit(ctx), t.cfg.Clients)
	t.fronts = append(t.fronts, visible)
	countLane(t.cfg.Metrics, asLane(bound))
}

// ServeAPI puts a handler behind the API's own socket.
func (t *Traffic) ServeAPI(h http.Handler) {
	_, limit := t.limits()
	f, l := bounded(t.httpServer(t.handler(h), t.cfg.TLS), t.cfg.Sockets.api, limit, t.cfg.Clients)
	t.fronts = append(t.fronts, f)
	countAPI(t.cfg.Metrics, l.Stats)
}

// ServeAdmin puts a handler behind the operator's socket. It is not drained: probes and scrapers
// follow a server to its end.
func (t *Traffic) ServeAdmin(h http.Handler) {
	f, _ := bounded(t.httpServer(h, nil), t.cfg.Sockets.admin, adminConns, clientaddr.Rule{})
	t.fronts = append(t.fronts, f)
}

// publicLimit is the limit of the public socket.
func (t *Traffic) publicLimit(ctx context.Context) int {
	limit, _ := t.limits()
	if limit < t.cfg.MaxConnections {
		t.cfg.Log.InfoContext(ctx, "descriptor limit too low, lowering CURT_MAX_CONNECTIONS", slog.Int("connections", limit))
	}
	return limit
}

// handler closes connections while the server drains, and finishes requests of half-closed ones.
func (t *Traffic) handler(h http.Handler) http.Handler {
	h = t.untilAnswered(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// Serve begins to serve every socket. Each that ends sends an error to failed.
func (t *Traffic) Serve(failed chan<- error) {
	for _, f := range t.fronts {
		go func() { failed <- f.serve() }()
	}
	if t.lane == nil {
		return
	}
	go func() {
		defer close(t.serving)
		public := t.cfg.Sockets.public
		failed <- fmt.Errorf("serve %s: %w", public.Addr(), t.lane.Serve(public))
	}()
}

// Run keeps the time of the lane, if there is one, until ctx ends. It must outlast Drain.
func (t *Traffic) Run(ctx context.Context) error {
	if t.lane == nil {
		<-ctx.Done()
		return nil
	}
	return t.lane.Run(ctx) //nolint:wrapcheck // its caller names it
}

// Bounds of one connection. The head's 12 KiB become 16 KiB, because net/http adds
// 4 KiB of its own.
const (
	headTimeout = 10 * time.Second
	idleTimeout = 75 * time.Second
	bodyTimeout = 60 * time.Second // where internal/connlimit does not bound the body itself
	maxHead     = 12 << 10
)

// httpServer bounds what a client may do to a socket.
func (t *Traffic) httpServer(h http.Handler, certs *tls.Config) *http.Server {
	return &http.Server{
		Handler:           h,
		TLSConfig:         certs,
		ReadHeaderTimeout: headTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      idleTimeout, // a client that reads slower than this has gone
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHead,
		ErrorLog:          slog.NewLogLogger(t.cfg.Log.Handler(), slog.LevelDebug), // mistakes of clients are no news
	}
}

// serve runs one server until it is shut down. Requests of HTTP/1.x are refused by the same rules
// with the lane in front and without.
func (f front) serve() error {
	l := f.listener
	switch {
	case f.strict:
	case f.server.TLSConfig != nil:
		f.server.TLSConfig = withHTTP2(f.server.TLSConfig) // net/http speaks h2 where this names it
		l = strict.TLSListener(l, f.server.TLSConfig)
	default:
		l = strict.Listener(l)
	}
	return fmt.Errorf("serve %s: %w", f.listener.Addr(), f.server.Serve(l))
}

// withHTTP2 returns certs with both protocols; nil for nil.
func withHTTP2(certs *tls.Config) *tls.Config {
	if certs == nil {
		return nil
	}
	certs = certs.Clone()
	certs.NextProtos = []string{"h2", "http/1.1"}
	return certs
}
