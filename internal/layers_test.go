// Package internal_test holds what no single package can: who may import whom.
package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers is the table of ARCHITECTURE.md, from the top down. A package may import
// packages of lower layers, and of its own layer only as beside allows.
func layers() [][]string {
	return [][]string{
		{"cmd/curt", "internal/licenses/gather"},
		{"internal/doctor"},
		{"internal/server"},
		{"internal/backup", "internal/worker"},
		{"internal/lane", "internal/httpapi", "internal/web", "internal/backend/sqlite", "internal/backend/postgres", "internal/backend/redis", "internal/backend/clickhouse", "internal/backend/kafka", "internal/backend/mmdb"},
		{"internal/redirect", "internal/shorten", "internal/exchange", "internal/review", "internal/backend/coldsql"},
		{"internal/cache", "internal/clicks", "internal/analytics", "internal/auth", "internal/search", "internal/domains", "internal/abuse", "internal/moderation", "internal/connlimit"},
		{"internal/feed"},
		{"internal/link", "internal/codegen", "internal/idempotency", "internal/joblease", "internal/qr", "internal/ratelimit", "internal/telemetry", "internal/weburl", "internal/clientaddr", "internal/bodies"},
		{"internal/licenses", "internal/repeatlog", "internal/statefile", "internal/walfile"},
	}
}

// beside are the imports within one layer, and config, which only the top sees.
func beside() map[string][]string {
	return map[string][]string{
		"internal/analytics":   {"internal/clicks"},
		"internal/codegen":     {"internal/link"},
		"internal/idempotency": {"internal/link"},
		"internal/joblease":    {"internal/link"},
		"internal/moderation":  {"internal/abuse"},
		"internal/server":      {"internal/config"},
		"internal/doctor":      {"internal/config"},
		"cmd/curt":             {"internal/config", "client"},
	}
}

// never are imports that the layers would allow and the design forbids: the
// redirect path reaches no SQL, accounts, analytics or moderation, and a backend
// imports contracts only.
func never() map[string][]string {
	hot := []string{"internal/auth", "internal/analytics", "internal/abuse", "internal/moderation", "internal/domains", "database/sql"}
	return map[string][]string{
		"internal/redirect":           hot,
		"internal/lane":               append(hot, "internal/backend/sqlite", "internal/backend/postgres", "internal/backend/redis", "internal/backend/clickhouse", "internal/backend/kafka", "internal/httpapi"),
		"internal/backend/coldsql":    {"internal/redirect", "internal/shorten", "internal/review"},
		"internal/backend/sqlite":     {"internal/redirect", "internal/shorten", "internal/review"},
		"internal/backend/clickhouse": {"internal/redirect", "internal/shorten", "internal/review"},
		"internal/backend/postgres":   {"internal/redirect", "internal/shorten", "internal/review"},
		"internal/backend/redis":      {"internal/redirect", "internal/shorten", "internal/review"},
		"internal/backend/kafka":      {"internal/redirect", "internal/shorten", "internal/review"},
		"internal/backend/mmdb":       {"internal/redirect", "internal/shorten", "internal/review"},
	}
}

// clientModule is what imports call the folder client, which is a module of its own.
const clientModule = "curt.example/client"

// testkit starts services for tests, and no program.
const testkit = "internal/testkit"

func layerOf(p string) int {
	for i, l := range layers() {
		if slices.Contains(l, p) {
			return i
		}
	}
	return -1
}

// imports maps each package directory to what its files outside tests import.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (p == "bin" || p == "bench" || p == "test" || p == "web" || (p != "." && strings.HasPrefix(d.Name(), "."))) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", p), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			dir := path.Dir(p)
			if name == clientModule {
				name = "client"
			}
			found[dir] = append(found[dir], strings.TrimPrefix(name, "curt/"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// subject is the package whose layer counts: a …test package belongs to the one
// it tests, and may import what that one may.
func subject(p string) string {
	if parent := path.Dir(p); strings.HasSuffix(p, "test") && path.Base(parent)+"test" == path.Base(p) {
		return parent
	}
	return p
}

func TestImportsPointDownwards(t *testing.T) {
	all := imports(t)
	if len(all) < 10 {
		t.Fatalf("found only %d packages: the walk is broken", len(all))
	}
	for from, list := range all {
		s := subject(from)
		layer := layerOf(s)
		switch {
		case from == "client":
			for _, to := range list {
				if strings.Contains(strings.Split(to, "/")[0], ".") || strings.HasPrefix(to, "internal/") {
					t.Errorf("client imports %s: it may use the standard library only", to)
				}
			}
			continue
		case s == "internal/config" || s == testkit || strings.HasPrefix(s, testkit+"/"):
			layer = len(layers()) // imports nothing of ours
		case layer < 0:
			t.Errorf("%s has no layer: put it into the table here and in ARCHITECTURE.md", from)
			continue
		}
		for _, to := range list {
			for _, forbidden := range never()[s] {
				if to == forbidden {
					t.Errorf("%s imports %s, which it must never reach", from, to)
				}
			}
			if !strings.HasPrefix(to, "internal/") && !strings.HasPrefix(to, "cmd/") && to != "client" {
				continue
			}
			if to == testkit || strings.HasPrefix(to, testkit+"/") {
				t.Errorf("%s imports %s, which is for tests", from, to)
			}
			if to == s || subject(to) == s || slices.Contains(beside()[s], to) {
				continue
			}
			if l := layerOf(subject(to)); l <= layer {
				t.Errorf("%s (layer %d) imports %s (layer %d): imports point downwards", from, layer, to, l)
			}
			if subject(to) != to && subject(from) == from {
				t.Errorf("%s imports the test package %s", from, to)
			}
		}
	}
}
