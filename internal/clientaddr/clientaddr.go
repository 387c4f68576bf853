// Package clientaddr finds the address of the client behind proxies, by one rule
// for everything that limits, counts or locates by address.
//
// The client is the peer of the connection. Only when the peer is a trusted proxy
// is X-Forwarded-For read, all of its lines as one list from the right: the first
// entry that is no trusted proxy is the client, because everything left of it was
// written by the client itself. A list with an entry that is no address is not
// believed at all.
//
// It imports the standard library only.
package clientaddr

import (
	"net/netip"
	"slices"
	"strings"
)

// Rule says whose X-Forwarded-For is believed. The zero Rule believes nobody's.
type Rule struct {
	trusted []netip.Prefix // set once in New
}

// New returns the rule that trusts the proxies within the prefixes.
func New(trusted ...netip.Prefix) Rule {
	r := Rule{trusted: make([]netip.Prefix, 0, len(trusted))}
	for _, p := range trusted {
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		r.trusted = append(r.trusted, p.Masked())
	}
	return r
}

// Trusts reports whether addr is a trusted proxy.
func (r Rule) Trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(r.trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// Of returns the client's address, given the peer of the connection and all lines
// of X-Forwarded-For in the order received. When the whole list is trusted, its
// leftmost entry is the client: a trusted proxy vouched for it. The result is
// never an IPv4 address mapped into IPv6 and has no zone.
func (r Rule) Of(peer netip.Addr, forwarded []string) netip.Addr {
	peer = canonical(peer)
	if len(forwarded) == 0 || !r.Trusts(peer) {
		return peer
	}
	client := peer
	for _, line := range slices.Backward(forwarded) {
		for rest, more := line, true; more; {
			var entry string
			rest, entry, more = cutLast(rest)
			addr, ok := parse(entry)
			if !ok {
				return peer
			}
			if !r.Trusts(addr) {
				return addr
			}
			client = addr
		}
	}
	return client
}

// Peer returns the address of an http.Request.RemoteAddr; the zero Addr when it
// has none, as on a Unix socket.
func Peer(remoteAddr string) netip.Addr {
	ap, err := netip.ParseAddrPort(remoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return canonical(ap.Addr())
}

// cutLast splits a list at its last comma.
func cutLast(list string) (rest, last string, more bool) {
	if i := strings.LastIndexByte(list, ','); i >= 0 {
		return list[:i], list[i+1:], true
	}
	return "", list, false
}

// parse reads one entry: an address, or an address with a port as some load
// balancers write it.
func parse(entry string) (netip.Addr, bool) {
	entry = strings.Trim(entry, " \t")
	bare := entry
	if inner, ok := strings.CutPrefix(entry, "["); ok && strings.HasSuffix(inner, "]") {
		bare = inner[:len(inner)-1]
	}
	if addr, err := netip.ParseAddr(bare); err == nil {
		return canonical(addr), true
	}
	if ap, err := netip.ParseAddrPort(entry); err == nil {
		return canonical(ap.Addr()), true
	}
	return netip.Addr{}, false
}

func canonical(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
