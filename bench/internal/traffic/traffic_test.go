package traffic_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"net/url"
	"testing"

	"curt/bench/internal/traffic"
)

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// TestZipfFollowsItsLaw is a chi-squared test of the drawn ranks against 1/k.
// Ranks that are expected fewer than 20 times share a cell.
func TestZipfFollowsItsLaw(t *testing.T) {
	const n, draws = 100_000, 2_000_000
	z, r := traffic.NewZipf(n), seeded()
	seen := make([]int, n)
	for range draws {
		seen[z.Rank(r)]++
	}
	harmonic := 0.0
	for k := n; k >= 1; k-- {
		harmonic += 1 / float64(k)
	}
	chi, cells, got, want := 0.0, 0, 0.0, 0.0
	for k := range n {
		got += float64(seen[k])
		want += draws / harmonic / float64(k+1)
		if want >= 20 || k == n-1 {
			chi += (got - want) * (got - want) / want
			cells++
			got, want = 0, 0
		}
	}
	// Wilson and Hilferty: the cube root of chi²/df is nearly normal. 5 sigma.
	df := float64(cells - 1)
	z5 := (math.Cbrt(chi/df) - (1 - 2/(9*df))) / math.Sqrt(2/(9*df))
	if math.Abs(z5) > 5 {
		t.Errorf("chi-squared %.0f with %.0f degrees of freedom: %.1f sigma", chi, df, z5)
	}
	if got, want := z.Share(0), 1/harmonic; math.Abs(got-want) > 1e-12 {
		t.Errorf("share of the first rank = %v, want %v", got, want)
	}
}

func TestZipfOverFewRanks(t *testing.T) {
	one, two, r := traffic.NewZipf(1), traffic.NewZipf(2), seeded()
	first := 0
	for range 30_000 {
		if one.Rank(r) != 0 {
			t.Fatal("one rank, another drawn")
		}
		if two.Rank(r) == 0 {
			first++
		}
	}
	if first < 19_500 || first > 20_500 {
		t.Errorf("the first of two ranks was drawn %d times of 30,000, want about 20,000", first)
	}
}

func TestURLsAreValidDistinctAndOfRealLength(t *testing.T) {
	const n = 200_000
	u := traffic.NewURLs()
	seen := make(map[string]bool, n)
	total := 0
	var b []byte
	for i := range uint64(n) {
		b = u.Append(b[:0], i*977)
		if len(b) < 80 || len(b) > 120 {
			t.Fatalf("%s has %d bytes, want 80 to 120", b, len(b))
		}
		parsed, err := url.Parse(string(b))
		if err != nil || parsed.String() != string(b) {
			t.Fatalf("%s is not in normal form: %v %v", b, parsed, err)
		}
		seen[string(b)] = true
		total += len(b)
	}
	if len(seen) != n {
		t.Errorf("%d of %d URLs are distinct", len(seen), n)
	}
	t.Logf("mean length %d bytes", total/n)
}

func TestVisitorsSendWhatBrowsersSend(t *testing.T) {
	v, r := traffic.NewVisitors(), seeded()
	agents, without, bots := map[string]bool{}, 0, 0
	const n = 100_000
	for range n {
		c := v.Draw(r)
		if len(c.UserAgent) == 0 || !c.Addr.Is4() {
			t.Fatalf("visitor without agent or address: %+v", c)
		}
		agents[string(c.UserAgent)] = true
		if len(c.Referrer) == 0 {
			without++
		}
		if bytes.Contains(c.UserAgent, []byte("bot")) {
			bots++
		}
	}
	if len(agents) < 20 || without < n/3 || without > n/2 || bots < n/20 || bots > n/6 {
		t.Errorf("%d agents, %d without referrer, %d named bots of %d", len(agents), without, bots, n)
	}
}

func TestNothingAllocates(t *testing.T) {
	z, u, v, r := traffic.NewZipf(1000), traffic.NewURLs(), traffic.NewVisitors(), seeded()
	b := make([]byte, 0, 256)
	allocs := testing.AllocsPerRun(1000, func() {
		b = u.Append(b[:0], uint64(z.Rank(r)))
		_ = v.Draw(r)
	})
	if allocs != 0 {
		t.Errorf("%v allocations per request", allocs)
	}
}

func BenchmarkZipf(b *testing.B) {
	z, r := traffic.NewZipf(100_000), seeded()
	for range b.N {
		z.Rank(r)
	}
}
