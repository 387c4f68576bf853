package weburl_test

import (
	"errors"
	"net/netip"
	"testing"

	"curt/internal/weburl"
)

func newHosts(t *testing.T, base string, domains []string, listen ...string) *weburl.Hosts {
	t.Helper()
	var addrs []netip.Addr
	for _, a := range listen {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	h, err := weburl.NewHosts(base, domains, addrs)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ownSpellings all lead to the hosts of TestOwnHostsAreRefused.
var ownSpellings = []string{
	// The base URL's host.
	"https://curt.example/", "http://curt.example/x", "https://CURT.example/", "https://Curt.Example./", "https://curt.example:443/",
	"https://curt.example:8443/x", "http://curt.example:65535/", "https:curt.example", `https:\\curt.example\x`, "https:///curt.example/",
	"https://c%75rt.example/", "https://%63%75%72%74%2e%65%78%61%6d%70%6c%65/", "https://ｃｕｒｔ．ｅｘａｍｐｌｅ/", "https://curt。example/",
	"https://cu\u00adrt.example/", " https://curt.example/ ", "https://@curt.example/", "https://:@curt.example/",
	"https://ⓒⓤⓡⓣ.example/", "https://𝐜urt.example/", "https://curt.example?x", "https://curt.example#x", `https://curt.example\.evil.example/`,
	// A further domain outside ASCII.
	"https://kürz.example/", "https://KÜRZ.example/", "https://xn--krz-hoa.example/", "https://XN--KRZ-HOA.EXAMPLE/", "https://k%C3%BCrz.example/",
	"https://ku\u0308rz.example./", "http://kürz.example:8080/",
	// A further domain with a port.
	"https://go.example:9000/", "https://go.example/",
	// The addresses that we listen on.
	"http://192.0.2.10/", "http://192.0.2.10:8080/", "http://192.0.2.10./", "http://3221225994/", "http://0xC000020A/", "http://0xc0.0x0.0x2.0xa/",
	"http://030000001012/", "http://0300.0.02.012/", "http://192.0.522/", "http://192.522/", "http://１９２.0.2.10/", "http://192%2E0%2E2%2E10/",
	"http://192。0。2。10/", "http://[::ffff:192.0.2.10]/", "http://[::ffff:c000:20a]/", "http://[0:0:0:0:0:FFFF:C000:020A]/", "http://[::192.0.2.10]/",
	"http://[64:ff9b::192.0.2.10]/", "http://[2002:c000:20a::1]/", "http://[2001:db8::10]/", "http://[2001:DB8:0:0::0010]:80/",
	// Inside IPv6 in every other way that there is.
	"http://[64:ff9b:1::192.0.2.10]/", "http://[64:ff9b:1:ffff:0:0:c000:20a]/", "http://[64:ff9b:1:c000:2:a00::]/", "http://[64:ff9b:1:c0:0:20a::]/",
	"http://[64:ff9b:1:0:c0:2:a00::]/", "http://[::ffff:0:192.0.2.10]/", "http://[::ffff:0:c000:20a]:8080/", "http://[fe80::5efe:192.0.2.10]/",
	"http://[2001:db8:7::200:5efe:c000:20a]/", "http://[2002:102:304::5efe:192.0.2.10]/", "http://[2001:0:c000:20a::]/",
	"http://[2001::3fff:fdf5]/", "http://[2001:0:102:304:8000:63bf:3fff:fdf5]/",
	// Names that spell it.
	"http://192.0.2.10.nip.io/", "http://192-0-2-10.sslip.io/x", "http://a.b-192-0-2-10.c.Nip.io.:8080/", "http://c000020a.nip.io/", "http://app-C000020A.nip.io/",
	"http://--ffff-c000-20a.sslip.io/", "http://64-ff9b--c000-20a.sslip.io/", "http://2001-db8--10.sslip.io/",
}

func TestOwnHostsAreRefused(t *testing.T) {
	h := newHosts(t, "https://curt.example/", []string{"kürz.example", "go.example:9000"}, "192.0.2.10", "2001:db8::10")
	if len(ownSpellings) < 40 {
		t.Errorf("only %d spellings", len(ownSpellings))
	}
	for _, raw := range ownSpellings {
		if u := mustParse(t, raw); !h.Refuses(u) {
			t.Errorf("%q (%s) leads to ourselves and is not refused", raw, u.Href())
		}
	}
	if _, err := weburl.Parse("https://good.example@curt.example/"); !errors.Is(err, weburl.ErrCredentials) {
		t.Errorf("user name before our host: %v", err)
	}
}

func TestOtherHostsAreNotOurs(t *testing.T) {
	h := newHosts(t, "https://curt.example/", []string{"kürz.example"}, "192.0.2.10")
	for _, raw := range []string{
		"https://example/", "https://www.curt.example/", "https://curt.example.evil.example/", "https://curt-example/", "https://notcurt.example/",
		"https://evil.example/curt.example", "https://evil.example/?https://curt.example/", "https://evil.example/@curt.example", "https://kurz.example/",
		"http://192.0.2.11/", "http://192.0.2.1/", "http://127.0.0.1/", "http://localhost/", "http://0.0.0.0/", "http://[2001:db8::11]/", "http://[::ffff:192.0.2.11]/",
		"http://192.0.2.10.example/",
		"http://[64:ff9b:1::192.0.2.11]/", "http://[64:ff9b:1::]/", "http://[64:ff9b:2::192.0.2.10]/", "http://[::fffe:0:192.0.2.10]/", "http://[2001:db8::5eff:192.0.2.10]/",
		"http://[2001:1::3fff:fdf5]/", "http://[2001::192.0.2.10]/", "http://192.0.2.11.nip.io/", "http://192.0.2.10.nip.io.example/", "http://nip.io/", "http://xnip.io/",
	} {
		if u := mustParse(t, raw); h.Refuses(u) {
			t.Errorf("%q is refused as our own", raw)
		}
	}
}

func TestAListenerOnTheLoopbackOwnsTheWholeLoopback(t *testing.T) {
	loops := []string{
		"http://localhost/", "http://localhost:8080/", "http://LOCALHOST./", "http://x.localhost/", "http://127.0.0.1:8080/", "http://127.1/", "http://127.255.255.254/",
		"http://2130706433/", "http://0x7f000001/", "http://017700000001/", "http://0/", "http://0.0.0.0/", "http://[::1]/", "http://[::]/", "http://[0:0::0:1]/",
		"http://ip6-localhost/", "http://ip6-loopback:8080/", "http://LocalHost.LocalDomain./", "http://localhost4/", "http://localhost6.localdomain6/", "http://localhost4.localdomain4/",
		"http://127.0.0.1.nip.io/", "http://0-0-0-0.sslip.io/", "http://x.localtest.me/", "http://lvh.me:8080/", "http://--1.sslip.io/",
		"http://[64:ff9b:1::127.0.0.1]/", "http://[::ffff:0:127.0.0.1]/", "http://[2001:db8::5efe:127.0.0.1]/", "http://[2001::80ff:fffe]/",
		"http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://[::ffff:0:0]/",
	}
	for name, h := range map[string]*weburl.Hosts{
		"listen on 127.0.0.1": newHosts(t, "https://curt.example/", nil, "127.0.0.1"),
		"listen on ::1":       newHosts(t, "https://curt.example/", nil, "::1"),
		"listen everywhere":   newHosts(t, "https://curt.example/", nil, "::"),
		"listen on 0.0.0.0":   newHosts(t, "https://curt.example/", nil, "0.0.0.0"),
		"base URL localhost":  newHosts(t, "http://localhost:8080", nil),
		"base URL 127.0.0.1":  newHosts(t, "http://127.0.0.1:8080", nil),
	} {
		for _, raw := range loops {
			if u := mustParse(t, raw); !h.Refuses(u) {
				t.Errorf("%s: %q is not refused", name, raw)
			}
		}
	}
}

// What is ours does not depend on what else is, nor on the order in which it is named.
func TestEachHostIsOursBesideOthers(t *testing.T) {
	for name, h := range map[string]*weburl.Hosts{
		"localhost first": newHosts(t, "http://localhost:8080/", []string{"go.example"}, "192.0.2.10"),
		"localhost last":  newHosts(t, "https://go.example/", []string{"localhost:8080"}, "192.0.2.10"),
		"loopback first":  newHosts(t, "https://go.example/", nil, "127.0.0.1", "192.0.2.10"),
		"loopback last":   newHosts(t, "https://go.example/", nil, "192.0.2.10", "::1"),
		"other spellings": newHosts(t, "https://go.example/", nil, "::ffff:192.0.2.10", "fe80::1%eth0", "0.0.0.0"),
	} {
		own := []string{"http://127.0.0.1/", "http://localhost/", "https://go.example/", "http://192.0.2.10/"}
		if name == "other spellings" {
			own = append(own, "http://[fe80::1]/")
		}
		for _, raw := range own {
			if !h.Refuses(mustParse(t, raw)) {
				t.Errorf("%s: %q is not refused", name, raw)
			}
		}
		for _, raw := range []string{"http://notlocalhost/", "http://localhost.example/", "http://ip6-localhost.example/", "http://192.0.2.11/", "http://[fe80::2]/"} {
			if h.Refuses(mustParse(t, raw)) {
				t.Errorf("%s: %q is refused as our own", name, raw)
			}
		}
	}
}

func TestHostsRefuseWhatIsNoHost(t *testing.T) {
	if _, err := weburl.NewHosts("curt.example", nil, nil); !errors.Is(err, weburl.ErrScheme) {
		t.Errorf("base URL without scheme: %v", err)
	}
	if _, err := weburl.NewHosts("http://curt.example", []string{"a b"}, nil); !errors.Is(err, weburl.ErrHost) {
		t.Errorf("domain with a space: %v", err)
	}
}

func TestDisplay(t *testing.T) {
	for href, want := range map[string]string{
		"https://example.com/":              "example.com",
		"https://example.com/a/b#top":       "example.com/a/b",
		"http://example.com:8080/a/":        "example.com:8080/a",
		"https://example.com/a?b=c":         "example.com/a?…",
		"https://example.com/?":             "example.com/?…",
		"https://xn--bcher-kva.example/%C3": "xn--bcher-kva.example/%C3",
		"https://[::1]/#?x":                 "[::1]",
		"":                                  "",
		"no url":                            "no url",
	} {
		if got := weburl.Display(href); got != want {
			t.Errorf("Display(%q) = %q, want %q", href, got, want)
		}
	}
}
