package weburl

import (
	"fmt"
	"net/netip"
	"slices"
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
// resolve names, so that of a stranger's names for our address it knows those that
// spell it.
func (h *Hosts) Refuses(u URL) bool {
	if a, ok := address(u.Host()); ok {
		return h.refuses(a)
	}
	name := canonical(u.Host())
	return h.names[name] || h.loopback && isLocalhost(name) || slices.ContainsFunc(SpelledAddresses(name), h.refuses)
}

// refuses also takes an IPv6 address that carries one of ours.
func (h *Hosts) refuses(a netip.Addr) bool {
	var carried [maxCarried]netip.Addr
	return h.refusesAddr(a) || slices.ContainsFunc(appendCarried(carried[:0], a), h.refusesAddr)
}

// Has reports whether the host of a Host field, in lower case, without its port and final dot,
// is one that Refuses refuses to lead to.
func (h *Hosts) Has(name string) bool {
	if a, ok := address(name); ok {
		return h.refusesAddr(a)
	}
	return h.names[name] || h.loopback && isLocalhost(name)
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

// canonical drops the final dot of a name, which means the same host.
func canonical(name string) string { return strings.TrimSuffix(name, ".") }

// isLocalhost: RFC 6761, section 6.3 gives the whole domain to the loopback; the other
// names are those that the hosts files of Debian, Fedora and their like give it.
func isLocalhost(name string) bool {
	switch name {
	case "localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6", "localhost6.localdomain6",
		"ip6-localhost", "ip6-loopback", "loopback":
		return true
	}
	return strings.HasSuffix(name, ".localhost")
}
