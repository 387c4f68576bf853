package weburl

import (
	"net/netip"
	"strings"
)

// ParseHost returns the normal form of a host that stands alone, as in a list of
// hosts: a name in lower case, as A-labels and without a final dot, or an address in
// canonical form without brackets. It takes every spelling that Parse takes, and IPv6
// without brackets too; the error is ErrHost.
func ParseHost(s string) (string, error) {
	if plainName(s) {
		return canonical(s), nil
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Is6() {
		s = "[" + s + "]"
	}
	host, err := parseHost(s)
	if err != nil {
		return "", err
	}
	if a, ok := address(host); ok {
		return a.String(), nil
	}
	return canonical(host), nil
}

// MaxHosts is how many names AppendHosts appends at the most.
const MaxHosts = 1 + maxCarried

// Hosts returns what the host of u may be called in a list, each in the form of
// ParseHost: the host itself, and for an IPv6 address that carries IPv4 addresses those,
// too.
func (u URL) Hosts() []string { return u.AppendHosts(nil) }

// AppendHosts appends what Hosts returns, up to MaxHosts, to names.
func (u URL) AppendHosts(names []string) []string {
	a, ok := address(u.host)
	if !ok {
		return append(names, canonical(u.host))
	}
	names = append(names, a.String())
	var carried [maxCarried]netip.Addr
	for _, inner := range appendCarried(carried[:0], a) {
		names = append(names, inner.String())
	}
	return names
}

// IsAddress reports whether a host in the form of ParseHost is an address.
func IsAddress(host string) bool { return strings.IndexByte(host, ':') >= 0 || endsInNumber(host) }
