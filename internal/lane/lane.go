package lane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"curt/internal/cache"
	"curt/internal/clientaddr"
	"curt/internal/connlimit"
	"curt/internal/redirect"
)

// Config says what a Lane stands in front of.
type Config struct {
	Cache    *cache.Tiered     // prepared by redirect.NewPreparer
	Visitors *redirect.Handler // decides and writes whatever is not prepared
	Recorder redirect.Recorder
	Clients  clientaddr.Rule // whose X-Forwarded-For and PROXY header are believed

	// Pages are first path segments that are no codes, such as "healthz".
	Pages []string
	// TLS, when set, is spoken on every connection. Its NextProtos say what is
	// offered; h2 goes to net/http.
	TLS *tls.Config
	// ProxyProtocol expects a PROXY header, version 1 or 2, from every trusted peer.
	ProxyProtocol bool
	// MaxConns bounds the connections of the lane and those that it handed over.
	// 0 = DefaultMaxConns.
	MaxConns int

	Log *slog.Logger // nil = discard
}

// DefaultMaxConns costs 100 MB at most while idle; a descriptor limit that is lower
// is the caller's to know.
const DefaultMaxConns = 20_000

// Lane answers connections until it is drained. It is safe for many goroutines.
type Lane struct {
	// Set once in New.
	cfg    Config
	handed *handover
	gate   *connlimit.Gate // of requests at net/http

	clock   clock
	conns   connections
	leaving atomic.Bool  // every answer closes its connection
	left    atomic.Int64 // the tick at which leaving began
	stats   counters

	base   context.Context // of look-ups; ends when connections are cut off
	cancel context.CancelFunc
	spare  scratches
	count  atomic.Uint32 // of connections; spreads them over spare
}

// New returns a Lane; Cache, Visitors and Recorder are required. It starts nothing.
func New(cfg Config) (*Lane, error) {
	if cfg.Cache == nil || cfg.Visitors == nil || cfg.Recorder == nil {
		return nil, errors.New("lane: needs a cache, visitors and a recorder")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxConns <= 0 {
		cfg.MaxConns = DefaultMaxConns
	}
	l := &Lane{cfg: cfg, handed: newHandover()}
	l.gate = connlimit.NewGate(cfg.MaxConns, cfg.Clients, func() int64 { return micros(l.clock.now()) },
		func() { l.conns.crowded(l.gate, l.cfg.MaxConns, &l.stats) })
	l.base, l.cancel = context.WithCancel(context.Background())
	l.conns.init()
	l.clock.set(time.Now())
	return l, nil
}

// Listener accepts the connections that the lane hands over, for an http.Server.
// Its connections are *tls.Conn where HTTP/2 was agreed on, and otherwise give
// ConnectionState and CloseWrite as far as what is below them does.
func (l *Lane) Listener() net.Listener { return l.handed }

// Serve accepts connections until the listener is closed, and returns its error. It
// may be called for several listeners.
func (l *Lane) Serve(listener net.Listener) error {
	var pause time.Duration
	for {
		nc, err := listener.Accept()
		if err == nil {
			pause = 0
			l.take(nc)
			continue
		}
		// Out of descriptors: a busy loop would take the processor from those who
		// could close some.
		if !exhausted(err) {
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		l.stats.refused.Add(1)
		time.Sleep(pause)
	}
}

// take starts the life of a connection.
func (l *Lane) take(nc net.Conn) {
	c := newConn(l, nc)
	if !l.conns.add(c, l.cfg.MaxConns, &l.stats) {
		_ = nc.Close()
		return
	}
	l.stats.accepted.Add(1)
	go c.run()
}

// Drain ends the lane's connections: from now on every answer asks its client to
// leave, and a connection that is silent for Silence is closed. It returns once none
// is left, those waiting for net/http to take them included; when ctx ends the rest
// is cut off, and that is its error. Run must be running. Whatever is accepted
// after Drain is closed.
func (l *Lane) Drain(ctx context.Context) error {
	l.Leave()
	var err error
	select {
	case <-l.conns.none():
	case <-ctx.Done():
		err = fmt.Errorf("drain the lane: %w", context.Cause(ctx))
	}
	l.handed.close()
	l.cancel()
	l.conns.shut()
	<-l.conns.none()
	return err
}

// Leave asks every client to leave with its next answer, and begins to close those
// that are silent. Connections that come are still answered, once.
func (l *Lane) Leave() {
	if !l.leaving.Swap(true) {
		l.left.Store(l.clock.now())
		l.clock.hurry()
	}
}

// None returns a channel that is closed at a moment when the lane has no connection.
func (l *Lane) None() <-chan struct{} { return l.conns.none() }

// Silence is how long a leaving lane waits for a connection's next request. One that
// is closed while its client sends a request fails that request; one that is silent
// for so long most likely has none to send.
const Silence = time.Second

// exhausted reports whether Accept failed for want of descriptors or memory, or
// because the client had left: errors after which the next may succeed.
func exhausted(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
