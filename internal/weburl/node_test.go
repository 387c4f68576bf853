package weburl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"curt/internal/weburl"
)

// nodeURL is what Node's URL, the parser of a browser's class, made of an input.
type nodeURL struct {
	Href, Protocol, Hostname, Port, User string
	Fixed                                bool // Href reads as itself again
}

const nodeScript = `
let text = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', d => text += d);
process.stdin.on('end', () => {
  console.log(JSON.stringify(JSON.parse(text).map(s => {
    try {
      const u = new URL(s);
      return {Href: u.href, Protocol: u.protocol, Hostname: u.hostname, Port: u.port, User: u.username + u.password,
              Fixed: new URL(u.href).href === u.href};
    } catch (e) { return null; }
  })));
});`

// askNode returns Node's reading of each input, nil where Node refuses it.
func askNode(t *testing.T, inputs []string) []*nodeURL {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("node is needed to compare URL parsers: %v", err)
		}
		t.Skip("node is not installed, so there is no browser's parser to compare with")
	}
	in, err := json.Marshal(inputs)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "-e", nodeScript)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run node: %v", err)
	}
	var urls []*nodeURL
	if err := json.Unmarshal(out, &urls); err != nil || len(urls) != len(inputs) {
		t.Fatalf("node answered %d of %d URLs: %v", len(urls), len(inputs), err)
	}
	return urls
}

// pieces are what hostile URLs are made of.
var pieces = strings.Split("http https HTTP : / // \\ @ ? # . .. % %2e %2E%2e %2F %00 %41 %zz %C3%A9 %EF%BC%8E [ ] [::1] :: ::1 "+
	"[::ffff:127.0.0.1] [1:2:3:4:5:6:7:8] [1:2:3:4:5:6:7::] [fe80::1%25eth0] ffff 127.0.0.1 127.1 0x7f 0177 017700000001 2130706433 0x7f000001 "+
	"1 -1 +1 0x 0xg 08 256 65535 65536 00080 80 443 8080 0 example com EXAMPLE localhost xn-- xn--nxasmq6b xn--a xn--bcher-kva XN--BCHER-KVA é ß ü ς 。 ． ａ １ ｘ "+
	"\u200d \u200b \u00ad \u2028 \ufeff \ufffd 😀 \t \n \r \x00 \x01 \x1f \x7f \u0080 < > \" ' ^ | { } ` ~ * _ - -- ab--c a b = & + , ; ! $ ( ) א 1א ؀ K ſ İ ≠ ≮ 日本 é a.b.c", " ")

// corpus is the hostile table and as many random URLs of pieces, always the same.
func corpus(n int) []string {
	r := rand.New(rand.NewPCG(3, 1415926))
	starts := []string{"http://", "https://", "http:", "https:/", "http:\\\\", " HtTp:///", "ht\ntps://", "http://a.example/", "http://example.com:", "https://b.example/?", "http://c/#", ""}
	var inputs []string
	for _, c := range hostile {
		inputs = append(inputs, c.raw)
	}
	inputs = append(inputs, ownSpellings...)
	for range n {
		var s strings.Builder
		s.WriteString(starts[r.IntN(len(starts))])
		for range 1 + r.IntN(7) {
			if r.IntN(12) == 0 {
				s.WriteByte(' ')
			}
			s.WriteString(pieces[r.IntN(len(pieces))])
		}
		inputs = append(inputs, s.String())
	}
	return inputs
}

// TestBrowsersReadTheSame holds Parse to Node: what it takes, Node reads the same,
// byte for byte; what it refuses, Node refuses too or the rule explains it.
func TestBrowsersReadTheSame(t *testing.T) {
	inputs := corpus(60_000)
	taken, idn, wrong := 0, 0, 0
	for i, node := range askNode(t, inputs) {
		raw := inputs[i]
		u, err := weburl.Parse(raw)
		switch {
		case err == nil && (node == nil || !node.Fixed || encodeCaret(node.Href) != u.Href() || node.Hostname != u.Host()):
			wrong++
			t.Errorf("%q is %q here, in Node %+v", raw, u.Href(), node)
		case err == nil:
			taken++
		case node == nil || explained(err, raw, node):
		case errors.Is(err, weburl.ErrHost) && strings.Contains(node.Hostname, "xn--"):
			idn++ // another version of Unicode, or a label that mixes A-label and text
			if idn <= 20 {
				t.Logf("only Node takes %q: %q", raw, node.Hostname)
			}
		default:
			wrong++
			t.Errorf("%q: %v; Node reads %+v", raw, err, node)
		}
		if wrong > 40 {
			t.Fatal("too many differences")
		}
	}
	locationsReadBack(t, inputs)
	t.Logf("%d of %d taken and read alike, %d hosts outside ASCII taken by Node only", taken, len(inputs), idn)
	if taken < len(inputs)/10 {
		t.Errorf("only %d of %d URLs were taken: the corpus proves little", taken, len(inputs))
	}
	if idn > len(inputs)/100 {
		t.Errorf("%d hosts outside ASCII are refused here alone", idn)
	}
}

// locationsReadBack shows what would be a Location to Node: it must be an absolute
// URL that Node reads as itself, with the host that we saw.
func locationsReadBack(t *testing.T, inputs []string) {
	t.Helper()
	var taken []weburl.URL
	var locations []string
	for _, raw := range inputs {
		if u, err := weburl.Parse(raw); err == nil {
			taken, locations = append(taken, u), append(locations, u.Href())
		}
	}
	for i, node := range askNode(t, locations) {
		if node == nil || node.Href != locations[i] || node.Hostname != taken[i].Host() || node.User != "" {
			t.Errorf("Location %q is in Node %+v", locations[i], node)
		}
	}
}

// encodeCaret makes the one change to paths that the standard made after Node
// 20 (whatwg/url pull request 846, of 2025) and that newer ones know.
func encodeCaret(href string) string {
	end := strings.IndexAny(href, "?#")
	if end < 0 {
		end = len(href)
	}
	return strings.ReplaceAll(href[:end], "^", "%5E") + href[end:]
}

// explained reports whether a rule of curt that the standard does not have is the
// reason of the refusal.
func explained(err error, raw string, node *nodeURL) bool {
	switch {
	case errors.Is(err, weburl.ErrEncoding):
		return !utf8.ValidString(raw)
	case errors.Is(err, weburl.ErrControl):
		return strings.ContainsFunc(raw, func(r rune) bool { return r < 0x80 && unicode.IsControl(r) })
	case errors.Is(err, weburl.ErrTooLong):
		return len(raw) > weburl.MaxLength || len(node.Href) > weburl.MaxLength
	case errors.Is(err, weburl.ErrScheme):
		return node.Protocol != "http:" && node.Protocol != "https:"
	case errors.Is(err, weburl.ErrCredentials):
		return node.User != ""
	case errors.Is(err, weburl.ErrPort):
		return node.Port == "0"
	case errors.Is(err, weburl.ErrHost):
		return !fitsDNS(node.Hostname)
	}
	return false
}

// fitsDNS is the host rule, written a second time.
func fitsDNS(host string) bool {
	host = strings.TrimSuffix(host, ".")
	if len(host) > 253 || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", r)
		}) {
			return false
		}
	}
	return true
}
