package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pages are the documents that name only what is there.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/internals/*.md"} {
		found, err := fs.Glob(os.DirFS(".."), pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no documents %s: %v", pattern, err)
		}
		all = append(all, found...)
	}
	return all
}

// A code span such as `internal/link/store.go:Store.Create` names a file and what
// it declares; `internal/link` names a folder.
func codeSpan() *regexp.Regexp {
	return regexp.MustCompile("`((?:internal|cmd|client|scripts|bench|docs|test|deploy)/[A-Za-z0-9_./-]*|[A-Za-z0-9_-]+\\.go)(?::([A-Za-z0-9_.]+))?`")
}

func TestDocumentsNameWhatIsThere(t *testing.T) {
	var files, names int
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range codeSpan().FindAllStringSubmatch(string(text), -1) {
			files++
			name := filepath.Join("..", m[1])
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
				continue
			}
			if m[2] == "" {
				continue
			}
			names++
			if !declares(t, name, m[2]) {
				t.Errorf("%s names %s in %s, which declares no such thing", page, m[2], m[1])
			}
		}
	}
	if files < 30 || names < 15 {
		t.Errorf("found %d files and %d functions: the documents or this test say too little", files, names)
	}
}

// declares reports whether a Go file declares name, or Type.Method, or Type.Field.
func declares(t *testing.T, file, name string) bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Errorf("%s: %v", file, err)
		return false
	}
	found := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			found[receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok {
					found[ts.Name.Name] = true
					members(found, ts)
				}
			}
		}
	}
	return found[name]
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	e := d.Recv.List[0].Type
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}

func members(found map[string]bool, ts *ast.TypeSpec) {
	var list *ast.FieldList
	switch u := ts.Type.(type) {
	case *ast.InterfaceType:
		list = u.Methods
	case *ast.StructType:
		list = u.Fields
	default:
		return
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			found[ts.Name.Name+"."+n.Name] = true
		}
	}
}

func TestLinksBetweenDocumentsLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	decisions, err := fs.Glob(os.DirFS(".."), "docs/decisions/*.md")
	if err != nil || len(decisions) < 50 {
		t.Fatalf("%d decisions: %v", len(decisions), err)
	}
	for _, page := range append(pages(t), decisions...) {
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := filepath.Join("..", filepath.Dir(page), target)
			if target == "" {
				file = filepath.Join("..", page)
			}
			body, err := os.ReadFile(file)
			if err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
				continue
			}
			if anchor != "" && !hasHeading(string(body), anchor) {
				t.Errorf("%s links to %s: no such heading", page, m[1])
			}
		}
	}
}

// hasHeading reports whether a heading has the anchor that GitHub would give it.
func hasHeading(text, anchor string) bool {
	drop := regexp.MustCompile(`[^a-z0-9 _-]`)
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			slug := drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			if strings.ReplaceAll(slug, " ", "-") == anchor {
				return true
			}
		}
	}
	return false
}

// shownAs is how ARCHITECTURE.md names a package: those below one folder together.
func shownAs(p string) string {
	name := strings.TrimPrefix(p, "internal/")
	folder, below, nested := strings.Cut(name, "/")
	switch {
	case folder == "backend" && slices.Contains([]string{"countries/pack", "coldsql", "coldsql/coldcopy", "coldsql/coldjobs", "coldsql/coldreviews", "sqlite/sqlitedb", "sqlite/snapshot", "postgres/pgdb", "dynamodb/ddb", "clickhouse/clickdb"}, below):
		return name // above or below the drivers
	case nested && strings.HasPrefix(p, "internal/") && folder != "licenses":
		return folder + "/*"
	}
	return name
}

// TestArchitectureHasTheLayers compares the layers that a reader sees with those that are enforced.
func TestArchitectureHasTheLayers(t *testing.T) {
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	if words := len(strings.Fields(string(text))); words > 1500 {
		t.Errorf("ARCHITECTURE.md has %d words, and 1,500 are what a reader has time for", words)
	}
	_, after, _ := strings.Cut(string(text), "## Layers\n")
	_, after, _ = strings.Cut(after, "```\n")
	table, _, _ := strings.Cut(after, "```")
	var want []string
	for _, layer := range layers() {
		var names []string
		for _, p := range layer {
			name := shownAs(p)
			if _, err := os.Stat("../" + p); err == nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		want = append(want, strings.Join(names, ", "))
	}
	want = slices.Compact(want) // layers within one folder
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(table), "\n"), want); diff != "" {
		t.Errorf("the layers of ARCHITECTURE.md (-) are not those of layers_test.go (+):\n%s", diff)
	}
}

// TestDecisionsHaveTheirForm looks at each decision for its title, status, date and sections, and
// for its line in the index.
func TestDecisionsHaveTheirForm(t *testing.T) {
	folder := os.DirFS("../docs/decisions")
	index, err := fs.ReadFile(folder, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(folder, "0*.md")
	if err != nil || len(names) < 50 {
		t.Fatalf("%d decisions: %v", len(names), err)
	}
	head := regexp.MustCompile(`^# (\d{4}): (.+)\n\n- Status: (Accepted|Superseded).*\n- Date: \d{4}-\d\d-\d\d\n\n`)
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			t.Fatal(err)
		}
		found := head.FindStringSubmatch(string(text))
		if found == nil || !strings.HasPrefix(name, found[1]+"-") {
			t.Errorf("%s begins neither with its number and title nor with status and date", name)
			continue
		}
		for _, section := range []string{"Context", "Decision", "Consequences"} {
			if !strings.Contains(string(text), "\n## "+section+"\n") {
				t.Errorf("%s has no section %s", name, section)
			}
		}
		if line := fmt.Sprintf("| [%s](%s) | %s |", found[1], name, found[2]); !strings.Contains(string(index), line) {
			t.Errorf("the index of decisions lacks %q", line)
		}
	}
}
