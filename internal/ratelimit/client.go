package ratelimit

import "net/netip"

// ClientNetwork is what counts as one client: an IPv4 address, or the /64 of an IPv6
// address, which is the least that one subscriber gets (RFC 6177). IPv4 within IPv6 is
// IPv4, and zones do not matter. An address that is not known has the zero Prefix.
func ClientNetwork(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	network, _ := addr.Prefix(min(addr.BitLen(), 64)) // fails of the zero Addr only
	return network
}

// ClientSurroundings is the least that a provider hands out to a site: the /24 of an IPv4
// address, the /48 of an IPv6 address (RFC 6177). Who has one address of it often has
// many. An address that is not known has the zero Prefix.
func ClientSurroundings(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 48
	if addr.Is4() {
		bits = 24
	}
	network, _ := addr.Prefix(bits) // fails of the zero Addr only
	return network
}

// ClientBucket names the bucket of a client, by its ClientNetwork. An invalid address has
// a bucket, too: all clients without one share it.
func ClientBucket(addr netip.Addr) string {
	network := ClientNetwork(addr)
	if network.Addr().Is6() {
		return network.String()
	}
	return network.Addr().String()
}
