package settings

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"curt/internal/config"
	"curt/internal/link"
	"curt/internal/listen"
)

func bound(text string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)) }

func TestOriginFollowsTheSettings(t *testing.T) {
	for _, c := range []struct {
		cfg       config.Config
		listening string
		base      string
		host      link.Domain
		loopback  bool
	}{
		{config.Config{}, "127.0.0.1:8080", "http://localhost:8080", "localhost:8080", true},
		{config.Config{}, "0.0.0.0:80", "http://localhost", "localhost", false},
		{config.Config{TLSCert: "x"}, "[::]:443", "https://localhost", "localhost", false},
		{config.Config{TLSCert: "x"}, "[::1]:8443", "https://localhost:8443", "localhost:8443", true},
		{config.Config{BaseURL: "https://Go.Example.COM/"}, "127.0.0.1:1", "https://go.example.com", "go.example.com", true},
		{config.Config{BaseURL: "https://bücher.example"}, "127.0.0.1:1", "https://xn--bcher-kva.example", "xn--bcher-kva.example", true},
		{config.Config{BaseURL: "http://[2001:DB8::1]:81"}, "127.0.0.1:1", "http://[2001:db8::1]:81", "[2001:db8::1]:81", true},
	} {
		o, err := Hosts(c.cfg, bound(c.listening))
		if err != nil || o.Base() != c.base || o.Host("") != string(c.host) || listen.IsLoopback(bound(c.listening)) != c.loopback {
			t.Errorf("%q on %s: %+v, %v; want %s, %s, %v", c.cfg.BaseURL, c.listening, o, err, c.base, c.host, c.loopback)
		}
	}
}

func TestFurtherDomainsAreCanonical(t *testing.T) {
	o, err := Hosts(config.Config{Domains: []string{"S.Example.", "x.example:8443"}}, bound("127.0.0.1:8080"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []link.Domain{"s.example", "x.example:8443"} {
		if p := o.Find(string(d)); p.Domain() != d {
			t.Errorf("hosts %v: %s is missing", o.Domains(), d)
		}
	}
	if p := o.Find("localhost:8080"); !p.Configured() || p.Domain() != "" {
		t.Errorf("hosts %v: the default domain is missing", o.Domains())
	}
	for _, wrong := range []string{"", "a b", "xn--", "exa_mple.com/", "-.example"} {
		_, err := Hosts(config.Config{Domains: []string{wrong}}, bound("127.0.0.1:8080"))
		if e := new(*config.Error); !errors.As(err, e) || (*e).Setting != "CURT_DOMAINS" {
			t.Errorf("CURT_DOMAINS=%q: %v", wrong, err)
		}
	}
}
