package zookeeper

import (
	"context"
	"net"
	"sync"
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

func dial(network, address string, timeout time.Duration) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: timeout}).DialContext(context.Background(), network, address) // the client has no context
	if err != nil {
		return nil, err
	}
	return &conn{c}, nil
}

// conn waits for no answer longer than a session lasts. The client would wait seven times as long for the first.
type conn struct{ net.Conn }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	if latest := time.Now().Add(session); t.After(latest) {
		t = latest
	}
	return c.Conn.SetReadDeadline(t)
}

// quiet drops what the client says of connections: calls that fail say why.
type quiet struct{}

// Printf implements zk.Logger.
func (quiet) Printf(string, ...any) {}
