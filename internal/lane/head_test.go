package lane_test

import (
	"strings"
	"testing"

	"curt/internal/clicks"
	"curt/internal/lane"
	"curt/internal/lane/lanetest"
)

func TestWhatTheHeadSays(t *testing.T) {
	text := "HEAD /a-Z_9?qr=1&x=%20 HTTP/1.1\r\nhOST:\t links.example:80 \r\nUSER-AGENT: one\r\nUser-Agent: two\r\nReferer:\r\nReferer: late\r\n" +
		"Accept-Language: de\r\nAccept: a\r\nAccept: b\r\nX-Forwarded-For: 1.1.1.1\r\nx-forwarded-for: 2.2.2.2\r\nPurpose: prefetch\r\n" +
		"Connection: keep-alive , close\r\n\r\n"
	h, v := lane.ParseHead([]byte(text + "behind"))
	want := lane.Head{
		Size: len(text), IsHead: true, Closing: true, Flags: clicks.Head | clicks.Prefetch | clicks.ViaQR,
		Code: "a-Z_9", Query: "qr=1&x=%20", Host: "links.example:80", Agent: "one", Referrer: "", Language: "de",
		Accept: "a|b", Forwarded: "1.1.1.1|2.2.2.2",
	}
	if v != "express" || h != want {
		t.Errorf("%s\n%+v, want\n%+v", v, h, want)
	}
}

func TestShapes(t *testing.T) {
	const host = "Host: x\r\n\r\n"
	for head, want := range map[string]string{
		"GET /a HTTP/1.1\r\n" + host:                                         "express",
		"GET /" + strings.Repeat("a", 64) + " HTTP/1.1\r\n" + host:           "express",
		"GET /" + strings.Repeat("a", 65) + " HTTP/1.1\r\n" + host:           "foreign",
		"GET / HTTP/1.1\r\n" + host:                                          "foreign",
		"GET /healthz HTTP/1.1\r\n" + host:                                   "foreign",
		"GET /healthzz HTTP/1.1\r\n" + host:                                  "express",
		"GET /Healthz HTTP/1.1\r\n" + host:                                   "express",
		"GET /a.b HTTP/1.1\r\n" + host:                                       "foreign",
		"GET /a%41 HTTP/1.1\r\n" + host:                                      "foreign",
		"GET /a?%41 HTTP/1.1\r\n" + host:                                     "express",
		"GET /a?b c HTTP/1.1\r\n" + host:                                     "foreign",
		"GET /a?\x80 HTTP/1.1\r\n" + host:                                    "foreign",
		"GET http://x/a HTTP/1.1\r\n" + host:                                 "foreign",
		"POST /a HTTP/1.1\r\n" + host:                                        "foreign",
		"GET /a HTTP/1.0\r\n\r\n":                                            "foreign",
		"GET /a HTTP/1.9\r\n" + host:                                         "foreign",
		"GET /a HTTP/1.x\r\n" + host:                                         "foreign",
		"GET /a\r\n":                                                         "foreign",
		"\x16\x03\x01\x02\x00\x01\r\n":                                       "bad",
		"GET /a HTTP/1.1":                                                    "incomplete",
		"GET /a HTTP/1.1\r\nHost: x\r\n":                                     "incomplete",
		"GET /a HTTP/1.1\r\nHost: x\r\n\r":                                   "incomplete",
		"GET /a HTTP/1.1\r\nHost: x\nX":                                      "bad",
		"GET /a HTTP/1.1\r\nConnection: upgrade\r\n" + host:                  "foreign",
		"GET /a HTTP/1.1\r\nConnection: ,close,\r\n" + host:                  "express",
		"GET /a HTTP/1.1\r\nUpgrade: h2c\r\n" + host:                         "foreign",
		"GET /a HTTP/1.1\r\nExpect: 100-continue\r\n" + host:                 "foreign",
		"GET /a HTTP/1.1\r\nContent-Length: 0\r\n" + host:                    "foreign",
		"GET /a HTTP/1.1\r\nTransfer-Encoding: x\r\n" + host:                 "foreign",
		"GET /a HTTP/1.1\r\nX-Long-Name-Of-Seventeen: \x80\t\xff\r\n" + host: "express",
	} {
		if _, got := lane.ParseHead([]byte(head)); got != want {
			t.Errorf("%q: %s, want %s", head, got, want)
		}
	}
	for why, head := range lanetest.Refused() {
		if _, got := lane.ParseHead([]byte(head)); got != "bad" {
			t.Errorf("%s: %q: %s", why, head, got)
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
			_, got := lane.ParseHead([]byte("GET /a HTTP/1.1\r\nHost: x\r\nX: " + string(v) + "\r\n\r\n"))
			want := "express"
			if c < 0x20 && c != '\t' || c == 0x7f {
				want = "bad"
			}
			if got != want {
				t.Errorf("byte %#02x at %d: %s, want %s", c, at, got, want)
			}
		}
	}
	for c := range 256 {
		_, got := lane.ParseHead([]byte("GET /a HTTP/1.1\r\nHost: x\r\nX" + string([]byte{byte(c)}) + "Y: z\r\n\r\n"))
		token := c == ':' || strings.IndexByte("!#$%&'*+-.^_`|~0123456789", byte(c)) >= 0 || c|0x20 >= 'a' && c|0x20 <= 'z'
		if (got == "express") != token {
			t.Errorf("byte %#02x in a name: %s", c, got)
		}
	}
}

// TestPrefixesOfAHead: no beginning of a good head is judged before its end, and no
// bytes behind the end change it.
func TestPrefixesOfAHead(t *testing.T) {
	for n := range len(browser) {
		if _, got := lane.ParseHead([]byte(browser[:n])); got != "incomplete" {
			t.Fatalf("%q: %s", browser[:n], got)
		}
	}
}

func BenchmarkParseHead(b *testing.B) {
	f := lane.HeadParser([]byte(browser))
	b.SetBytes(int64(len(browser)))
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
}

func TestParsingAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(1000, lane.HeadParser([]byte(browser))); n != 0 {
		t.Errorf("%v allocations a head", n)
	}
}
