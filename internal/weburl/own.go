package weburl

import (
	"fmt"
	"net/netip"
	"strings"
)

// Hosts are the hosts that are ourselves. A link to one would redirect to a link
// again, in the worst case for ever, so none is made.
type Hosts struct {
	names    map[string]bool
	addrs    map[netip.Addr]bool
	loopback bool // every loopback and unspecified address is ours, and localhost
}

// NewHosts takes the base URL, further domains ("short.example", perhaps with a
// port) and the addresses that the server listens on. A listener on a loopback or
// on the unspecified address makes every spelling of the loopback ours; who
// listens on the unspecified address should also name the machine's own addresses.
// The error is that of Parse, for a base or domain that is no host.
func NewHosts(base string, domains []string, listen []netip.Addr) (*Hosts, error) {
	h := &Hosts{names: make(map[string]bool), addrs: make(map[netip.Addr]bool)}
	if err := h.add(base); err != nil {
		return nil, fmt.Errorf("read the base URL: %w", err)
	}
	for _, d := range domains {
		if err := h.add("http://" + d); err != nil {
			return nil, fmt.Errorf("read the domain %q: %w", d, err)
		}
	}
	for _, a := range listen {
		h.addAddr(a)
	}
	return h, nil
}

func (h *Hosts) add(raw string) error {
	u, err := Parse(raw)
	if err != nil {
		return err
	}
	if a, ok := address(u.Host()); ok {
		h.addAddr(a)
		return nil
	}
	name := canonical(u.Host())
	h.names[name] = true
	h.loopback = h.loopback || isLocalhost(name)
	return nil
}

func (h *Hosts) addAddr(a netip.Addr) {
	a = a.Unmap().WithZone("")
	h.addrs[a] = true
	h.loopback = h.loopback || a.IsLoopback() || a.IsUnspecified()
}

// Refuses reports whether u leads to ourselves, by whatever spelling and on
// whatever port: in front of us there may be a proxy on another one. It does not
// resolve names, so that it cannot know a stranger's name for our address.
func (h *Hosts) Refuses(u URL) bool {
	a, ok := address(u.Host())
	if !ok {
		name := canonical(u.Host())
		return h.names[name] || (h.loopback && isLocalhost(name))
	}
	if h.refusesAddr(a) {
		return true
	}
	inner, ok := embedded(a)
	return ok && h.refusesAddr(inner)
}

func (h *Hosts) refusesAddr(a netip.Addr) bool {
	return h.addrs[a] || (h.loopback && (a.IsLoopback() || a.IsUnspecified()))
}

// address reads the host of a URL in normal form, with IPv4 in IPv6 taken out.
func address(host string) (netip.Addr, bool) {
	if !IsAddress(host) {
		return netip.Addr{}, false // spared the error that ParseAddr makes
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return a.Unmap(), err == nil
}

// embedded returns the IPv4 address that an IPv6 address carries for a translator:
// IPv4-compatible (RFC 4291, section 2.5.5.1), NAT64 (RFC 6052), 6to4 (RFC 3056).
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	switch {
	case [12]byte(b[:12]) == [12]byte{}, [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b}:
		return netip.AddrFrom4([4]byte(b[12:])), true
	case b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}

// canonical drops the final dot of a name, which means the same host.
func canonical(name string) string { return strings.TrimSuffix(name, ".") }

// isLocalhost: RFC 6761, section 6.3 gives the whole domain to the loopback.
func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}
