package httpapi_test

import (
	"bytes"
	"flag"
	"net/http"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"curt/internal/hosts/hoststest"
	"curt/internal/testkit"
)

// update writes what the API says of itself instead of comparing it.
func update() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write examples.json and api/openapi.yaml (make api)")
	os.Exit(m.Run())
}

const committed = "../../api/openapi.yaml"

// TestDescriptionIsCommitted keeps a copy for people to read and for programs to be
// made from, and shows in each change what it does to the API.
func TestDescriptionIsCommitted(t *testing.T) {
	testkit.Unraced(t)
	// The server of the copy is the one that make run starts.
	got := newService(t, func(p *parts) { p.Hosts = hoststest.New(t, "http://localhost:8080", "go.example") }).do(t, "", http.MethodGet, "/api/openapi.json", "").want(t, http.StatusOK)
	text := toYAML(t, got.body)
	if update() {
		if err := os.WriteFile(committed, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	stored, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(stored), string(text)); diff != "" {
		t.Errorf("the API is not what api/openapi.yaml says; `make api` writes it anew (-committed +described):\n%s", diff)
	}
}

// toYAML returns JSON as YAML, members in the same order.
func toYAML(t *testing.T, text []byte) []byte {
	t.Helper()
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		t.Fatal(err)
	}
	plain(&node)
	var out bytes.Buffer
	out.WriteString("# Written by `make api` from what the handlers say of themselves.\n")
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// plain takes off what says that a node came from JSON.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		plain(child)
	}
}
