// Package relay passes TCP connections on to a server, and can have those that subscribed to
// something fall silent, or those that are open, or new ones: both ends keep them, and hear
// nothing any more. No packet filter is needed for that, and what else the server is asked
// goes on.
package relay

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// Relay is safe for many goroutines.
type Relay struct {
	target string
	listen net.Listener
	mute   atomic.Bool
	hold   atomic.Bool
	owned  sync.WaitGroup

	mu    sync.Mutex
	pairs map[*pair]struct{} // guarded by mu; nil = closed
}

// pair is a connection of a client and its own one to the server.
type pair struct {
	client, server net.Conn
	subscribed     atomic.Bool // the client asked to be told something
	silent         atomic.Bool // something was withheld: the rest would make no sense
}

// Start listens on a free port of the loopback for what goes to target, host:port. The
// caller closes it.
func Start(target string) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // bound at once
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	r := &Relay{target: target, listen: l, pairs: map[*pair]struct{}{}}
	r.owned.Go(r.accept)
	return r, nil
}

// Addr is where clients connect, host:port.
func (r *Relay) Addr() string { return r.listen.Addr().String() }

// Mute has connections that subscribed, or will, fall silent; false closes those that were,
// and lets new ones through.
func (r *Relay) Mute(on bool) {
	r.mute.Store(on)
	if on {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.pairs {
		if p.silent.Load() {
			p.close()
		}
	}
}

// Silence has all connections that are open fall silent for good. New ones are passed on.
func (r *Relay) Silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.pairs {
		p.silent.Store(true)
	}
}

// Hold has new connections be silent, for good, as long as it is on.
func (r *Relay) Hold(on bool) { r.hold.Store(on) }

// Close ends all connections and returns when their goroutines have ended.
func (r *Relay) Close() error {
	err := r.listen.Close()
	r.mu.Lock()
	for p := range r.pairs {
		p.close()
	}
	r.pairs = nil
	r.mu.Unlock()
	r.owned.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("relay: %w", err)
	}
	return nil
}

func (r *Relay) accept() {
	for {
		client, err := r.listen.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("tcp", r.target) //nolint:noctx // refused or not, at once: both are this machine's
		if err != nil {
			_ = client.Close()
			continue
		}
		p := &pair{client: client, server: server}
		p.silent.Store(r.hold.Load())
		if !r.keep(p) {
			p.close()
			return
		}
		r.owned.Go(func() { r.pass(p) })
	}
}

func (r *Relay) keep(p *pair) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pairs == nil {
		return false
	}
	r.pairs[p] = struct{}{}
	return true
}

// pass copies both ways until an end closes.
func (r *Relay) pass(p *pair) {
	var back sync.WaitGroup
	back.Go(func() { r.copy(p, p.client, p.server, false) })
	r.copy(p, p.server, p.client, true)
	back.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pairs, p)
}

func (r *Relay) copy(p *pair, to, from net.Conn, asks bool) {
	defer p.close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if asks && bytes.Contains(bytes.ToUpper(b[:n]), []byte("SUBSCRIBE\r\n")) {
			p.subscribed.Store(true)
		}
		if p.silent.Load() || r.mute.Load() && p.subscribed.Load() {
			p.silent.Store(true)
			continue
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func (p *pair) close() {
	_ = p.client.Close() // both are only ever closed; what is lost with them is nobody's
	_ = p.server.Close()
}
