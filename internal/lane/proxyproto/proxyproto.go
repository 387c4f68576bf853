// Package proxyproto reads the PROXY protocol, versions 1 and 2
// (haproxy.org/download/3.2/doc/proxy-protocol.txt): a header before everything else on a
// connection, by which a proxy names the client. It is accepted from trusted peers only, and
// required of them: guessing whether it is there would let clients write it.
package proxyproto

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

const (
	prefixV1 = "PROXY "
	maxV1    = 107                           // with CRLF, by the specification
	prefixV2 = "\r\n\r\n\x00\r\nQUIT\n"      // its signature
	maxV2    = len(prefixV2) + 4 + (2 << 10) // addresses and extensions; common ones have some hundred bytes

	headerTimeout = 10 * time.Second // of connections of Listener
)

var errMalformed = errors.New("proxyproto: malformed PROXY header")

// Conn is a connection whose header was read. It reads what follows the header.
type Conn struct {
	net.Conn
	remote net.Addr
	rest   []byte // read with the header
}

// Read reads the header. It blocks; closing nc ends that.
func Read(nc net.Conn) (*Conn, error) {
	buf := make([]byte, 0, 512)
	for {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		n, err := nc.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		size, client, bad := parse(buf)
		switch {
		case bad != nil:
			return nil, bad
		case size > 0:
			c := &Conn{Conn: nc, remote: nc.RemoteAddr(), rest: append([]byte(nil), buf[size:]...)}
			if client.IsValid() {
				c.remote = net.TCPAddrFromAddrPort(client)
			}
			return c, nil
		case err != nil:
			return nil, err
		}
	}
}

// RemoteAddr returns the client's address, or the proxy's if it named none.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// TakeBuffered returns what was read after the header; Read of c does not return it again.
func (c *Conn) TakeBuffered() []byte {
	rest := c.rest
	c.rest = nil
	return rest
}

// Read returns what follows the header.
func (c *Conn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 || len(p) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// CloseWrite closes our half.
func (c *Conn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(nc net.Conn) error {
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// parse returns the size of the header, 0 while it is incomplete, and the
// client, the zero value when the proxy names none.
func parse(b []byte) (size int, client netip.AddrPort, err error) {
	switch {
	case len(b) >= len(prefixV2) && string(b[:len(prefixV2)]) == prefixV2:
		return parseV2(b)
	case len(b) >= len(prefixV1) && string(b[:len(prefixV1)]) == prefixV1:
		return parseV1(b)
	case strings.HasPrefix(prefixV2, string(b)), strings.HasPrefix(prefixV1, string(b)):
		return 0, netip.AddrPort{}, nil
	}
	return 0, netip.AddrPort{}, errMalformed
}

// parseV1 reads "PROXY TCP4 client server port port" CRLF.
func parseV1(b []byte) (size int, client netip.AddrPort, err error) {
	end := bytes.Index(b[:min(len(b), maxV1)], []byte("\r\n"))
	if end < 0 {
		if len(b) >= maxV1 {
			err = errMalformed
		}
		return 0, netip.AddrPort{}, err
	}
	words := strings.Split(string(b[:end]), " ")
	if words[1] == "UNKNOWN" {
		return end + 2, netip.AddrPort{}, nil
	}
	if len(words) != 6 || words[1] != "TCP4" && words[1] != "TCP6" {
		return 0, netip.AddrPort{}, errMalformed
	}
	from, err1 := netip.ParseAddr(words[2])
	to, err2 := netip.ParseAddr(words[3])
	port, err3 := netip.ParseAddrPort("0.0.0.0:" + words[4])
	_, err4 := netip.ParseAddrPort("0.0.0.0:" + words[5])
	four := words[1] == "TCP4"
	if errors.Join(err1, err2, err3, err4) != nil || from.Is4() != four || to.Is4() != four || from.Zone() != "" {
		return 0, netip.AddrPort{}, errMalformed
	}
	return end + 2, netip.AddrPortFrom(from, port.Port()), nil
}

// parseV2 reads the binary header; extensions are skipped.
func parseV2(b []byte) (size int, client netip.AddrPort, err error) {
	const fixed = len(prefixV2) + 4
	if len(b) < fixed {
		return 0, netip.AddrPort{}, nil
	}
	command, family := b[len(prefixV2)], b[len(prefixV2)+1]
	size = fixed + int(binary.BigEndian.Uint16(b[fixed-2:]))
	switch {
	case command>>4 != 2, command&0xf > 1, size > maxV2:
		return 0, netip.AddrPort{}, errMalformed
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
			return 0, netip.AddrPort{}, errMalformed
		}
		from, port = netip.AddrFrom4([4]byte(addresses)), addresses[8:]
	case 0x21: // TCP over IPv6
		if len(addresses) < 36 {
			return 0, netip.AddrPort{}, errMalformed
		}
		from, port = netip.AddrFrom16([16]byte(addresses)), addresses[32:]
	default: // a client that has no such address
		return size, netip.AddrPort{}, nil
	}
	return size, netip.AddrPortFrom(from, binary.BigEndian.Uint16(port)), nil
}

// Listener reads the PROXY header of every trusted peer for a server without a
// lane. A connection whose header is malformed or late gives an error when it is read.
func Listener(l net.Listener, trusted clientaddr.Rule) net.Listener {
	return &listener{Listener: l, trusted: trusted}
}

type listener struct {
	net.Listener
	trusted clientaddr.Rule
}

// Accept never waits for a client: its header is read at the first use of the connection.
func (l *listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err // unchanged: net/http decides by it whether to continue
	}
	if !l.trusted.Trusts(clientaddr.Peer(nc.RemoteAddr().String())) {
		return nc, nil
	}
	return &lazyConn{Conn: nc}, nil
}

// lazyConn reads its header at first use, which net/http makes in the
// connection's own goroutine.
type lazyConn struct {
	net.Conn // the peer's; never replaced, so that Close never waits
	once     sync.Once
	read     *Conn       // set by once
	remote   net.Addr    // set by once
	err      error       // set by once
	named    atomic.Bool // remote is the client's
}

func (c *lazyConn) readHeader() {
	c.once.Do(func() {
		c.remote = c.Conn.RemoteAddr()
		if c.err = c.SetReadDeadline(time.Now().Add(headerTimeout)); c.err != nil {
			return
		}
		if c.read, c.err = Read(c.Conn); c.err != nil {
			return
		}
		c.remote = c.read.RemoteAddr()
		c.named.Store(true)
		c.err = c.SetReadDeadline(time.Time{})
	})
}

// KnownAddr returns the client's address, or the peer's until the header has come.
func (c *lazyConn) KnownAddr() net.Addr {
	if c.named.Load() {
		return c.remote
	}
	return c.Conn.RemoteAddr()
}

// RemoteAddr returns the client's address.
func (c *lazyConn) RemoteAddr() net.Addr {
	c.readHeader()
	return c.remote
}

// Read returns what follows the header.
func (c *lazyConn) Read(b []byte) (int, error) {
	c.readHeader()
	if c.err != nil {
		return 0, c.err
	}
	return c.read.Read(b)
}

// CloseWrite closes our half.
func (c *lazyConn) CloseWrite() error { return closeWrite(c.Conn) }
