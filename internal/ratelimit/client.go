package ratelimit

import "net/netip"

// ClientBucket names the bucket of a client: an IPv4 address, or the /64 of an IPv6
// address, which is the least that one subscriber gets (RFC 6177). IPv4 within IPv6
// is IPv4, and zones do not matter. An invalid address has a bucket, too: all
// clients without one share it.
func ClientBucket(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr.String()
	}
	prefix, err := addr.Prefix(64)
	if err != nil {
		return addr.String()
	}
	return prefix.String()
}
