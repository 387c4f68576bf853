package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// hosts goes around the servers. Unlike the provider of the client it leaves names to the dialer, which resolves them anew
// each time: servers may move.
type hosts struct {
	mu      sync.Mutex
	servers []string // guarded by mu, as the next two
	next    int
	tried   int // since the last connection
}

// Init implements zk.HostProvider.
func (h *hosts) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers = servers
	return nil
}

// Len implements zk.HostProvider.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next implements zk.HostProvider: the client pauses for a second when all were tried.
func (h *hosts) Next() (server string, around bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next%len(h.servers)]
	around = h.tried >= len(h.servers)
	if around {
		h.tried = 0
	}
	h.next, h.tried = h.next+1, h.tried+1
	return server, around
}

// Connected implements zk.HostProvider.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = 0
}

// handshakeLimit bounds what TLS needs after a connection was accepted. With the second for which the client waits for that it is less
// than a session, so that another server is tried before the client is replaced.
const handshakeLimit = 2 * time.Second

// dial connects to a server, with TLS if it is set. The error says in one line what keeps the two apart.
func (c Config) dial(ctx context.Context, address string, limit time.Duration) (net.Conn, error) {
	nc, err := (&net.Dialer{Timeout: limit}).DialContext(ctx, "tcp", address)
	if err != nil || c.TLS == nil {
		return nc, err //nolint:wrapcheck // names the address
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	settings := c.TLS.Clone()
	settings.ServerName = host
	ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	secured := tls.Client(nc, settings)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = nc.Close() // the handshake says what is wrong
		return nil, unsecured(address, err)
	}
	return secured, nil
}

// unsecured says why a handshake failed.
func unsecured(address string, err error) error {
	_, otherwise := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case otherwise, ended(err), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s does not respond to TLS, it may be the port for connections without: %w", address, err)
	case refusedUs(err):
		return uncertified(address, err)
	}
	return fmt.Errorf("%s: %w", address, err)
}

// unanswered says why a server ended a connection before it answered anything.
func (c Config) unanswered(address string, err error) error {
	switch {
	case refusedUs(err): // with TLS 1.3 it does after the handshake
		return uncertified(address, err)
	case c.TLS == nil && (ended(err) || errors.Is(err, errForeign)):
		return fmt.Errorf("%s does not respond as ZooKeeper, it may not serve now, or be the port for TLS (?tls=true): %w", address, err)
	}
	return fmt.Errorf("%s does not respond: %w", address, err)
}

func uncertified(address string, err error) error {
	return fmt.Errorf("%s refuses TLS, perhaps because it requires a certificate of its authority (?cert=FILE&key=FILE): %w", address, err)
}

// ended reports whether the other side ended the connection.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// refusedUs reports whether the other side ended TLS with an alert.
func refusedUs(err error) bool {
	alert, is := errors.AsType[*net.OpError](err)
	return is && alert.Op == "remote error"
}

// conn waits for no answer longer than a session lasts. The client would wait seven times as long for the first, and for ever for
// its second half.
type conn struct {
	net.Conn

	first func(error) // is told what came of the first read; nil once it was
}

// errForeign says that an answer is none of ZooKeeper.
var errForeign = errors.New("it answered something else")

// Read implements net.Conn. What answers first with a length of 16 MiB or more is no ZooKeeper, but perhaps TLS or HTTP; the client would take
// that much memory for it.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.first == nil || n == 0 && err == nil {
		return n, err //nolint:wrapcheck // as net.Conn has it
	}
	switch {
	case n > 0 && b[0] != 0:
		n, err = 0, errForeign
		c.first(err)
	case n > 0:
		c.first(nil)
	default:
		c.first(err)
	}
	c.first = nil
	return n, err //nolint:wrapcheck // as net.Conn has it
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	if latest := time.Now().Add(session); t.IsZero() || t.After(latest) {
		t = latest
	}
	return c.Conn.SetReadDeadline(t)
}

// quiet drops what the client says of connections: calls that fail say why.
type quiet struct{}

// Printf implements zk.Logger.
func (quiet) Printf(string, ...any) {}
