package lane

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/clientaddr"
)

// The PROXY protocol, versions 1 and 2 (haproxy.org/download/3.2/doc/proxy-protocol.txt):
// a header in front of everything else on a connection, by which a proxy says whose
// connection it is. It is believed from trusted peers only, and these must send it:
// guessing whether one is there would let clients write it.

const (
	proxyV1    = "PROXY "
	proxyV1Max = 107                          // with CRLF, says the specification
	proxyV2    = "\r\n\r\n\x00\r\nQUIT\n"     // its signature
	proxyV2Max = len(proxyV2) + 4 + (2 << 10) // addresses and extensions; real ones have some hundred bytes
)

var errProxy = errors.New("lane: malformed PROXY header")

// proxied is a connection whose client was named by a proxy.
type proxied struct {
	net.Conn
	remote net.Addr
	rest   []byte // behind the header
}

// RemoteAddr returns the client's address, or the proxy's when it named none.
func (p *proxied) RemoteAddr() net.Addr { return p.remote }

// CloseWrite ends our half.
func (p *proxied) CloseWrite() error {
	if c, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// take returns what was read behind the header, once.
func (p *proxied) take() []byte {
	rest := p.rest
	p.rest = nil
	return rest
}

// readProxy reads the header. It blocks; who closes nc ends that.
func readProxy(nc net.Conn) (*proxied, error) {
	buf := make([]byte, 0, 512)
	for {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		n, err := nc.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		size, client, bad := parseProxy(buf)
		switch {
		case bad != nil:
			return nil, bad
		case size > 0:
			p := &proxied{Conn: nc, remote: nc.RemoteAddr(), rest: append([]byte(nil), buf[size:]...)}
			if client.IsValid() {
				p.remote = net.TCPAddrFromAddrPort(client)
			}
			return p, nil
		case err != nil:
			return nil, err
		}
	}
}

// parseProxy returns the size of the header, 0 while it is incomplete, and the
// client, the zero value when the proxy speaks for itself.
func parseProxy(b []byte) (size int, client netip.AddrPort, err error) {
	switch {
	case len(b) >= len(proxyV2) && string(b[:len(proxyV2)]) == proxyV2:
		return parseProxyV2(b)
	case len(b) >= len(proxyV1) && string(b[:len(proxyV1)]) == proxyV1:
		return parseProxyV1(b)
	case strings.HasPrefix(proxyV2, string(b)), strings.HasPrefix(proxyV1, string(b)):
		return 0, netip.AddrPort{}, nil
	}
	return 0, netip.AddrPort{}, errProxy
}

// parseProxyV1 reads "PROXY TCP4 client server port port" CRLF.
func parseProxyV1(b []byte) (size int, client netip.AddrPort, err error) {
	end := bytes.Index(b[:min(len(b), proxyV1Max)], []byte("\r\n"))
	if end < 0 {
		if len(b) >= proxyV1Max {
			err = errProxy
		}
		return 0, netip.AddrPort{}, err
	}
	words := strings.Split(string(b[:end]), " ")
	if words[1] == "UNKNOWN" {
		return end + 2, netip.AddrPort{}, nil
	}
	if len(words) != 6 || words[1] != "TCP4" && words[1] != "TCP6" {
		return 0, netip.AddrPort{}, errProxy
	}
	from, err1 := netip.ParseAddr(words[2])
	to, err2 := netip.ParseAddr(words[3])
	port, err3 := netip.ParseAddrPort("0.0.0.0:" + words[4])
	_, err4 := netip.ParseAddrPort("0.0.0.0:" + words[5])
	four := words[1] == "TCP4"
	if errors.Join(err1, err2, err3, err4) != nil || from.Is4() != four || to.Is4() != four || from.Zone() != "" {
		return 0, netip.AddrPort{}, errProxy
	}
	return end + 2, netip.AddrPortFrom(from, port.Port()), nil
}

// parseProxyV2 reads the binary header; extensions are skipped.
func parseProxyV2(b []byte) (size int, client netip.AddrPort, err error) {
	const fixed = len(proxyV2) + 4
	if len(b) < fixed {
		return 0, netip.AddrPort{}, nil
	}
	command, family := b[len(proxyV2)], b[len(proxyV2)+1]
	size = fixed + int(binary.BigEndian.Uint16(b[fixed-2:]))
	switch {
	case command>>4 != 2, command&0xf > 1, size > proxyV2Max:
		return 0, netip.AddrPort{}, errProxy
	case len(b) < size:
		return 0, netip.AddrPort{}, nil
	case command&0xf == 0: // LOCAL: the proxy itself, such as a health check
		return size, netip.AddrPort{}, nil
	}
	addresses := b[fixed:size]
	var from netip.Addr
	var port []byte
	switch family {
	case 0x11: // TCP over IPv4
		if len(addresses) < 12 {
			return 0, netip.AddrPort{}, errProxy
		}
		from, port = netip.AddrFrom4([4]byte(addresses)), addresses[8:]
	case 0x21: // TCP over IPv6
		if len(addresses) < 36 {
			return 0, netip.AddrPort{}, errProxy
		}
		from, port = netip.AddrFrom16([16]byte(addresses)), addresses[32:]
	default: // a client that has no such address
		return size, netip.AddrPort{}, nil
	}
	return size, netip.AddrPortFrom(from, binary.BigEndian.Uint16(port)), nil
}

// ProxyListener reads the PROXY header of every trusted peer for a server without a
// lane. A connection whose header is malformed, or does not come within headLimit,
// gives an error when it is read.
func ProxyListener(l net.Listener, trusted clientaddr.Rule) net.Listener {
	return &proxyListener{Listener: l, trusted: trusted}
}

type proxyListener struct {
	net.Listener
	trusted clientaddr.Rule
}

// Accept never waits for a client: its header is read by whoever uses the connection.
func (l *proxyListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err // as it is: net/http asks it whether to go on
	}
	if !l.trusted.Trusts(clientaddr.Peer(nc.RemoteAddr().String())) {
		return nc, nil
	}
	return &lazyProxied{Conn: nc}, nil
}

