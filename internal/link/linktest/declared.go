package linktest

import (
	"os"
	"strings"
	"testing"
	"time"
)

// Declared returns what a table of a document says about a store, so that its suite holds the
// document to it. The table has a row for each store: what it is set by, what an answered write
// survives, by how much look-ups lag behind ("never" or "up to 5s"), and yes or no for Spender,
// Deduper, Batcher and Reserver.
func Declared(t testing.TB, document, setting string) (f Features) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 7 || cells[0] != "| `"+setting+"`" {
			continue
		}
		if lag, some := strings.CutPrefix(cells[2], "up to "); some {
			if f.MaxLag, err = time.ParseDuration(lag); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		for i, has := range []*bool{&f.Spender, &f.Deduper, &f.Batcher, &f.Reserver} {
			*has = strings.TrimSuffix(cells[3+i], " |") == "yes"
		}
		return f
	}
	t.Fatalf("%s has no row of `%s`", document, setting)
	return f
}
