package figures_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/bench/internal/figures"
)

func TestEverySecondRoundRunsInTheOppositeOrder(t *testing.T) {
	var got string
	var turns []figures.Turn
	for _, name := range []string{"a", "b", "c"} {
		turns = append(turns, figures.Turn{Name: name, Run: func(context.Context) (figures.Sample, error) { got += name; return figures.Sample{}, nil }})
	}
	if _, err := figures.New(figures.Config{Rounds: 3, Progress: io.Discard}).Rounds(t.Context(), turns...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("abccbaabc", got); diff != "" {
		t.Error(diff)
	}
}

// read parses a request as a server would and makes sure that nothing is behind it.
func read(t *testing.T, raw []byte) *http.Request {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(raw))
	req, err := http.ReadRequest(r)
	if err != nil {
		t.Fatalf("%v: %q", err, raw)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Fatalf("%v: %q", err, raw)
	}
	if r.Buffered() != 0 {
		t.Fatalf("bytes behind the request: %q", raw)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return req
}

func TestCreatesAreWellFormedAndDistinct(t *testing.T) {
	s := figures.Creates(netip.MustParseAddrPort("127.0.0.1:80"), "/api/v1/links", 1, 0)
	seen := map[string]bool{}
	var b []byte
	for range 1_000 {
		b = s.Next(b[:0])
		req := read(t, b)
		var body map[string]string
		if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
			t.Fatal(err)
		}
		if req.Method != http.MethodPost || req.URL.Path != "/api/v1/links" || req.Host != "127.0.0.1:80" ||
			req.Header.Get("Content-Type") != "application/json" || len(req.Header.Get("Authorization")) < 30 || len(body) != 1 {
			t.Fatalf("%q", b)
		}
		seen[body["long_url"]] = true
	}
	if len(seen) != 1_000 {
		t.Errorf("%d distinct URLs of 1,000", len(seen))
	}
}

func TestRedirectsLookLikeBrowsers(t *testing.T) {
	code := figures.Popular(10, func(i int) string { return string(rune('a' + i)) })
	s := figures.Redirects(netip.MustParseAddrPort("127.0.0.1:80"), 1, 0, code)
	paths, referrers := map[string]int{}, 0
	var b []byte
	for range 1_000 {
		b = s.Next(b[:0])
		req := read(t, b)
		if req.Method != http.MethodGet || req.UserAgent() == "" || req.Header.Get("Accept") == "" {
			t.Fatalf("%q", b)
		}
		if len(req.Header.Values("Referer")) > 0 {
			referrers++
		}
		paths[req.URL.Path]++
	}
	// Half of the clicks over ten links go to the first two.
	if len(paths) != 10 || paths["/a"] < 250 || paths["/a"] < paths["/j"] || referrers < 300 || referrers > 900 {
		t.Errorf("paths %v, %d referrers", paths, referrers)
	}
	if n := testing.AllocsPerRun(100, func() { b = s.Next(b[:0]) }); n > 1 { // the code is a string
		t.Errorf("%v allocations per request", n)
	}
}

func TestSizesAreNamedAsInThePromise(t *testing.T) {
	for n, want := range map[int]string{10_000_000: "10 million links", 1_000_000: "1 million links", 200_000: "200000 links"} {
		if got := figures.SizeName(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	if r := rand.New(rand.NewPCG(1, 1)); figures.Popular(1, func(int) string { return "x" })(r) != "x" {
		t.Error("the only link is not clicked")
	}
}
