package weburl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/weburl"
)

// hostile are spellings that attackers, careless programs and browsers use: either
// the normal form, or the rule that refuses them. TestBrowsersReadTheSame shows all
// of them to Node, too. The one rule that depends on who we are has its table in
// own_test.go.
var hostile = []struct {
	raw  string
	want string
	err  error
}{
	// Usual ones come through unharmed.
	{raw: "https://example.com/", want: "https://example.com/"},
	{raw: "https://example.com", want: "https://example.com/"},
	{raw: "https://www.example.com/a/b.html?x=1&y=%20z#top", want: "https://www.example.com/a/b.html?x=1&y=%20z#top"},
	{raw: "https://example.com/?", want: "https://example.com/?"},
	{raw: "https://example.com/#", want: "https://example.com/#"},
	{raw: "https://example.com?q", want: "https://example.com/?q"},
	{raw: "https://example.com#f", want: "https://example.com/#f"},
	{raw: "https://example.com/a?b?c#d#e", want: "https://example.com/a?b?c#d#e"},
	{raw: "http://my_host.example./", want: "http://my_host.example./"},
	{raw: "https://-a-.example/", want: "https://-a-.example/"},
	{raw: "http://localhost:3000/", want: "http://localhost:3000/"},
	{raw: "https://en.wikipedia.org/wiki/Go_(programming_language)", want: "https://en.wikipedia.org/wiki/Go_(programming_language)"},
	{raw: "https://example.com/p?u=https://other.example/@me", want: "https://example.com/p?u=https://other.example/@me"},
	{raw: "https://medium.example/@name:x", want: "https://medium.example/@name:x"},

	// Schemes that run scripts or read files, however they are hidden.
	{raw: "javascript:alert(1)", err: weburl.ErrScheme},
	{raw: "JaVaScRiPt:alert(1)", err: weburl.ErrScheme},
	{raw: "java\tscript:alert(1)", err: weburl.ErrControl},
	{raw: "java\nscript:alert(1)", err: weburl.ErrControl},
	{raw: "java\r\nscript:alert(1)", err: weburl.ErrControl},
	{raw: "\x01javascript:alert(1)", err: weburl.ErrControl},
	{raw: " \t\x00 javascript:alert(1)", err: weburl.ErrControl},
	{raw: "javascript://example.com/%0aalert(1)", err: weburl.ErrScheme},
	{raw: "javascript:http://example.com/", err: weburl.ErrScheme},
	{raw: "javascript&colon;alert(1)", err: weburl.ErrScheme},
	{raw: "data:text/html,<script>alert(1)</script>", err: weburl.ErrScheme},
	{raw: "vbscript:msgbox(1)", err: weburl.ErrScheme},
	{raw: "file:///etc/passwd", err: weburl.ErrScheme},
	{raw: "ftp://example.com/", err: weburl.ErrScheme},
	{raw: "ws://example.com/", err: weburl.ErrScheme},
	{raw: "blob:https://example.com/1", err: weburl.ErrScheme},
	{raw: "view-source:https://example.com/", err: weburl.ErrScheme},
	{raw: "intent://example.com#Intent;scheme=http;end", err: weburl.ErrScheme},
	{raw: "mailto:a@example.com", err: weburl.ErrScheme},
	{raw: "about:blank", err: weburl.ErrScheme},
	{raw: "httpſ://example.com/", err: weburl.ErrScheme},
	{raw: "ｈttp://example.com/", err: weburl.ErrScheme},
	{raw: "http%3A//example.com/", err: weburl.ErrScheme},
	{raw: "httpss://example.com/", err: weburl.ErrScheme},
	{raw: "+http://example.com/", err: weburl.ErrScheme},
	{raw: "\u00a0http://example.com/", err: weburl.ErrScheme},
	{raw: "\ufeffhttp://example.com/", err: weburl.ErrScheme},

	// No scheme at all.
	{raw: "", err: weburl.ErrEmpty},
	{raw: "   ", err: weburl.ErrEmpty},
	{raw: "example.com", err: weburl.ErrScheme},
	{raw: "www.example.com/path", err: weburl.ErrScheme},
	{raw: "//evil.example/", err: weburl.ErrScheme},
	{raw: `\\evil.example\`, err: weburl.ErrScheme},
	{raw: "/path", err: weburl.ErrScheme},
	{raw: "?q", err: weburl.ErrScheme},
	{raw: ":", err: weburl.ErrScheme},
	{raw: "://example.com", err: weburl.ErrScheme},
	{raw: "http", err: weburl.ErrScheme},
	{raw: "localhost:8080/", err: weburl.ErrScheme},

	// What browsers forgive.
	{raw: "  https://example.com/  ", want: "https://example.com/"},
	{raw: "HTTPS://EXAMPLE.COM/PaTh", want: "https://example.com/PaTh"},
	{raw: "http:example.com", want: "http://example.com/"},
	{raw: "http:/example.com", want: "http://example.com/"},
	{raw: "http:///example.com", want: "http://example.com/"},
	{raw: "http://////example.com", want: "http://example.com/"},
	{raw: `http:\\example.com\a\b`, want: "http://example.com/a/b"},
	{raw: `http:\/\/example.com\@evil.example/`, want: "http://example.com/@evil.example/"},
	{raw: `https://example.com?a\b`, want: `https://example.com/?a\b`},
	{raw: "https://example.com:443/", want: "https://example.com/"},
	{raw: "http://example.com:80/", want: "http://example.com/"},
	{raw: "http://example.com:443/", want: "http://example.com:443/"},
	{raw: "http://example.com:/", want: "http://example.com/"},
	{raw: "http://example.com:00080/", want: "http://example.com/"},
	{raw: "http://example.com:0008080/", want: "http://example.com:8080/"},
	{raw: "http://example.com:65535/", want: "http://example.com:65535/"},

	// Control characters, which browsers forgive and we do not.
	{raw: " \t\r\n\x00\x1f", err: weburl.ErrControl},
	{raw: "\x00\x1fhttps://example.com/\x00", err: weburl.ErrControl},
	{raw: "ht\ntps:\t//exa\r\nmple.com/a\tb", err: weburl.ErrControl},
	{raw: "https://e.example/a\r\nX: y", err: weburl.ErrControl},
	{raw: "https://e.example/\n", err: weburl.ErrControl},
	{raw: "\thttps://e.example/", err: weburl.ErrControl},
	{raw: "https://e.example/a\tb", err: weburl.ErrControl},
	{raw: "https://e.example/?a\x00b", err: weburl.ErrControl},
	{raw: "https://e.example/#a\x1bb", err: weburl.ErrControl},
	{raw: "https://e.example/\x7f", err: weburl.ErrControl},

	// Users and passwords; only empty ones are none.
	{raw: "http://user@example.com/", err: weburl.ErrCredentials},
	{raw: "http://user:password@example.com/", err: weburl.ErrCredentials},
	{raw: "http://:password@example.com/", err: weburl.ErrCredentials},
	{raw: "http://good.example@evil.example/", err: weburl.ErrCredentials},
	{raw: "http://good.example%2F@evil.example/", err: weburl.ErrCredentials},
	{raw: "http://good.example:80@evil.example/", err: weburl.ErrCredentials},
	{raw: "http://a@b@c.example/", err: weburl.ErrCredentials},
	{raw: "http://@@example.com/", err: weburl.ErrCredentials},
	{raw: "http://::@example.com/", err: weburl.ErrCredentials},
	{raw: "https:user@example.com", err: weburl.ErrCredentials},
	{raw: "http:@example.com", want: "http://example.com/"},
	{raw: "http://:@example.com/", want: "http://example.com/"},
	{raw: "http://example.com/@evil.example", want: "http://example.com/@evil.example"},
	{raw: "http://example.com?@evil.example", want: "http://example.com/?@evil.example"},
	{raw: "http://example.com#@evil.example", want: "http://example.com/#@evil.example"},

	// Hosts that are none.
	{raw: "http://", err: weburl.ErrHost},
	{raw: "http:", err: weburl.ErrHost},
	{raw: "http:///", err: weburl.ErrHost},
	{raw: "http://?q", err: weburl.ErrHost},
	{raw: "http://#f", err: weburl.ErrHost},
	{raw: "http://:80/", err: weburl.ErrHost},
	{raw: "http://@/", err: weburl.ErrHost},
	{raw: "http://./", err: weburl.ErrHost},
	{raw: "http://../", err: weburl.ErrHost},
	{raw: "http://.example.com/", err: weburl.ErrHost},
	{raw: "http://a..b/", err: weburl.ErrHost},
	{raw: "http://example.com../", err: weburl.ErrHost},
	{raw: "http://exa mple.com/", err: weburl.ErrHost},
	{raw: "http://exa%20mple.com/", err: weburl.ErrHost},
	{raw: "http://example.com%00/", err: weburl.ErrHost},
	{raw: "http://example.com\x00.evil.example/", err: weburl.ErrControl},
	{raw: "http://example.com%2F.evil.example/", err: weburl.ErrHost},
	{raw: "http://example.com%23.evil.example/", err: weburl.ErrHost},
	{raw: "http://example.com%5C.evil.example/", err: weburl.ErrHost},
	{raw: "http://example.com%40evil.example/", err: weburl.ErrHost},
	{raw: "http://example.com%3A80/", err: weburl.ErrHost},
	{raw: "http://ex%zzample.com/", err: weburl.ErrHost},
	{raw: "http://example.com%/", err: weburl.ErrHost},
	{raw: "http://%25/", err: weburl.ErrHost},
	{raw: "http://a<b/", err: weburl.ErrHost},
	{raw: "http://a>b/", err: weburl.ErrHost},
	{raw: "http://a^b/", err: weburl.ErrHost},
	{raw: "http://a|b/", err: weburl.ErrHost},
	{raw: "http://a[b/", err: weburl.ErrHost},
	{raw: "http://a]b/", err: weburl.ErrHost},
	{raw: "http://a\x7fb/", err: weburl.ErrControl},
	{raw: "http://a\"b/", err: weburl.ErrHost},
	{raw: "http://a'b/", err: weburl.ErrHost},
	{raw: "http://a;b/", err: weburl.ErrHost},
	{raw: "http://a,b/", err: weburl.ErrHost},
	{raw: "http://a*b/", err: weburl.ErrHost},
	{raw: "http://-1/", want: "http://-1/"}, // a name; whatwg-url reads 255.255.255.255
	{raw: "http://+1/", err: weburl.ErrHost},
	{raw: "http://\u200b/", err: weburl.ErrHost},
	{raw: "http://\u00ad/", err: weburl.ErrHost},
	{raw: "http://\ufffd/", err: weburl.ErrHost},
	{raw: "http://%FF/", err: weburl.ErrHost},
	{raw: "http://a%EF%BC%8Fb/", err: weburl.ErrHost}, // full-width slash
	{raw: "http://a\u2100b/", err: weburl.ErrHost},    // becomes "a/c"
	{raw: "http://a\uff1a80/", err: weburl.ErrHost},   // full-width colon
	{raw: "http://" + strings.Repeat("a", 64) + ".example/", err: weburl.ErrHost},
	{raw: "http://" + strings.Repeat("a.", 128) + "/", err: weburl.ErrHost},

	// Hosts outside ASCII.
	{raw: "https://bücher.example/", want: "https://xn--bcher-kva.example/"},
	{raw: "https://BÜCHER.example/", want: "https://xn--bcher-kva.example/"},
	{raw: "https://xn--bcher-kva.example/", want: "https://xn--bcher-kva.example/"},
	{raw: "https://XN--BCHER-KVA.example/", want: "https://xn--bcher-kva.example/"},
	{raw: "https://b%C3%BCcher.example/", want: "https://xn--bcher-kva.example/"},
	{raw: "https://faß.example/", want: "https://xn--fa-hia.example/"},
	{raw: "https://日本。example/", want: "https://xn--wgv71a.example/"},
	{raw: "https://ｅｘａｍｐｌｅ．ｃｏｍ/", want: "https://example.com/"},
	{raw: "https://exam\u00adple.com/", want: "https://example.com/"},
	{raw: "https://ⓔⓧⓐⓜⓟⓛⓔ.com/", want: "https://example.com/"},
	{raw: "https://😀.example/", want: "https://xn--e28h.example/"},
	{raw: "https://раураl.example/", want: "https://xn--l-7sba6dbr.example/"},
	{raw: "https://xn--/", err: weburl.ErrHost},
	{raw: "https://xn--a/", err: weburl.ErrHost},
	{raw: "https://xn--a.example/", err: weburl.ErrHost},
	{raw: "https://xn--example-.com/", err: weburl.ErrHost},
	{raw: "https://xn--999999999999.example/", err: weburl.ErrHost},
	{raw: "https://xn--bücher.example/", err: weburl.ErrHost},
	{raw: "https://ｘn--bcher-kva.example/", want: "https://xn--bcher-kva.example/"},
	{raw: "https://0127.1．xn--/", err: weburl.ErrHost},
	{raw: "https://a\u200db.example/", err: weburl.ErrHost},

	// Addresses in disguise: policies must see what visitors reach.
	{raw: "http://127.0.0.1/", want: "http://127.0.0.1/"},
	{raw: "http://127.1/", want: "http://127.0.0.1/"},
	{raw: "http://2130706433/", want: "http://127.0.0.1/"},
	{raw: "http://0x7f000001/", want: "http://127.0.0.1/"},
	{raw: "http://0X7F.1/", want: "http://127.0.0.1/"},
	{raw: "http://017700000001/", want: "http://127.0.0.1/"},
	{raw: "http://0177.0.0.01/", want: "http://127.0.0.1/"},
	{raw: "http://0x7f.0.0.0x1./", want: "http://127.0.0.1/"},
	{raw: "http://127%2e0%2e0%2e1/", want: "http://127.0.0.1/"},
	{raw: "http://１２７．０．０．１/", want: "http://127.0.0.1/"},
	{raw: "http://127。0。0。1/", want: "http://127.0.0.1/"},
	{raw: "http://0/", want: "http://0.0.0.0/"},
	{raw: "http://0x/", want: "http://0.0.0.0/"},
	{raw: "http://256.0.0.1/", err: weburl.ErrHost},
	{raw: "http://1.2.3.4.5/", err: weburl.ErrHost},
	{raw: "http://4294967296/", err: weburl.ErrHost},
	{raw: "http://99999999999999999999999999/", err: weburl.ErrHost},
	{raw: "http://08/", err: weburl.ErrHost},
	{raw: "http://1.2.3.0x100/", err: weburl.ErrHost},
	{raw: "http://a.1/", err: weburl.ErrHost},
	{raw: "http://1..2/", err: weburl.ErrHost},
	{raw: "http://a.0xg/", want: "http://a.0xg/"},
	{raw: "http://[::1]/", want: "http://[::1]/"},
	{raw: "http://[0:0:0:0:0:0:0:1]:8080/", want: "http://[::1]:8080/"},
	{raw: "http://[::ffff:127.0.0.1]/", want: "http://[::ffff:7f00:1]/"},
	{raw: "http://[::FFFF:7F00:0001]/", want: "http://[::ffff:7f00:1]/"},
	{raw: "http://[1:2:3:4:5:6:7::]/", want: "http://[1:2:3:4:5:6:7:0]/"},
	{raw: "http://[fe80::1%25eth0]/", err: weburl.ErrHost},
	{raw: "http://[fe80::1%eth0]/", err: weburl.ErrHost},
	{raw: "http://[::1", err: weburl.ErrHost},
	{raw: "http://[::1]x/", err: weburl.ErrHost},
	{raw: "http://[[::1]]/", err: weburl.ErrHost},
	{raw: "http://[]/", err: weburl.ErrHost},
	{raw: "http://[127.0.0.1]/", err: weburl.ErrHost},
	{raw: "http://[::1.2.3.04]/", err: weburl.ErrHost},
	{raw: "http://[::g]/", err: weburl.ErrHost},
	{raw: "http://[1:2:3:4:5:6:7:8:9]/", err: weburl.ErrHost},
	{raw: "http://::1/", err: weburl.ErrHost},

	// Ports.
	{raw: "http://example.com:0/", err: weburl.ErrPort},
	{raw: "http://example.com:65536/", err: weburl.ErrPort},
	{raw: "http://example.com:99999999999999999999/", err: weburl.ErrPort},
	{raw: "http://example.com:-1/", err: weburl.ErrPort},
	{raw: "http://example.com:80a/", err: weburl.ErrPort},
	{raw: "http://example.com: 80/", err: weburl.ErrPort},
	{raw: "http://example.com:８０/", err: weburl.ErrPort},
	{raw: "http://example.com:80:90/", err: weburl.ErrPort},

	// Paths, queries, fragments: header-safe and without dots.
	{raw: "http://a.b/a/./b/../c", want: "http://a.b/a/c"},
	{raw: "http://a.b/%2e/%2E%2e/x/.%2e/y", want: "http://a.b/y"},
	{raw: "http://a.b/../../etc/passwd", want: "http://a.b/etc/passwd"},
	{raw: "http://a.b/a/..", want: "http://a.b/"},
	{raw: "http://a.b/a/.", want: "http://a.b/a/"},
	{raw: "http://a.b/...", want: "http://a.b/..."},
	{raw: "http://a.b//evil.example//", want: "http://a.b//evil.example//"},
	{raw: "http://a.b/..//x", want: "http://a.b//x"},
	{raw: "http://a.b/x\r\nSet-Cookie: a=b", err: weburl.ErrControl},
	{raw: "http://a.b/%0d%0aSet-Cookie:a", want: "http://a.b/%0d%0aSet-Cookie:a"},
	{raw: "http://a.b/\u0085\u2028", want: "http://a.b/%C2%85%E2%80%A8"},
	{raw: "http://a.b/%00", want: "http://a.b/%00"},
	{raw: "http://a.b/%zz%", want: "http://a.b/%zz%"},
	{raw: "http://a.b/é日😀", want: "http://a.b/%C3%A9%E6%97%A5%F0%9F%98%80"},
	{raw: "http://a.b/ \"<>`{}|^'", want: "http://a.b/%20%22%3C%3E%60%7B%7D|%5E'"},
	{raw: "http://a.b/? \"<>`{}|^'", want: "http://a.b/?%20%22%3C%3E`{}|^%27"},
	{raw: "http://a.b/# \"<>`{}|^'", want: "http://a.b/#%20%22%3C%3E%60{}|^'"},
	{raw: "http://a.b/?q=é&r=%E9", want: "http://a.b/?q=%C3%A9&r=%E9"},

	// Encodings and sizes.
	{raw: "http://a.b/\xff", err: weburl.ErrEncoding},
	{raw: "http://a.b/\xc0\x80", err: weburl.ErrEncoding},
	{raw: "http://a.b/\xed\xa0\x80", err: weburl.ErrEncoding},
	{raw: "http://\xe9.example/", err: weburl.ErrEncoding},
	{raw: "http://a.b/" + strings.Repeat("x", 8181), want: "http://a.b/" + strings.Repeat("x", 8181)},
	{raw: "http://a.b/" + strings.Repeat("x", 8182), err: weburl.ErrTooLong},
	{raw: "http://a.b/" + strings.Repeat(" ", 3000) + "x", err: weburl.ErrTooLong},
	{raw: "http://a.b/" + strings.Repeat("é", 1400), err: weburl.ErrTooLong},
	{raw: strings.Repeat(" ", 8192) + "http://a.b/", err: weburl.ErrTooLong},
	// The normal form has a slash more.
	{raw: "http://a.b?" + strings.Repeat("x", 8180), want: "http://a.b/?" + strings.Repeat("x", 8180)},
	{raw: "http://a.b?" + strings.Repeat("x", 8181), err: weburl.ErrTooLong},
	// 253 bytes and 254, not counting the final dot.
	{raw: "http://" + strings.Repeat(strings.Repeat("a", 62)+".", 4) + "a./", want: "http://" + strings.Repeat(strings.Repeat("a", 62)+".", 4) + "a./"},
	{raw: "http://" + strings.Repeat(strings.Repeat("a", 62)+".", 4) + "aa/", err: weburl.ErrHost},
	// Five numbers, and more than fits into the processor's.
	{raw: "http://1.2.3.4.0/", err: weburl.ErrHost},
	{raw: "http://18446744073709551617/", err: weburl.ErrHost},
	{raw: "http://0x10000000000000001/", err: weburl.ErrHost},
	// A joiner stands where letters join, and nowhere else.
	{raw: "http://क्\u200dष.example/", want: "http://xn--11b2ezcw70k.example/"},
	{raw: "http://a\u200db.example/", err: weburl.ErrHost},
	{raw: "http://a\u200cb.example/", err: weburl.ErrHost},
	{raw: "http://" + strings.Repeat("@", 8000) + "a", err: weburl.ErrCredentials},
}

func TestHostileSpellings(t *testing.T) {
	if len(hostile) < 100 {
		t.Errorf("only %d cases", len(hostile))
	}
	rules := map[error]int{
		nil: 0, weburl.ErrEmpty: 0, weburl.ErrTooLong: 0, weburl.ErrEncoding: 0, weburl.ErrControl: 0, weburl.ErrScheme: 0,
		weburl.ErrCredentials: 0, weburl.ErrHost: 0, weburl.ErrPort: 0,
	}
	for _, c := range hostile {
		rules[c.err]++
		u, err := weburl.Parse(c.raw)
		if !errors.Is(err, c.err) || (c.err == nil) != (err == nil) {
			t.Errorf("%.100q: %v, want error %v (got %q)", c.raw, err, c.err, u.Href())
			continue
		}
		if diff := cmp.Diff(c.want, u.Href()); diff != "" {
			t.Errorf("%.100q (-want +got):\n%s", c.raw, diff)
		}
	}
	for rule, cases := range rules {
		if cases < 2 {
			t.Errorf("%d cases hold the rule %v", cases, rule)
		}
	}
}
