package blocklist_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/internal/abuse/abusetest"
	"curt/internal/abuse/blocklist"
	"curt/internal/abuse/listfile"
	"curt/internal/link"
)

func openWords(t testing.TB, reserved, refused string) *blocklist.Words {
	t.Helper()
	dir := t.TempDir()
	keep, never := filepath.Join(dir, "keep.txt"), filepath.Join(dir, "never.txt")
	for path, text := range map[string]string{keep: reserved, never: refused} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := blocklist.OpenWords(t.Context(), blocklist.WordsConfig{Reserved: []string{keep}, Refused: []string{never}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWords(t *testing.T) {
	w := openWords(t,
		"# ours\nPress # the press\n\nteam-*\nboth\n",
		"bad\r\n~paypal\n~Кредит\n~two-words\nboth\nx*\n",
	)
	for alias, want := range map[string]string{
		"press": "keep", "PRESS": "keep", "PreSs": "keep", "pressed": "", "pres": "",
		"team-": "keep", "TEAM-x": "keep", "team": "", "teams": "", "ateam-": "",
		"both": "keep", "bad": "never refused", "BAD": "never refused", "badly": "", "b-a-d": "",
		"paypal": "never refused", "PayPaI": "never refused", "paypa1": "never refused", "pay-pal": "never refused", "PAY_PAL": "never refused", "paypals": "", "mypaypal": "",
		"two-words": "never refused", "twowords": "never refused", "two_vvords": "never refused",
		"x": "never refused", "X1": "never refused", "xxxxxxx": "never refused", "ax": "",
		"": "", "-": "", strings.Repeat("a", link.MaxCode): "", strings.Repeat("x", link.MaxCode): "never refused", strings.Repeat("x", link.MaxCode+1): "",
	} {
		word, found := w.Find(alias)
		got := word.List
		if word.Refused {
			got += " refused"
		}
		if got != want || found != (want != "") {
			t.Errorf("%q: %q, want %q", alias, got, want)
		}
	}
	if kept, never := w.ReservedStats().Entries, w.RefusedStats().Entries; kept != 3 || never != 6 {
		t.Errorf("%d and %d entries", kept, never)
	}
}

func TestLinesOfWords(t *testing.T) {
	w := openWords(t, "good\nbetter\nbest\n* # everything\n<html>\n~\n", "good\nlist of dirty words\nschön\n~schön\nit's\n"+strings.Repeat("a", 65)+"\n"+strings.Repeat("b", 64)+"*\n~a b\n")
	if s := w.ReservedStats(); s.Entries != 3 || s.Invalid != 3 || s.Passed != 0 {
		t.Errorf("%+v", s)
	}
	if s := w.RefusedStats(); s.Entries != 3 || s.Invalid != 0 || s.Passed != 5 {
		t.Errorf("%+v", s)
	}
	for alias, want := range map[string]bool{"schon": true, "SCH0N": true, "best": true, strings.Repeat("b", 64): true, strings.Repeat("b", 63): false, "anything": false} {
		if _, found := w.Find(alias); found != want {
			t.Errorf("%q: %v", alias, found)
		}
	}
}

// Files of words are kept as blocklists are: a version that cannot be used changes nothing.
func TestVersionsOfWords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "never.txt")
	now := time.Now()
	abusetest.Put(t, path, "bad\n", now.Add(-time.Hour))
	var log bytes.Buffer
	w, err := blocklist.OpenWords(t.Context(), blocklist.WordsConfig{Refused: []string{path}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "worse", "# none\n", "<!DOCTYPE html>\n<p>\n", "bad\x00\n", "\x1f\x8b\n", "\xff\xfeb\x00a\x00d\x00\n\x00"} {
		abusetest.Put(t, path, text, now.Add(-time.Minute))
		if err := w.Reload(t.Context()); !errors.Is(err, listfile.ErrDamaged) {
			t.Errorf("%q: %v", text, err)
		}
		if _, found := w.Find("bad"); !found {
			t.Fatalf("%q took the place of a good version", text)
		}
	}
	abusetest.Put(t, path, "worse\n", now.Add(-time.Minute))
	if err := w.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, found := w.Find("worse"); !found || w.RefusedStats().Unusable != 0 {
		t.Errorf("a good version is not in use: %+v", w.RefusedStats())
	}
	if _, err := blocklist.OpenWords(t.Context(), blocklist.WordsConfig{Reserved: []string{path + ".missing"}}); !errors.Is(err, listfile.ErrFile) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestFindingAWordAllocatesNothing(t *testing.T) {
	w := openWords(t, "press\nteam*\n", "~paypal\nbad\n")
	for _, alias := range []string{"aZ3bQ9x", "Some-Longer_Alias-of-32-letters1"} {
		limit := 0.0
		if strings.ContainsAny(alias, "-_") {
			limit = 3
		}
		if n := testing.AllocsPerRun(100, func() { w.Find(alias) }); n > limit {
			t.Errorf("%s: %v allocations", alias, n)
		}
	}
}

// FuzzWords: whatever a file holds, it is read the same way twice, and an alias that is a
// line of its own is found.
func FuzzWords(f *testing.F) {
	f.Add("press # x\nteam-*\n~paypal\n", "press")
	f.Add("~Кредит\n*\n~-\n", "KPEDNT")
	f.Add("a\x00b\n", "x")
	f.Fuzz(func(t *testing.T, text, alias string) {
		dir := t.TempDir()
		path := filepath.Join(dir, "words.txt")
		for _, line := range []string{"", alias, alias + "*", "~" + alias} {
			if line != "" && !link.ValidCode(alias) {
				continue
			}
			if err := os.WriteFile(path, []byte(text+"\n"+line+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			w, err := blocklist.OpenWords(t.Context(), blocklist.WordsConfig{Refused: []string{path}})
			if err != nil {
				t.Fatal(err)
			}
			if _, found := w.Find(alias); !found && line != "" && w.RefusedStats().Unusable == 0 && strings.Trim(alias, "-_") != "" {
				t.Fatalf("%q is not found behind %q", alias, line)
			}
		}
	})
}

// Among a million words of all kinds.
func BenchmarkFindWord(b *testing.B) {
	var text strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&text, "%sw%x%s\n", []string{"", "", "~"}[i%3], i*2654435761, []string{"", "*", ""}[i%3])
	}
	w := openWords(b, "press\n", text.String())
	b.Logf("%+v", w.RefusedStats())
	for _, alias := range []string{"aZ3bQ9x", "some-alias-of-24-letters", strings.Repeat("aB3-", 16)} {
		b.Run(fmt.Sprint(len(alias)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.Find(alias)
			}
		})
	}
}
