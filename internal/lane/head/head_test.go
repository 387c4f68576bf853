package head_test

import (
	"strings"
	"testing"

	"curt/internal/clicks"
	"curt/internal/lane/head"
	"curt/internal/lane/lanetest"
)

func TestWhatTheHeadSays(t *testing.T) {
	text := "HEAD /a-Z_9?qr=1&x=%20 HTTP/1.1\r\nhOST:\t links.example:80 \r\nUSER-AGENT: one\r\nUser-Agent: two\r\nReferer:\r\nReferer: late\r\n" +
		"Accept-Language: de\r\nAccept: a\r\nAccept: b\r\nX-Forwarded-For: 1.1.1.1\r\nx-forwarded-for: 2.2.2.2\r\nPurpose: prefetch\r\n" +
		"Connection: keep-alive , close\r\n\r\n"
	h, v := lanetest.ParseHead([]byte(text + "behind"))
	want := lanetest.Head{
		Size: len(text), IsHead: true, Close: true, Flags: clicks.Head | clicks.Prefetch | clicks.ViaQR,
		Code: "a-Z_9", Query: "qr=1&x=%20", Host: "links.example:80", Agent: "one", Referrer: "", Language: "de",
		Accept: "a|b", Forwarded: "1.1.1.1|2.2.2.2",
	}
	if v != "plain" || h != want {
		t.Errorf("%s\n%+v, want\n%+v", v, h, want)
	}
}

func TestShapes(t *testing.T) {
	const host = "Host: x\r\n\r\n"
	for text, want := range map[string]string{
		"GET /a HTTP/1.1\r\n" + host:                                         "plain",
		"GET /" + strings.Repeat("a", 64) + " HTTP/1.1\r\n" + host:           "plain",
		"GET /" + strings.Repeat("a", 65) + " HTTP/1.1\r\n" + host:           "other",
		"GET / HTTP/1.1\r\n" + host:                                          "other",
		"GET /healthz HTTP/1.1\r\n" + host:                                   "other",
		"GET /healthzz HTTP/1.1\r\n" + host:                                  "plain",
		"GET /Healthz HTTP/1.1\r\n" + host:                                   "plain",
		"GET /a.b HTTP/1.1\r\n" + host:                                       "other",
		"GET /a%41 HTTP/1.1\r\n" + host:                                      "other",
		"GET /a?%41 HTTP/1.1\r\n" + host:                                     "plain",
		"GET /a?b c HTTP/1.1\r\n" + host:                                     "other",
		"GET /a?\x80 HTTP/1.1\r\n" + host:                                    "other",
		"GET http://x/a HTTP/1.1\r\n" + host:                                 "other",
		"POST /a HTTP/1.1\r\n" + host:                                        "other",
		"GET /a HTTP/1.0\r\n\r\n":                                            "other",
		"GET /a HTTP/1.9\r\n" + host:                                         "other",
		"GET /a HTTP/1.x\r\n" + host:                                         "other",
		"GET /a\r\n":                                                         "other",
		"\x16\x03\x01\x02\x00\x01\r\n":                                       "bad",
		"GET /a HTTP/1.1":                                                    "incomplete",
		"GET /a HTTP/1.1\r\nHost: x\r\n":                                     "incomplete",
		"GET /a HTTP/1.1\r\nHost: x\r\n\r":                                   "incomplete",
		"GET /a HTTP/1.1\r\nHost: x\nX":                                      "bad",
		"GET /a HTTP/1.1\r\nConnection: upgrade\r\n" + host:                  "other",
		"GET /a HTTP/1.1\r\nConnection: ,close,\r\n" + host:                  "plain",
		"GET /a HTTP/1.1\r\nUpgrade: h2c\r\n" + host:                         "other",
		"GET /a HTTP/1.1\r\nExpect: 100-continue\r\n" + host:                 "other",
		"GET /a HTTP/1.1\r\nContent-Length: 0\r\n" + host:                    "other",
		"GET /a HTTP/1.1\r\nTransfer-Encoding: x\r\n" + host:                 "other",
		"GET /a HTTP/1.1\r\nX-Long-Name-Of-Seventeen: \x80\t\xff\r\n" + host: "plain",
	} {
		if _, got := lanetest.ParseHead([]byte(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for why, text := range lanetest.Refused() {
		if _, got := lanetest.ParseHead([]byte(text)); got != "bad" {
			t.Errorf("%s: %q: %s", why, text, got)
		}
	}
}

// TestEveryByteOfAHead puts every byte at every place of a small head: what is found
// must not change because eight bytes are looked at together.
func TestEveryByteOfAHead(t *testing.T) {
	value := "0123456789abcdefghijk"
	for at := range len(value) {
		for c := range 256 {
			v := []byte(value)
			v[at] = byte(c)
			_, got := lanetest.ParseHead([]byte("GET /a HTTP/1.1\r\nHost: x\r\nX: " + string(v) + "\r\n\r\n"))
			want := "plain"
			if c < 0x20 && c != '\t' || c == 0x7f {
				want = "bad"
			}
			if got != want {
				t.Errorf("byte %#02x at %d: %s, want %s", c, at, got, want)
			}
		}
	}
	for c := range 256 {
		_, got := lanetest.ParseHead([]byte("GET /a HTTP/1.1\r\nHost: x\r\nX" + string([]byte{byte(c)}) + "Y: z\r\n\r\n"))
		token := c == ':' || strings.IndexByte("!#$%&'*+-.^_`|~0123456789", byte(c)) >= 0 || c|0x20 >= 'a' && c|0x20 <= 'z'
		if (got == "plain") != token {
			t.Errorf("byte %#02x in a name: %s", c, got)
		}
	}
}

// TestPrefixesOfAHead: no beginning of a good head is judged before its end, and no
// bytes behind the end change it.
func TestPrefixesOfAHead(t *testing.T) {
	for n := range len(lanetest.Browser) {
		if _, got := lanetest.ParseHead([]byte(lanetest.Browser[:n])); got != "incomplete" {
			t.Fatalf("%q: %s", lanetest.Browser[:n], got)
		}
	}
}

func BenchmarkParseHead(b *testing.B) {
	f := parser([]byte(lanetest.Browser))
	b.SetBytes(int64(len(lanetest.Browser)))
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
}

func TestParsingAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(1000, parser([]byte(lanetest.Browser))); n != 0 {
		t.Errorf("%v allocations a head", n)
	}
}

// parser parses b again and again, as a connection does.
func parser(b []byte) func() {
	var h head.Head
	return func() { h.Parse(b, []string{"healthz", "readyz"}) }
}

// Only visible ASCII is a query of the lane's.
func TestEveryByteOfAQuery(t *testing.T) {
	for c := range 256 {
		_, got := lanetest.ParseHead([]byte("GET /a?x" + string([]byte{byte(c)}) + "y HTTP/1.1\r\nHost: x\r\n\r\n"))
		if visible := c > 0x20 && c < 0x7f; (got == "plain") != visible {
			t.Errorf("byte %#02x in a query: %s", c, got)
		}
	}
}
