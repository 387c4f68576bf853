package weburl

import (
	"net/netip"
	"slices"
)

// maxCarried is how many IPv4 addresses an IPv6 address may carry, all forms together.
const maxCarried = 5

// appendCarried appends the IPv4 addresses that an IPv6 address carries for a router or a
// translator. Where a form can be read in several ways, each reading counts: what is ours
// or banned must not be reached by any.
//
//	::a.b.c.d            IPv4-compatible (RFC 4291, section 2.5.5.1)
//	::ffff:0:a.b.c.d     IPv4-translated, SIIT (RFC 2765, section 2.1)
//	64:ff9b::/96         NAT64 (RFC 6052)
//	64:ff9b:1::/48       NAT64 of a network's own (RFC 8215), with a prefix of /48, /56, /64 or /96
//	2001::/32            Teredo: its server, and the client with all bits turned (RFC 4380)
//	2002::/16            6to4 (RFC 3056)
//	…:0:5efe:a.b.c.d     ISATAP, below any prefix (RFC 5214)
//
// IPv4-mapped addresses (::ffff:a.b.c.d) are IPv4 addresses wherever they are read. A
// network that translates with a prefix of its own cannot be known from the address.
func appendCarried(all []netip.Addr, a netip.Addr) []netip.Addr {
	if !a.Is6() {
		return all
	}
	b := a.As16()
	add := func(b0, b1, b2, b3 byte) {
		if v4 := netip.AddrFrom4([4]byte{b0, b1, b2, b3}); !slices.Contains(all, v4) {
			all = append(all, v4)
		}
	}
	switch start := [12]byte(b[:12]); {
	case start == [12]byte{}, start == [12]byte{8: 0xff, 9: 0xff}, start == [12]byte{0, 0x64, 0xff, 0x9b}:
		add(b[12], b[13], b[14], b[15])
	case [6]byte(b[:6]) == [6]byte{0, 0x64, 0xff, 0x9b, 0, 1}:
		appendLocalNAT64(b, add)
	case [4]byte(b[:4]) == [4]byte{0x20, 0x01}:
		add(b[4], b[5], b[6], b[7])
		add(^b[12], ^b[13], ^b[14], ^b[15])
	case b[0] == 0x20 && b[1] == 0x02:
		add(b[2], b[3], b[4], b[5])
	}
	if b[8]&^0x03 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe { // whatever the bits of group and uniqueness
		add(b[12], b[13], b[14], b[15])
	}
	return all
}

// appendLocalNAT64 adds what the layouts of RFC 6052, section 2.2 read: the octet in the
// middle is left out, and everything behind the address is zero.
func appendLocalNAT64(b [16]byte, add func(b0, b1, b2, b3 byte)) {
	zeroFrom := func(i int) bool { return b[8] == 0 && !slices.ContainsFunc(b[i:], func(c byte) bool { return c != 0 }) }
	if b[12]|b[13]|b[14]|b[15] != 0 || zeroFrom(6) {
		add(b[12], b[13], b[14], b[15]) // /96
	}
	if zeroFrom(6) {
		return
	}
	if zeroFrom(11) && b[6]|b[7] != 0 {
		add(b[6], b[7], b[9], b[10]) // /48
	}
	if zeroFrom(12) && b[7]|b[9] != 0 {
		add(b[7], b[9], b[10], b[11]) // /56
	}
	if zeroFrom(13) && b[9]|b[10] != 0 {
		add(b[9], b[10], b[11], b[12]) // /64
	}
}
