package weburl_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"curt/internal/weburl"
)

// disguises rewrite a host, or a part of it, so that browsers still read the same.
func disguises() []func(r *rand.Rand, host string) string {
	each := func(p int, f func(c rune) string) func(*rand.Rand, string) string {
		return func(r *rand.Rand, host string) string {
			var b strings.Builder
			for _, c := range host {
				if r.IntN(p) == 0 {
					b.WriteString(f(c))
				} else {
					b.WriteRune(c)
				}
			}
			return b.String()
		}
	}
	wide := func(c rune) string {
		if c > ' ' && c < 0x7f && !strings.ContainsRune("[]:%", c) {
			return string(c + 0xfee0)
		}
		return string(c)
	}
	escape := func(c rune) string {
		if strings.ContainsRune("[]:%", c) {
			return string(c)
		}
		var b strings.Builder
		for _, octet := range []byte(string(c)) {
			fmt.Fprintf(&b, "%%%02x", octet)
		}
		return b.String()
	}
	return []func(*rand.Rand, string) string{
		each(2, func(c rune) string { return strings.ToUpper(string(c)) }),
		each(3, wide), each(3, escape), each(4, func(c rune) string { return string(c) + "\u00ad" }), each(4, func(c rune) string { return "\t" + string(c) }),
		each(1, func(c rune) string {
			if c == '.' {
				return "。"
			}
			return string(c)
		}),
		func(_ *rand.Rand, host string) string { return host + "." },
		func(_ *rand.Rand, host string) string { return "@" + host },
		func(_ *rand.Rand, host string) string { return ":@" + host },
		func(r *rand.Rand, host string) string { return fmt.Sprintf("%s:%d", host, 1+r.IntN(65535)) },
		func(_ *rand.Rand, host string) string { return strings.ReplaceAll(host, "ü", "u\u0308") },
		func(_ *rand.Rand, host string) string { return "%zz" + host }, // some lead elsewhere
		func(_ *rand.Rand, host string) string { return "x" + host },
		func(_ *rand.Rand, host string) string { return host + ".example.org" },
		func(_ *rand.Rand, host string) string { return "user@" + host },
	}
}

// TestBrowsersNeverReachOurHosts disguises our own hosts and asks Node which host
// each spelling is: what Node reads as ours is refused, what it reads as another's
// is not.
func TestBrowsersNeverReachOurHosts(t *testing.T) {
	h := newHosts(t, "https://curt.example/", []string{"kürz.example", "go.example:9000"}, "192.0.2.10", "2001:db8::10")
	ours := []string{"curt.example", "xn--krz-hoa.example", "go.example", "192.0.2.10", "[2001:db8::10]", "[::ffff:c000:20a]", "[::c000:20a]", "[64:ff9b::c000:20a]", "[2002:c000:20a::]"}
	plain := []string{
		"curt.example", "kürz.example", "xn--krz-hoa.example", "go.example", "192.0.2.10", "3221225994", "0xC000020A", "0300.0.2.012", "192.0.522", "192.522",
		"[2001:db8::10]", "[2001:0DB8:0:0::0010]", "[::ffff:192.0.2.10]", "[::192.0.2.10]", "[64:ff9b::192.0.2.10]", "[2002:c000:20a::]", "192.0.2.11", "kurz.example",
	}
	r := rand.New(rand.NewPCG(2, 7182818))
	rewrite := disguises()
	var inputs []string
	for range 20_000 {
		host := plain[r.IntN(len(plain))]
		for range r.IntN(4) {
			host = rewrite[r.IntN(len(rewrite))](r, host)
		}
		start := []string{"http://", "https://", "HTTP:", `https:\\`, " https:///"}[r.IntN(5)]
		inputs = append(inputs, start+host+[]string{"", "/", "/x", "?q", "#f", `\x`}[r.IntN(6)])
	}
	refused, others := 0, 0
	for i, node := range askNode(t, inputs) {
		u, err := weburl.Parse(inputs[i])
		if err != nil || node == nil {
			continue
		}
		own := slices.Contains(ours, strings.TrimSuffix(node.Hostname, "."))
		if h.Refuses(u) != own {
			t.Errorf("%q is %s in Node, refused: %v", inputs[i], node.Hostname, !own)
		}
		if own {
			refused++
		} else {
			others++
		}
	}
	t.Logf("%d spellings of our hosts refused, %d of others taken", refused, others)
	if refused < 5000 || others < 1000 {
		t.Errorf("%d spellings of our hosts and %d of others prove little", refused, others)
	}
}
