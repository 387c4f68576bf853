package lane_test

import (
	"os"
	"strings"
	"testing"

	"curt/internal/lane"
)

// TestTheDiagramShowsEveryState compares the diagram of doc.go with the states of conn.go.
func TestTheDiagramShowsEveryState(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, diagram, _ := strings.Cut(string(doc), "// # A connection\n")
	diagram, _, found := strings.Cut(diagram, "// # Ownership\n")
	code, err := os.ReadFile("conn.go")
	if err != nil || !found {
		t.Fatalf("no diagram: %v", err)
	}
	for _, s := range lane.States() {
		if !strings.Contains(diagram, s) {
			t.Errorf("the diagram has no %s", s)
		}
		name := "\tstate" + strings.ToUpper(s[:1]) + s[1:]
		if s == "http" {
			name = "\tstateHTTP"
		}
		if n := strings.Count(string(code), name+" "); n == 0 {
			t.Errorf("conn.go declares no %s", name)
		}
	}
}
