package server

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"curt/internal/config"
	"curt/internal/link"
	"curt/internal/weburl"
)

// origin is what this instance is called: by the links that it shows, and by the
// Host headers that it takes for its own.
type origin struct {
	base     string // what short links begin with, without a slash at the end
	host     link.Domain
	domains  []link.Domain // further hosts that serve links
	loopback bool          // the listener is reached from this machine only
	guessed  bool          // nobody set CURT_BASE_URL
}

// originOf reads the settings; listening is the address that was bound, because
// port 0 becomes a port only there.
func originOf(cfg config.Config, listening net.Addr) (origin, error) {
	ap, err := netip.ParseAddrPort(listening.String())
	if err != nil {
		return origin{}, fmt.Errorf("read the listener's address: %w", err)
	}
	o := origin{loopback: ap.Addr().IsLoopback(), base: strings.TrimRight(cfg.BaseURL, "/")}
	if o.base == "" {
		o.guessed = true
		scheme, standard := "http", uint16(80)
		if cfg.TLSCert != "" {
			scheme, standard = "https", 443
		}
		o.base = scheme + "://localhost"
		if ap.Port() != standard {
			o.base += ":" + strconv.Itoa(int(ap.Port()))
		}
	}
	u, err := url.Parse(o.base)
	if err != nil {
		return origin{}, &config.Error{Setting: "CURT_BASE_URL", Value: o.base, Want: "want http://host or https://host without a path"}
	}
	if o.host, err = domain(u.Host); err != nil {
		return origin{}, &config.Error{Setting: "CURT_BASE_URL", Value: o.base, Want: err.Error()}
	}
	o.base = u.Scheme + "://" + string(o.host)
	for _, name := range cfg.Domains {
		d, err := domain(name)
		if err != nil {
			return origin{}, &config.Error{Setting: "CURT_DOMAINS", Value: name, Want: err.Error()}
		}
		if d == o.host || slices.Contains(o.domains, d) {
			return origin{}, &config.Error{Setting: "CURT_DOMAINS", Value: name, Want: "given twice, or the host of CURT_BASE_URL: want further hosts, each once"}
		}
		o.domains = append(o.domains, d)
	}
	return o, nil
}

// domain returns the canonical form of "host" or "host:port".
func domain(name string) (link.Domain, error) {
	host, port := name, ""
	if h, p, err := net.SplitHostPort(name); err == nil {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return "", fmt.Errorf("want a port from 1 to 65535, %q has none", name)
		}
		host, port = h, ":"+p
	}
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		if addr.Is6() {
			return link.Domain("[" + addr.String() + "]" + port), nil
		}
		return link.Domain(addr.String() + port), nil
	}
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
	if err != nil || ascii == "" {
		return "", fmt.Errorf("want a host name such as go.example.com, %q is none", name)
	}
	return link.Domain(ascii + port), nil
}

// names are the further hosts as text.
func (o origin) names() []string {
	names := make([]string, len(o.domains))
	for i, d := range o.domains {
		names[i] = string(d)
	}
	return names
}

// ownHosts are the hosts that no link may lead to, listening included.
func (o origin) ownHosts(listening net.Addr) (*weburl.Hosts, error) {
	var addrs []netip.Addr
	if ap, err := netip.ParseAddrPort(listening.String()); err == nil {
		addrs = append(addrs, ap.Addr())
	}
	own, err := weburl.NewHosts(o.base, o.names(), addrs)
	if err != nil {
		return nil, &config.Error{Setting: "CURT_BASE_URL", Value: o.base, Want: err.Error()}
	}
	return own, nil
}

// strictHost returns whether links are followed at configured hosts only, and where else.
// Who sets a base URL says what the server is called. At any other name two links could lead
// to each other for ever, each at a name that nobody knows to be ours
// (docs/decisions/0044). Our own addresses stay: no link leads there.
func (s *Server) strictHost() (strict bool, own func(host string) bool) {
	if set := s.config.StrictHost; set != nil {
		return *set, nil
	}
	if s.origin.guessed {
		return false, nil
	}
	return true, s.own.Has
}

// shortURL returns what people pass on, as the API shows it.
func (o origin) shortURL(k link.Key) string {
	base := o.base
	if k.Domain != "" {
		scheme, _, _ := strings.Cut(o.base, "://")
		base = scheme + "://" + string(k.Domain)
	}
	return base + "/" + string(k.Code)
}

// hosts maps the Host headers that name a domain to the domain. A visitor of a
// local server may write the loopback address instead of its name; that needs no
// entry, because an unknown host is the default domain.
func (o origin) hosts() map[string]link.Domain {
	m := map[string]link.Domain{string(o.host): ""}
	for _, d := range o.domains {
		m[string(d)] = d
	}
	return m
}
