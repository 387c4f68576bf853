package lookalike_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"curt/internal/abuse/abusetest"
	"curt/internal/abuse/lookalike"
)

// slow are the URLs that cost most: long, of many words, of many letters outside ASCII.
func slow() []string {
	return []string{
		"https://" + strings.Repeat("login-pay", 6) + "." + strings.Repeat("amaz0n", 10) + ".example/" + strings.Repeat("abcd-", 1600),
		"https://" + strings.Repeat("a-1.", 60) + "example/" + strings.Repeat("a/", 3900),
		"https://" + strings.Repeat("раурал.", 12) + "example/" + strings.Repeat("пароли-", 190),
		"https://" + strings.Repeat("secureloginverify", 3) + ".example/" + strings.Repeat("%ff", 2600),
		"https://" + strings.Repeat("xn--pypal-4ve.", 17) + "example/x",
	}
}

// What one create pays for all signals together, one by one. It only tells: how fast a
// machine is that runs tests is nobody's promise. The bar is 200 µs for 99 of 100.
func TestTimeOfAllSignals(t *testing.T) {
	p := everything(t)
	all := slices.Concat(usual(), hard())
	for _, b := range lookalike.BrandsOf(lookAlikes(t)) {
		for _, i := range imitations(b) {
			all = append(all, "https://"+i.host+"/login")
		}
	}
	measure := func(name string, urls []string) {
		var took []time.Duration
		for round := range 2 { // the second one is warm
			took = took[:0]
			for _, raw := range urls {
				f := abusetest.Facts(t, raw)
				begin := time.Now()
				p.Inspect(t.Context(), abusetest.Morning().Add(time.Duration(round)*time.Hour), f)
				took = append(took, time.Since(begin))
			}
		}
		slices.Sort(took)
		at := func(share float64) time.Duration { return took[int(share*float64(len(took)-1))] }
		t.Logf("%-24s %5d URLs: p50 %v, p99 %v, most %v", name, len(took), at(0.5), at(0.99), at(1))
	}
	measure("honest and imitated", all)
	measure("made to be slow", slices.Repeat(slow(), 40))
}

func BenchmarkAllSignals(b *testing.B) {
	p := everything(b)
	for name, raw := range map[string]string{
		"usual": "https://www.example.com/2026/03/a-long-way-home.html?page=2", "look-alike": "https://secure.rnicrosoft-login.example/verify",
		"long": slow()[0], "other scripts": slow()[2],
	} {
		f := abusetest.Facts(b, raw)
		f.Change = true
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Inspect(b.Context(), abusetest.Morning(), f)
			}
		})
	}
}
