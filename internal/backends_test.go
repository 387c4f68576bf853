package internal_test

import (
	"os"
	"strings"
	"testing"

	"curt/internal/link/linktest"
)

// docs/backends.md says what the drivers declare, which their suites hold them to.
func TestDocsShowWhatDriversDeclare(t *testing.T) {
	text, err := os.ReadFile("../docs/backends.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []linktest.Driver{linktest.SQLite(), linktest.PostgreSQL(), linktest.Replicas()} {
		if !strings.Contains(string(text), d.Row()+"\n") {
			t.Errorf("docs/backends.md lacks this line:\n%s", d.Row())
		}
	}
}
