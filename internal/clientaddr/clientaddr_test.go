package clientaddr_test

import (
	"fmt"
	"net/netip"
	"testing"

	"curt/internal/clientaddr"
)

func TestOf(t *testing.T) {
	rule := clientaddr.New(
		netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("2001:db8:1::/48"),
		netip.MustParsePrefix("::ffff:192.0.2.0/120"), // as an operator may write an IPv4 network
	)
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"no header", "10.1.1.1", nil, "10.1.1.1"},
		{"peer is nobody's proxy", "203.0.113.9", []string{"198.51.100.1"}, "203.0.113.9"},
		{"one proxy", "10.1.1.1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"forged left part", "10.1.1.1", []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1"},
		{"forged left line", "10.1.1.1", []string{"1.1.1.1", "198.51.100.1"}, "198.51.100.1"},
		{"forged trusted left of the client", "10.1.1.1", []string{"10.9.9.9, 198.51.100.1"}, "198.51.100.1"},
		{"two proxies in one line", "10.1.1.1", []string{"198.51.100.1, 10.2.2.2"}, "198.51.100.1"},
		{"two proxies in two lines", "10.1.1.1", []string{"198.51.100.1", "10.2.2.2"}, "198.51.100.1"},
		{"all trusted: the leftmost", "10.1.1.1", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"malformed", "10.1.1.1", []string{"198.51.100.1, unknown"}, "10.1.1.1"},
		{"empty entry", "10.1.1.1", []string{"198.51.100.1, "}, "10.1.1.1"},
		{"empty line", "10.1.1.1", []string{""}, "10.1.1.1"},
		{"malformed behind the client is never read", "10.1.1.1", []string{"junk, 198.51.100.1"}, "198.51.100.1"},
		{"malformed behind a trusted one", "10.1.1.1", []string{"junk, 10.2.2.2"}, "10.1.1.1"},
		{"port", "10.1.1.1", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		{"IPv6", "2001:db8:1::5", []string{"2001:db8:2::7"}, "2001:db8:2::7"},
		{"IPv6 in brackets", "10.1.1.1", []string{"[2001:db8:2::7]"}, "2001:db8:2::7"},
		{"IPv6 with a port", "10.1.1.1", []string{"[2001:db8:2::7]:443"}, "2001:db8:2::7"},
		{"half a bracket", "10.1.1.1", []string{"[2001:db8:2::7"}, "10.1.1.1"},
		{"mapped peer is trusted as IPv4", "::ffff:10.1.1.1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"mapped entry", "10.1.1.1", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"mapped prefix", "192.0.2.7", []string{"198.51.100.1"}, "198.51.100.1"},
		{"zone", "fe80::1%eth0", nil, "fe80::1"},
		{"octal is no address", "10.1.1.1", []string{"0177.0.0.1"}, "10.1.1.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rule.Of(netip.MustParseAddr(c.peer), c.forwarded); got.String() != c.want {
				t.Errorf("Of(%s, %q) = %s, want %s", c.peer, c.forwarded, got, c.want)
			}
		})
	}
}

func TestZeroRuleBelievesNobody(t *testing.T) {
	peer := netip.MustParseAddr("127.0.0.1")
	if got := (clientaddr.Rule{}).Of(peer, []string{"198.51.100.1"}); got != peer {
		t.Errorf("got %s, want the peer", got)
	}
}

func TestForgedHeadersFromOneSourceAreOneClient(t *testing.T) {
	rule := clientaddr.New(netip.MustParsePrefix("10.0.0.0/8"))
	want := netip.MustParseAddr("198.51.100.1")
	for i := range 1000 {
		forged := fmt.Sprintf("203.0.113.%d, 10.0.0.%d, 198.51.100.1", i%256, i%256)
		if got := rule.Of(netip.MustParseAddr("10.1.1.1"), []string{forged}); got != want {
			t.Fatalf("%q: got %s, want %s", forged, got, want)
		}
	}
}

func TestPeer(t *testing.T) {
	for in, want := range map[string]string{
		"198.51.100.1:80": "198.51.100.1", "[2001:db8::1%eth0]:80": "2001:db8::1",
		"[::ffff:198.51.100.1]:80": "198.51.100.1", "@": "invalid IP", "": "invalid IP",
	} {
		if got := clientaddr.Peer(in); got.String() != want {
			t.Errorf("Peer(%q) = %s, want %s", in, got, want)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("10.0.0.1", "1.2.3.4, 10.0.0.2")
	f.Add("::1", "[::1]:80,,")
	rule := clientaddr.New(netip.MustParsePrefix("10.0.0.0/8"))
	f.Fuzz(func(t *testing.T, peer, line string) {
		p := clientaddr.Peer(peer + ":1")
		got := rule.Of(p, []string{line})
		if got.Is4In6() || got.Zone() != "" {
			t.Errorf("Of(%q, %q) = %s is not canonical", peer, line, got)
		}
		if !rule.Trusts(p) && got != p {
			t.Errorf("an untrusted peer chose its address: %s", got)
		}
	})
}
