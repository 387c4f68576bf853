package lane_test

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"curt/internal/lane/lanetest"
)

// The differential test: the same bytes to a lane and to net/http alone, with the same
// handler, must give the same answers, the same clicks and the same end of the
// connection. These are all the differences that are allowed, and each needs a reason
// in the bytes:
//
//	the lane says 400 and closes where net/http is lenient   lenient
//	both refuse and close: the lane says 400 for all, net/http also 501 and 505
//
// Order of the fields and the moment of a refusal are not compared.

// lenient are shapes that RFC 9112 forbids and net/http answers.
func lenient() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"bare LF":                         regexp.MustCompile(`(?s)(^|[^\r])\n`),
		"bare CR":                         regexp.MustCompile(`(?s)\r([^\n]|$)`),
		"folded line":                     regexp.MustCompile(`\n[ \t]`),
		"control byte":                    regexp.MustCompile(`[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]`),
		"two Hosts":                       regexp.MustCompile(`(?is)\nhost:.*\nhost:`),
		"empty Host":                      regexp.MustCompile(`(?i)\nhost:[ \t]*\r?(\n|$)`),
		"no Host":                         regexp.MustCompile(`CONNECT `),
		"two lengths":                     regexp.MustCompile(`(?is)\ncontent-length:.*\ncontent-length:`),
		"length and coding":               regexp.MustCompile(`(?is)(\ncontent-length:.*\ntransfer-encoding:)|(\ntransfer-encoding:.*\ncontent-length:)`),
		"coding on HTTP/1.0":              regexp.MustCompile(`(?is)HTTP/1.0.*\ntransfer-encoding:`),
		"a method or a target of nothing": regexp.MustCompile(`(?m)^[^ ]* ?HTTP/1\.`),
	}
}

// excused returns why the lane may refuse these bytes, or "".
func excused(sent string) string {
	for why, shape := range lenient() {
		if shape.MatchString(sent) {
			return why
		}
	}
	return ""
}

// compare sends the bytes to both, in pieces as the seed cuts them.
func compare(t *testing.T, on, off *rig, sent string, seed uint64) {
	t.Helper()
	on.rec.take()
	off.rec.take()
	pieces := lanetest.Cut(sent, seed)
	got, want := answers(t, on.exchange(t, pieces...)), answers(t, off.exchange(t, pieces...))
	for i, a := range got {
		if i < len(want) && same(a, want[i]) {
			continue
		}
		refused := status(a) == "400" && a.Fields["Connection"] == "close" && i == len(got)-1
		if refused && i < len(want) && want[i].Fields["Connection"] == "close" && slices.Contains([]string{"400", "501", "505"}, status(want[i])) {
			return // both refuse; net/http says why, or sees another of several reasons first
		}
		if refused && excused(sent) != "" {
			return
		}
		t.Fatalf("%q in %d pieces: answer %d\n%s", sent, len(pieces), i, cmp.Diff(want, got))
	}
	if len(got) != len(want) {
		t.Fatalf("%q in %d pieces: %d answers, net/http gives %d\n%s", sent, len(pieces), len(got), len(want), cmp.Diff(want, got))
	}
	clicks := cmp.Diff(off.rec.take(), on.rec.take(), cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }))
	if clicks != "" {
		t.Fatalf("%q: clicks\n%s", sent, clicks)
	}
}

// same compares two answers; a second or two may have passed between them.
func same(a, b answer) bool {
	for field, prefix := range map[string]string{"Cache-Control": "private, max-age=", "Retry-After": ""} {
		theirs, counts := strings.CutPrefix(b.Fields[field], prefix)
		if !counts {
			continue
		}
		ours, _ := strings.CutPrefix(a.Fields[field], prefix)
		n, err1 := strconv.Atoi(ours)
		m, err2 := strconv.Atoi(theirs)
		if err1 == nil && err2 == nil && max(n-m, m-n) <= 2 {
			a.Fields[field] = b.Fields[field]
		}
	}
	return cmp.Equal(a, b)
}

