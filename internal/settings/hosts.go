package settings

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
	"curt/internal/hosts"
	"curt/internal/link"
)

// Hosts reads the hosts of the settings. listening is the address that was bound, because port
// 0 becomes a port only there.
//
// A base URL makes hosts strict: at any other name two links could lead to each other for ever,
// each at a name that nothing says is ours (docs/decisions/0044). Our own addresses stay served: no
// link leads there.
func Hosts(cfg config.Config, listening net.Addr) (*hosts.Table, error) {
	ap, err := netip.ParseAddrPort(listening.String())
	if err != nil {
		return nil, fmt.Errorf("read the listener's address: %w", err)
	}
	base := strings.TrimRight(cfg.BaseURL, "/")
	c := hosts.Config{Addrs: []netip.Addr{ap.Addr()}, Strict: base != "", ServeOwn: base != ""}
	if cfg.StrictHost != nil {
		c.Strict, c.ServeOwn = *cfg.StrictHost, false
	}
	if base == "" {
		base = localBase(ap.Port(), cfg.TLSCert != "")
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, &config.Error{Setting: "CURT_BASE_URL", Value: base, Want: "expected http://host or https://host without a path"}
	}
	c.Scheme = u.Scheme
	if c.Host, err = domain(u.Host); err != nil {
		return nil, &config.Error{Setting: "CURT_BASE_URL", Value: base, Want: err.Error()}
	}
	for _, name := range cfg.Domains {
		d, err := domain(name)
		if err != nil {
			return nil, &config.Error{Setting: "CURT_DOMAINS", Value: name, Want: err.Error()}
		}
		if d == c.Host || slices.Contains(c.Domains, d) {
			return nil, &config.Error{Setting: "CURT_DOMAINS", Value: name, Want: "duplicate, or the host of CURT_BASE_URL: expected additional hosts, each once"}
		}
		c.Domains = append(c.Domains, d)
	}
	t, err := hosts.New(c)
	if err != nil {
		return nil, &config.Error{Setting: "CURT_BASE_URL", Value: base, Want: err.Error()}
	}
	return t, nil
}

// localBase is the base URL of a server without CURT_BASE_URL.
func localBase(port uint16, tls bool) string {
	scheme, standard := "http", uint16(80)
	if tls {
		scheme, standard = "https", 443
	}
	if port == standard {
		return scheme + "://localhost"
	}
	return scheme + "://localhost:" + strconv.Itoa(int(port))
}

// domain returns the canonical form of "host" or "host:port".
func domain(name string) (link.Domain, error) {
	host, port := name, ""
	if h, p, err := net.SplitHostPort(name); err == nil {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return "", fmt.Errorf("expected a port from 1 to 65535, %q has none", name)
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
		return "", fmt.Errorf("expected a host name such as go.example.com, not %q", name)
	}
	return link.Domain(ascii + port), nil
}
