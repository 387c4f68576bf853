package lane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"curt/internal/cache"
	"curt/internal/clientaddr"
	"curt/internal/connlimit"
	"curt/internal/redirect"
)

// Config is what a Lane needs.
type Config struct {
	Cache    *cache.Tiered     // prepared by redirect.NewPreparer
	Visitors *redirect.Handler // decides and writes every answer that is not prepared
	Recorder redirect.Recorder
	Limits   *redirect.Limits // those of Visitors; nil = redirects have no bound
	Clients  clientaddr.Rule  // whose X-Forwarded-For and PROXY header are believed

	// Pages are first path segments that are not codes, such as "healthz".
	Pages []string
	// TLS, when set, is spoken on every connection. Its NextProtos say what is
	// offered; h2 goes to net/http.
	TLS *tls.Config
	// CountryHeader is the name of the header in which proxies that Clients trusts state the
	// visitor's country; "" = none.
	CountryHeader string
	// ProxyProtocol expects a PROXY header, version 1 or 2, from every trusted peer.
	ProxyProtocol bool
	// MaxConns bounds the connections of the lane and those that it handed off.
	// 0 = DefaultMaxConns.
	MaxConns int

	Log *slog.Logger // nil = discard
}

// DefaultMaxConns costs 100 MB at most while idle; the caller lowers it below the
// limit of descriptors.
const DefaultMaxConns = 20_000

// Lane answers connections until it is shut down. It is safe for many goroutines.
type Lane struct {
	// Set once in New.
	cfg     Config
	handoff *handoffListener
	gate    *connlimit.Gate // of requests at net/http

	clock      clock
	conns      connections
	draining   atomic.Bool  // every answer closes its connection
	drainBegan atomic.Int64 // by the clock
	stats      counters

	base   context.Context // of look-ups; ends when connections are closed
	cancel context.CancelFunc
	pool   pool
	count  atomic.Uint32 // of connections; spreads them over the pool
}

// New returns a Lane; Cache, Visitors and Recorder are required. It starts nothing.
func New(cfg Config) (*Lane, error) {
	if cfg.Cache == nil || cfg.Visitors == nil || cfg.Recorder == nil {
		return nil, errors.New("lane: expected a cache, visitors and a recorder")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxConns <= 0 {
		cfg.MaxConns = DefaultMaxConns
	}
	l := &Lane{cfg: cfg, handoff: newHandoffListener()}
	l.gate = connlimit.NewGate(cfg.MaxConns, cfg.Clients, func() int64 { return micros(l.clock.now()) },
		func() { l.conns.evictRequests(l.gate, l.cfg.MaxConns, &l.stats) })
	l.base, l.cancel = context.WithCancel(context.Background())
	l.conns.init()
	l.clock.set(time.Now())
	return l, nil
}

// Listener accepts the connections that the lane hands off, for an http.Server.
// Its connections are *tls.Conn where HTTP/2 was agreed on, and otherwise give
// ConnectionState and CloseWrite as far as what is below them does.
func (l *Lane) Listener() net.Listener { return l.handoff }

// Shutdown ends the lane's connections: from now on every answer closes its connection, and one
// that is silent for DrainIdle is closed. It returns once none
// is left, those included that wait for net/http to take them; when ctx ends the rest
// is closed, and that is its error. Run must be running. Connections that are accepted
// after Shutdown are closed.
func (l *Lane) Shutdown(ctx context.Context) error {
	l.BeginDrain()
	var err error
	select {
	case <-l.conns.none():
	case <-ctx.Done():
		err = fmt.Errorf("shut the lane down: %w", context.Cause(ctx))
	}
	l.handoff.close()
	l.cancel()
	l.conns.closeServing()
	<-l.conns.none()
	return err
}

// BeginDrain has every answer close its connection, and begins to close connections that
// are silent. New connections are still answered, once.
func (l *Lane) BeginDrain() {
	if !l.draining.Swap(true) {
		l.drainBegan.Store(l.clock.now())
		l.clock.speedUp()
	}
}

// None returns a channel that is closed at a moment when the lane has no connection.
func (l *Lane) None() <-chan struct{} { return l.conns.none() }

// Stats are counters since the start. Hits are not counted: each is a click.
type Stats struct {
	Open      int    // connections in the lane, those included that linger
	AtHTTP    int    // connections at net/http
	Accepted  uint64 // connections
	HandedOff uint64 // to net/http
	Returned  uint64 // from net/http
	Refused   uint64 // not accepted: no descriptors, or MaxConns and none could be evicted
	Evicted   uint64 // closed because of MaxConns
	TimedOut  uint64 // closed because they were slow or idle
	Panics    uint64 // answers that failed because of a bug; always 0
}

type counters struct {
	accepted, handedOff, returned, refused, evicted, timedOut, panics atomic.Uint64
}

// Stats returns the counters.
func (l *Lane) Stats() Stats {
	open, atHTTP := l.conns.count()
	return Stats{
		Open: open, AtHTTP: atHTTP,
		Accepted: l.stats.accepted.Load(), HandedOff: l.stats.handedOff.Load(), Returned: l.stats.returned.Load(), Refused: l.stats.refused.Load(),
		Evicted: l.stats.evicted.Load(), TimedOut: l.stats.timedOut.Load(), Panics: l.stats.panics.Load(),
	}
}