// seeds are whole connections.
func seeds() []string {
	one := func(line string, fields ...string) string {
		return line + "\r\nHost: links.example\r\n" + strings.Join(append(fields, "", ""), "\r\n")
	}
	s := []string{
		lanetest.Browser, lanetest.Browser + lanetest.Browser, "", "\r\n", "G", "GET", "GET /live HTTP/1.1\r\n", "GET /live HTTP/1.1\r\nHost: links.example\r\n",
		one("GET /live HTTP/1.1") + one("HEAD /live HTTP/1.1") + one("GET /live HTTP/1.1"),
		one("GET /live HTTP/1.1", "Connection: close") + one("GET /live HTTP/1.1"),
		one("GET /live HTTP/1.1", "Connection: Keep-Alive, CLOSE"), one("GET /live HTTP/1.1", "Connection: te"),
		one("GET /live?qr=1&utm_source=x HTTP/1.1"), one("GET /live? HTTP/1.1"), one("GET /live?? HTTP/1.1"), one("GET /live#x HTTP/1.1"),
		one("GET /live?a#x HTTP/1.1"), one("GET /live?\xc3\xa4 HTTP/1.1"), one("GET /l%69ve HTTP/1.1"), one("GET /liv%zz HTTP/1.1"),
		one("GET //live HTTP/1.1"), one("GET /live/ HTTP/1.1"), one("GET /live+ HTTP/1.1"), one("GET / HTTP/1.1"), one("GET * HTTP/1.1"),
		one("OPTIONS * HTTP/1.1"), one("GET http://go.example/live HTTP/1.1"), one("GET live HTTP/1.1"), one("GET /live HTTP/1.0"),
		one("GET /live HTTP/1.2"), one("GET /live HTTP/2.0"), one("GET /live HTTP/1.1 "), one("GET  /live HTTP/1.1"), one("get /live HTTP/1.1"),
		one("POST /live HTTP/1.1", "Content-Length: 3") + "abc" + one("GET /live HTTP/1.1"),
		one("POST /api/x HTTP/1.1", "Content-Length: 5") + "hello" + one("GET /live HTTP/1.1"),
		one("POST /api/x HTTP/1.1", "Transfer-Encoding: chunked") + "5\r\nhello\r\n0\r\n\r\n" + one("GET /live HTTP/1.1"),
		one("GET /live HTTP/1.1", "Content-Length: 0") + one("GET /gone HTTP/1.1"),
		one("GET /live HTTP/1.1", "Content-Length: 5") + "GET /", one("GET /live HTTP/1.1", "Transfer-Encoding: chunked") + "0\r\n\r\n",
		one("GET /live HTTP/1.1", "Expect: 100-continue"), one("GET /live HTTP/1.1", "Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings"),
		one("GET /healthz HTTP/1.1") + one("GET /live HTTP/1.1"), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET /live HTTP/1.1\r\nHost: go.example\r\n\r\n", "GET /live HTTP/1.1\r\nHost: GO.example.:80\r\n\r\nGET /live HTTP/1.1\r\nHost: links.example\r\n\r\n",
		one("GET /live HTTP/1.1", "Purpose: prefetch"), one("HEAD /gone HTTP/1.1", "Sec-Purpose:  Prefetch;prerender"),
		one("GET /live HTTP/1.1", "User-Agent:", "User-Agent: second", "X-Empty:", "Accept: \t*/* \t"),
		one("GET /none HTTP/1.1", "Accept: text/html"), one("HEAD /none HTTP/1.1", "Accept: */*", "Accept: text/html"),
		"\r\n" + one("GET /live HTTP/1.1"), one("GET /live HTTP/1.1") + "\r\n" + one("GET /live HTTP/1.1"), "\r\n\r\n" + one("GET /live HTTP/1.1"),
		one("POST /api/x HTTP/1.1", "Content-Length: 5") + "hello\r\n" + one("GET /live HTTP/1.1"),
		one("GET /live HTTP/1.1", "X: \xff\xfe\x80"), one("GET /live HTTP/1.1", "X: tab\there"),
	}
	for _, code := range []string{"moved", "temp", "perm", "cdn", "gone", "later", "ends", "soon", "fwd?x=1", "off", "back", "wary", "few", "dead", "warn", "bad", "law", "none"} {
		s = append(s, one("GET /"+code+" HTTP/1.1", "User-Agent: x"), one("HEAD /"+code+" HTTP/1.1"), one("GET /"+code+" HTTP/1.1", "Accept: text/html"))
		s = append(s, one("GET /"+code+" HTTP/1.1")+one("HEAD /"+code+" HTTP/1.1", "Accept: text/html")+one("POST /"+code+" HTTP/1.1", "Content-Length: 0"))
	}
	return append(s, smuggling()...)
}

func TestTheLaneAnswersAsNetHTTPDoes(t *testing.T) {
	on, off := start(t, true), start(t, false)
	for _, s := range seeds() {
		for seed := range uint64(4) {
			compare(t, on, off, s, seed)
		}
	}
}

func FuzzTheLaneAnswersAsNetHTTPDoes(f *testing.F) {
	for i, s := range seeds() {
		f.Add([]byte(s), uint64(i))
	}
	on, off := start(f, true), start(f, false)
	f.Fuzz(func(t *testing.T, sent []byte, seed uint64) {
		if len(sent) > 8<<10 || strings.Count(string(sent), "\n") > 100 {
			return // long heads have tests of their own
		}
		compare(t, on, off, string(sent), seed)
	})
}
