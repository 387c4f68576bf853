package hosts

import (
	"net"
	"net/netip"
	"strings"
)

// Names are the names by which callers without a key may make something. A page of
// another site whose name its owner lets resolve to this machine (DNS rebinding) is
// of the same origin for the browser: it may send whatever it likes and read the
// answers, from behind the firewall. It cannot choose the Host.
//
// A caller with a key is not asked: a page has none to send.
type Names map[string]struct{}

// NewNames returns the Names; a port in one is ignored.
func NewNames(names ...string) Names {
	h := Names{}
	for _, name := range names {
		h[hostName(name)] = struct{}{}
	}
	return h
}

// Own reports whether a Host is this instance's: a configured name, with any port;
// localhost, which browsers never ask DNS for; or an address, because an address
// cannot be made to resolve to another.
func (h Names) Own(host string) bool {
	name := hostName(host)
	if _, known := h[name]; known && name != "" {
		return true
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}

// hostName is a Host in small letters, without its port, brackets and last dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
