package signals

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"curt/internal/abuse"
	"curt/internal/weburl"
)

// IPLiteral is the signal Address: a link to a bare address. Who has something to show
// to strangers has a name; whose name was taken away has an address.
type IPLiteral struct{}

// Name implements abuse.Signal.
func (IPLiteral) Name() abuse.Name { return abuse.Address }

// Inspect implements abuse.Signal.
func (IPLiteral) Inspect(_ context.Context, _ time.Time, f *abuse.Facts) ([]abuse.Finding, error) {
	if !abuse.IsAddress(f.URL.Host()) {
		return nil, nil
	}
	return abuse.Found(abuse.Address, f.URL.Hosts()[0]+" is an IP address, not a name"), nil
}

// PrivateAddress is the signal Private: an address that leads nowhere on the internet,
// or only into the network of whoever clicks. It looks at the URL alone and resolves no
// name, so that of names whose address is private it sees those that say so.
type PrivateAddress struct{}

// Name implements abuse.Signal.
func (PrivateAddress) Name() abuse.Name { return abuse.Private }

// Inspect implements abuse.Signal.
func (PrivateAddress) Inspect(_ context.Context, _ time.Time, f *abuse.Facts) ([]abuse.Finding, error) {
	host := strings.TrimSuffix(f.URL.Host(), ".")
	if !abuse.IsAddress(host) {
		switch name := localName(host); {
		case name != "":
			return abuse.Found(abuse.Private, host+" is below "+name+", which is for local networks"), nil
		case strings.IndexByte(host, '.') < 0:
			return abuse.Found(abuse.Private, host+" has no dot, as only names of local networks do"), nil
		}
		if address, why, found := spelledAddress(host); found {
			return abuse.Found(abuse.Private, address+", which "+host+" encodes, is "+why), nil
		}
		return nil, nil
	}
	for _, text := range f.URL.Hosts() { // an IPv4 address inside an IPv6 address too
		a, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		if r, found := special(a); found {
			return abuse.Found(abuse.Private, text+" is "+r), nil
		}
	}
	return nil, nil
}

// localName returns the domain of names that no public server answers for; "" = none.
// RFC 6761 (localhost), RFC 6762 (local), RFC 8375 (home.arpa), and internal, which ICANN
// keeps for private use (resolution of 29 July 2024); and those that RFC 6762, appendix G,
// and routers have for the same, of which the root zone knows none.
func localName(host string) string {
	for _, name := range [...]string{
		"localhost", "local", "internal", "home.arpa", "localdomain", "lan", "home", "corp", "intranet", "private",
	} {
		if below, ok := strings.CutSuffix(host, name); ok && (below == "" || below[len(below)-1] == '.') {
			return name
		}
	}
	return ""
}

// special says what an address is for that nobody on the internet has.
func special(a netip.Addr) (string, bool) {
	a = a.Unmap().WithZone("")
	if a.Is6() && !globalUnicast().Contains(a) && !translated().Contains(a) {
		for _, r := range ranges() {
			if r.prefix.Contains(a) {
				return r.why, true
			}
		}
		return "outside of 2000::/3, which is unallocated", true
	}
	for _, r := range exceptions() {
		if r.Contains(a) {
			return "", false
		}
	}
	for _, r := range ranges() {
		if r.prefix.Contains(a) {
			return r.why, true
		}
	}
	return "", false
}

type addressRange struct {
	prefix netip.Prefix
	why    string
}

// globalUnicast is what IANA gives addresses from (RFC 4291, section 2.4).
func globalUnicast() netip.Prefix { return prefix("2000::/3") }

// translated is NAT64: it leads where the IPv4 address inside of it does.
func translated() netip.Prefix { return prefix("64:ff9b::/96") }

// ranges are the special-purpose registries of IANA (RFC 6890; iana.org/assignments,
// iana-ipv4-special-registry and iana-ipv6-special-registry) where "globally reachable"
// is not true, and multicast, which no browser connects to.
func ranges() []addressRange {
	return []addressRange{
		{prefix("0.0.0.0/8"), "this network (0.0.0.0/8, RFC 791)"},
		{prefix("10.0.0.0/8"), "private (10.0.0.0/8, RFC 1918)"},
		{prefix("100.64.0.0/10"), "carrier-grade NAT (100.64.0.0/10, RFC 6598)"},
		{prefix("127.0.0.0/8"), "loopback (127.0.0.0/8, RFC 1122)"},
		{prefix("169.254.0.0/16"), "link-local (169.254.0.0/16, RFC 3927)"},
		{prefix("172.16.0.0/12"), "private (172.16.0.0/12, RFC 1918)"},
		{prefix("192.0.0.0/24"), "reserved for protocols (192.0.0.0/24, RFC 6890)"},
		{prefix("192.0.2.0/24"), "for documentation (192.0.2.0/24, RFC 5737)"},
		{prefix("192.88.99.0/24"), "a deprecated 6to4 relay (192.88.99.0/24, RFC 7526)"},
		{prefix("192.168.0.0/16"), "private (192.168.0.0/16, RFC 1918)"},
		{prefix("198.18.0.0/15"), "for benchmarks (198.18.0.0/15, RFC 2544)"},
		{prefix("198.51.100.0/24"), "for documentation (198.51.100.0/24, RFC 5737)"},
		{prefix("203.0.113.0/24"), "for documentation (203.0.113.0/24, RFC 5737)"},
		{prefix("224.0.0.0/4"), "multicast (224.0.0.0/4, RFC 5771)"},
		{prefix("240.0.0.0/4"), "reserved (240.0.0.0/4, RFC 1112)"},
		{prefix("::/128"), "unspecified (::, RFC 4291)"},
		{prefix("::1/128"), "loopback (::1, RFC 4291)"},
		{prefix("64:ff9b:1::/48"), "local-use NAT64 (64:ff9b:1::/48, RFC 8215)"},
		{prefix("100::/64"), "discarded (100::/64, RFC 6666)"},
		{prefix("2001::/23"), "reserved for protocols (2001::/23, RFC 2928)"},
		{prefix("2001:db8::/32"), "for documentation (2001:db8::/32, RFC 3849)"},
		{prefix("3fff::/20"), "for documentation (3fff::/20, RFC 9637)"},
		{prefix("5f00::/16"), "segments (5f00::/16, RFC 9602)"},
		{prefix("fc00::/7"), "unique-local (fc00::/7, RFC 4193)"},
		{prefix("fe80::/10"), "link-local (fe80::/10, RFC 4291)"},
		{prefix("fec0::/10"), "site-local (fec0::/10, RFC 3879)"},
		{prefix("ff00::/8"), "multicast (ff00::/8, RFC 4291)"},
	}
}

// exceptions lie within ranges and can be reached (the same registries).
func exceptions() []netip.Prefix {
	return []netip.Prefix{
		prefix("192.0.0.9/32"), prefix("192.0.0.10/32"),
		prefix("2001:1::1/128"), prefix("2001:1::2/128"), prefix("2001:1::3/128"),
		prefix("2001:3::/32"), prefix("2001:4:112::/48"), prefix("2001:20::/28"), prefix("2001:30::/28"),
	}
}

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

// spelledAddress returns an address that nobody on the internet has and that a host spells
// below a domain whose servers answer with what is spelled, and what it is for. Where a host
// spells several, one is enough.
func spelledAddress(host string) (address, why string, found bool) {
	for _, a := range weburl.SpelledAddresses(host) {
		if why, found := special(a); found {
			return a.String(), why, true
		}
	}
	return "", "", false
}
