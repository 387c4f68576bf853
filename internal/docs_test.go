package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages are the documents that promise to name only what is there.
func pages() []string {
	return []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/operations.md", "docs/privacy.md", "docs/backends.md", "docs/capacity.md", "docs/configuration.md", "docs/cli.md", "docs/clients.md"}
}

// A code span such as `internal/link/store.go:Store.Create` names a file and what
// it declares; `internal/link` names a folder.
func codeSpan() *regexp.Regexp {
	return regexp.MustCompile("`((?:internal|cmd|client|scripts|bench|docs|test|deploy)/[A-Za-z0-9_./-]*|[A-Za-z0-9_-]+\\.go)(?::([A-Za-z0-9_.]+))?`")
}

func TestDocumentsNameWhatIsThere(t *testing.T) {
	var files, names int
	for _, page := range pages() {
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
	for _, page := range pages() {
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
