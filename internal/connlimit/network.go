package connlimit

import (
	"net"
	"net/netip"

	"curt/internal/clientaddr"
)

// Network is whose connection it is: the /24 of an IPv4 address or the /48 of an IPv6
// address in one word, so that it can be set and read without a lock. The zero Network is
// that of addresses that are not known.
type Network uint64

const ipv4Network, ipv6Network Network = 1 << 56, 2 << 56

// NetworkOf returns the network of an address; IPv4 within IPv6 is IPv4.
func NetworkOf(a netip.Addr) Network {
	switch a = a.Unmap(); {
	case a.Is4():
		b := a.As4()
		return ipv4Network | Network(b[0])<<16 | Network(b[1])<<8 | Network(b[2])
	case a.Is6():
		n := ipv6Network
		for i, b := range a.As16() {
			if i < 6 {
				n |= Network(b) << (40 - 8*i)
			}
		}
		return n
	}
	return 0
}

// networkOf is NetworkOf the peer of a connection. A PROXY header that has not come yet is
// not waited for.
func networkOf(nc net.Conn) Network {
	address := nc.RemoteAddr
	if named, ok := nc.(interface{ KnownAddr() net.Addr }); ok {
		address = named.KnownAddr
	}
	switch a := address().(type) {
	case *net.TCPAddr:
		return NetworkOf(a.AddrPort().Addr())
	case nil:
		return 0
	default:
		return NetworkOf(clientaddr.Peer(a.String()))
	}
}