// lazyProxied reads its header at first use, which net/http makes in the
// connection's own goroutine.
type lazyProxied struct {
	net.Conn // the peer's; replaced by nothing, so that Close never waits
	once     sync.Once
	read     replay      // set by once
	remote   net.Addr    // set by once
	err      error       // set by once
	named    atomic.Bool // remote is the client's
}

func (p *lazyProxied) greet() {
	p.once.Do(func() {
		p.remote = p.Conn.RemoteAddr()
		if p.err = p.SetReadDeadline(time.Now().Add(headLimit)); p.err != nil {
			return
		}
		var named *proxied
		if named, p.err = readProxy(p.Conn); p.err != nil {
			return
		}
		p.remote = named.RemoteAddr()
		p.read = replay{Conn: p.Conn, rest: named.take()}
		p.named.Store(true)
		p.err = p.SetReadDeadline(time.Time{})
	})
}

// KnownAddr returns the client's address, or the peer's while the header has not come.
func (p *lazyProxied) KnownAddr() net.Addr {
	if p.named.Load() {
		return p.remote
	}
	return p.Conn.RemoteAddr()
}

// RemoteAddr returns the client's address.
func (p *lazyProxied) RemoteAddr() net.Addr {
	p.greet()
	return p.remote
}

// Read returns what comes behind the header.
func (p *lazyProxied) Read(b []byte) (int, error) {
	p.greet()
	if p.err != nil {
		return 0, p.err
	}
	return p.read.Read(b)
}

// CloseWrite ends our half.
func (p *lazyProxied) CloseWrite() error { return (&replay{Conn: p.Conn}).CloseWrite() }
