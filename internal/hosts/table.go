// Package hosts has the names of a server: which host serves which domain, what short URLs begin
// with, where no link may lead, and which names a caller without a key may use.
//
// All of it is one immutable [Table]. Everything that needs a host reads [Current], which is
// swapped in one step: the lane, the handler of redirects, writes, the rule against links to the
// service itself, and short URLs.
package hosts

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"curt/internal/link"
	"curt/internal/weburl"
)

// Config is what [New] needs. Host and Domains are canonical: lower-case A-labels, ":port" only
// where it matters.
type Config struct {
	Scheme  string        // of short URLs: http or https
	Host    link.Domain   // of the default domain
	Domains []link.Domain // further ones, each served under its own name
	Addrs   []netip.Addr  // that the server listens on

	// Strict leaves hosts that are not in the table unserved; otherwise they serve the default
	// domain. ServeOwn excepts those that Table.Refuses refuses: no link leads there, so that
	// links at them cannot lead in circles.
	Strict, ServeOwn bool
}

// Table is an immutable snapshot of the hosts of a server. A nil Table serves the default domain
// at every host, and refuses none.
type Table struct {
	base, scheme string
	host         link.Domain
	domains      []link.Domain // sorted
	matches      map[string]Match
	own          *weburl.Hosts
	names        Names

	strict, serveOwn bool
}

// New returns a Table. The error names a host that is none.
func New(c Config) (*Table, error) {
	t := &Table{
		base: c.Scheme + "://" + string(c.Host), scheme: c.Scheme, host: c.Host, domains: slices.Sorted(slices.Values(c.Domains)),
		matches: map[string]Match{string(c.Host): {configured: true, served: true}}, strict: c.Strict, serveOwn: c.ServeOwn,
	}
	names := make([]string, len(c.Domains))
	for i, d := range c.Domains {
		names[i] = string(d)
		t.matches[names[i]] = Match{domain: d, bytes: []byte(d), configured: true, served: true}
	}
	var err error
	if t.own, err = weburl.NewHosts(t.base, names, c.Addrs); err != nil {
		return nil, fmt.Errorf("read the hosts: %w", err)
	}
	t.names = NewNames(append(names, string(c.Host))...)
	return t, nil
}

// Match is what a Host header stands for: a domain, or nothing that is served.
type Match struct {
	domain             link.Domain
	bytes              []byte
	configured, served bool
}

// Domain returns the domain, for look-ups.
func (p Match) Domain() link.Domain { return p.domain }

// Bytes returns the domain, for clicks. It must not be changed.
func (p Match) Bytes() []byte { return p.bytes }

// Served reports whether links are answered there at all.
func (p Match) Served() bool { return p.served }

// Configured reports whether the Host is in the table. A request at another may be led back to the
// same host, by a name that this service was never told of.
func (p Match) Configured() bool { return p.configured }

// Find returns the match of a Host header, tried as sent, in canonical form, and without its
// port.
func (t *Table) Find(host string) Match {
	if t == nil {
		return Match{served: true}
	}
	if p, ok := t.matches[host]; ok {
		return p
	}
	host = strings.ToLower(host)
	name, port := SplitPort(host)
	name = strings.TrimSuffix(name, ".")
	if p, ok := t.matches[name+port]; ok {
		return p
	}
	if p, ok := t.matches[name]; ok {
		return p
	}
	return Match{served: !t.strict || t.serveOwn && t.own.Has(name)}
}

// SplitPort cuts ":port" off, which the colons of an IPv6 literal are not.
func SplitPort(host string) (name, port string) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.IndexByte(host[i:], ']') >= 0 {
		return host, ""
	}
	return host[:i], host[i:]
}

// Refuses reports whether u leads to this service, so that no link may lead there.
func (t *Table) Refuses(u weburl.URL) bool { return t != nil && t.own.Refuses(u) }

// Base returns what short URLs of the default domain begin with, without a slash at the end.
func (t *Table) Base() string { return t.base }

// ShortURL returns the URL of a link.
func (t *Table) ShortURL(k link.Key) string {
	if k.Domain == "" {
		return t.base + "/" + string(k.Code)
	}
	return t.scheme + "://" + string(k.Domain) + "/" + string(k.Code)
}

// Host returns the host that serves a domain.
func (t *Table) Host(d link.Domain) string {
	if d == "" {
		return string(t.host)
	}
	return string(d)
}

// Domain returns the domain that a host serves, in any case. The empty name is the default
// domain.
func (t *Table) Domain(name string) (link.Domain, bool) {
	d := link.Domain(strings.ToLower(name))
	if d == "" || t != nil && d == t.host {
		return "", true
	}
	return d, t != nil && slices.Contains(t.domains, d)
}

// Domains returns the names of all domains: the default domain, then the others in the order of
// their letters.
func (t *Table) Domains() []link.Domain { return append([]link.Domain{t.host}, t.domains...) }

// Names returns the names by which callers without a key may call.
func (t *Table) Names() Names { return t.names }

// Strict reports whether hosts outside of the table are unserved, but for the service's own.
func (t *Table) Strict() bool { return t.strict && t.serveOwn }

// Current is the Table in force. Load allocates nothing and takes no lock. A nil Current has no
// Table.
type Current struct{ table atomic.Pointer[Table] }

// NewCurrent returns a Current with a first Table.
func NewCurrent(t *Table) *Current {
	c := &Current{}
	c.table.Store(t)
	return c
}

// Load returns the Table in force. It is read once for each request.
func (c *Current) Load() *Table {
	if c == nil {
		return nil
	}
	return c.table.Load()
}

// Swap puts another Table in force. Targets in L1 were checked against the table that was in
// force when they entered it, and keep that answer until they are loaded again.
func (c *Current) Swap(t *Table) { c.table.Store(t) }
