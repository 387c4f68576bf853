// Package abusetest has what tests of signals and of lists share.
package abusetest

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/internal/abuse"
	"curt/internal/weburl"
)

// Morning is when these tests take place.
func Morning() time.Time { return time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC) }

// Facts are about a link of the key "k1" in Germany to a URL.
func Facts(tb testing.TB, raw string) *abuse.Facts {
	tb.Helper()
	u, err := weburl.Parse(raw)
	if err != nil {
		tb.Fatalf("%s: %v", raw, err)
	}
	return &abuse.Facts{URL: u, Creator: "k1", Country: "DE", Network: netip.MustParsePrefix("192.0.2.7/32")}
}

// Must returns a signal that cannot fail to be made.
func Must[S any](tb testing.TB) func(s S, err error) S {
	return func(s S, err error) S {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}
}

// Evidence returns the evidence of the only finding of a signal, "" for none.
func Evidence(tb testing.TB, s abuse.Signal, now time.Time, f *abuse.Facts) string {
	tb.Helper()
	found, err := s.Inspect(tb.Context(), now, f)
	switch {
	case err != nil:
		tb.Fatalf("%s: %v", f.URL.Href(), err)
	case len(found) > 1 || len(found) == 1 && (found[0].Signal != s.Name() || found[0].Evidence == ""):
		tb.Fatalf("%s: %+v", f.URL.Href(), found)
	case len(found) == 0:
		return ""
	}
	return found[0].Evidence
}

// Check checks which URLs a signal finds something in.
func Check(t *testing.T, s abuse.Signal, yes, no []string) {
	t.Helper()
	for _, raw := range yes {
		if Evidence(t, s, Morning(), Facts(t, raw)) == "" {
			t.Errorf("%s: nothing is found", raw)
		}
	}
	for _, raw := range no {
		if evidence := Evidence(t, s, Morning(), Facts(t, raw)); evidence != "" {
			t.Errorf("%s: %s", raw, evidence)
		}
	}
}

// Put writes a version of a file that has come to rest before at.
func Put(t testing.TB, path, text string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// Write makes a list of these lines and returns its path.
func Write(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
