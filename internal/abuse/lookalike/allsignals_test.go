package lookalike_test

import (
	"testing"

	"curt/internal/abuse"
	"curt/internal/abuse/abusetest"
	"curt/internal/abuse/lookalike"
	"curt/internal/abuse/signals"
)

// signals are all of this package that are no lists.
func allSignals(tb testing.TB) []abuse.Signal {
	tb.Helper()
	return []abuse.Signal{
		abusetest.Must[*signals.LoginWords](tb)(signals.NewLoginWords()), abusetest.Must[*lookalike.Signal](tb)(lookalike.New("")),
		abusetest.Must[*signals.Rate](tb)(signals.NewRate()), abusetest.Must[*signals.Origin](tb)(signals.NewOrigin()),
		abusetest.Must[*signals.Shorteners](tb)(signals.NewShorteners("")),
		signals.IPLiteral{},
		signals.PrivateAddress{},
		abusetest.Must[*signals.Ages](tb)(signals.NewAges(signals.AgesConfig{})),
	}
}

func everything(tb testing.TB) *abuse.Panel {
	tb.Helper()
	return abuse.NewPanel(nil, allSignals(tb)...)
}

func TestACleanURLCostsNoAllocation(t *testing.T) {
	for _, raw := range []string{
		"https://www.example.com/2026/03/a-long-way-home.html?page=2", "https://shop.example.co.uk/products/red-shoes-42", "https://example.org/",
		"https://some-blog.pages.dev/posts/how-to-paint-a-wall/",
	} {
		f := abusetest.Facts(t, raw)
		for _, s := range allSignals(t) { // few enough runs for velocity to find nothing
			if n := testing.AllocsPerRun(40, func() { _, _ = s.Inspect(t.Context(), abusetest.Morning(), f) }); n != 0 {
				t.Errorf("%s: %s makes %v allocations", raw, s.Name(), n)
			}
		}
		p := everything(t)
		if n := testing.AllocsPerRun(40, func() { p.Inspect(t.Context(), abusetest.Morning(), f) }); n != 0 {
			t.Errorf("%s: %v allocations", raw, n)
		}
	}
}
