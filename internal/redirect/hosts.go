package redirect

import (
	"strings"

	"curt/internal/link"
)

// hosts maps the Host of a request to a domain.
type hosts struct {
	known  map[string]domain
	strict bool
	own    func(host string) bool // nil = no other
}

// domain is a link.Domain, and the same as bytes for clicks.
type domain struct {
	name  link.Domain
	bytes []byte
}

func newHosts(known map[string]link.Domain, strict bool, own func(string) bool) hosts {
	h := hosts{known: make(map[string]domain, len(known)), strict: strict, own: own}
	for host, name := range known {
		h.known[host] = domain{name: name, bytes: []byte(name)}
	}
	return h
}

// of returns the domain of a Host, tried as sent, in canonical form, and without
// its port. An unknown host is the default domain; where hosts are strict, only one of our own is.
func (h hosts) of(host string) Place {
	if d, ok := h.known[host]; ok {
		return Place{domain: d, known: true, served: true}
	}
	if len(h.known) > 0 {
		host = strings.ToLower(host)
		name, port := splitPort(host)
		name = strings.TrimSuffix(name, ".")
		if d, ok := h.known[name+port]; ok {
			return Place{domain: d, known: true, served: true}
		}
		if d, ok := h.known[name]; ok {
			return Place{domain: d, known: true, served: true}
		}
	}
	if h.strict && h.own != nil {
		name, _ := splitPort(strings.ToLower(host))
		return Place{served: h.own(strings.TrimSuffix(name, "."))}
	}
	return Place{served: !h.strict}
}

// splitPort cuts ":port" off, which the colons of an IPv6 literal are not.
func splitPort(host string) (name, port string) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.IndexByte(host[i:], ']') >= 0 {
		return host, ""
	}
	return host[:i], host[i:]
}
