package httpapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"curt/internal/redirect"
	"curt/internal/testkit"
)

// elements walks a page.
func elements(t *testing.T, page []byte, visit func(n *html.Node, attribute map[string]string)) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(string(page)))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			attribute := map[string]string{}
			for _, a := range n.Attr {
				attribute[a.Key] = a.Val
			}
			visit(n, attribute)
		}
	}
}

// The page runs nothing, fetches nothing, and every reference in it leads somewhere.
func TestDocsPageStandsAlone(t *testing.T) {
	s := newService(t)
	a := s.do(t, "", http.MethodGet, "/api/docs", "").want(t, http.StatusOK)
	ids, refs, style := map[string]bool{}, []string{}, ""
	elements(t, a.body, func(n *html.Node, attribute map[string]string) {
		switch n.Data {
		case "script", "img", "iframe", "link", "object", "form", "base":
			t.Errorf("there is a <%s>", n.Data)
		case "style":
			style = n.FirstChild.Data
		}
		for name, value := range attribute {
			switch {
			case name == "id" && ids[value]:
				t.Errorf("the id %s is there twice", value)
			case name == "id":
				ids[value] = true
			case name == "href":
				refs = append(refs, value)
			case name == "src" || name == "style" || strings.HasPrefix(name, "on"):
				t.Errorf("<%s> has %s=%q", n.Data, name, value)
			}
		}
	})
	for _, ref := range refs {
		if fragment, ok := strings.CutPrefix(ref, "#"); ref != "openapi.json" && (!ok || !ids[fragment]) {
			t.Errorf("%q leads nowhere", ref)
		}
	}
	if len(refs) < 50 {
		t.Errorf("only %d references: the page or this test says too little", len(refs))
	}
	sum := sha256.Sum256([]byte(style))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	if got := a.Header.Get("Content-Security-Policy"); got != want {
		t.Errorf("policy %s, want %s", got, want)
	}
	if !strings.Contains(style, "prefers-color-scheme: dark") || a.Header.Get("X-Content-Type-Options") != "nosniff" ||
		a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("headers %v", a.Header)
	}
}

// The page says everything that the description says.
func TestDocsPageNamesEverything(t *testing.T) {
	testkit.Unraced(t)
	s := newService(t)
	text := &strings.Builder{}
	elements(t, s.do(t, "", http.MethodGet, "/api/docs", "").want(t, http.StatusOK).body, func(n *html.Node, _ map[string]string) {
		for child := range n.ChildNodes() {
			if child.Type == html.TextNode && n.Data != "style" {
				text.WriteString(child.Data + "\n")
			}
		}
	})
	d := newDocumented(t, s)
	var names []string
	var collect func(tree any)
	collect = func(tree any) {
		switch v := tree.(type) {
		case map[string]any:
			for name, member := range v {
				switch said, isText := member.(string); {
				case name == "value": // of an example: shown with its lines set out
				case isText && (name == "summary" || name == "description" || name == "name"):
					names = append(names, said)
				default:
					collect(member)
				}
			}
		case []any:
			for _, member := range v {
				collect(member)
			}
		}
	}
	collect(at(d.tree, "paths"))
	collect(at(d.tree, "components", "schemas"))
	for _, e := range d.examples(t) {
		names = append(names, strings.ToUpper(e.method)+" "+e.path)
	}
	for _, name := range names {
		if !strings.Contains(text.String(), name) {
			t.Errorf("the page does not say %q", name)
		}
	}
	if len(names) < 100 {
		t.Errorf("only %d names were looked for", len(names))
	}
}

// Every type of problem leads to what the page says about it.
func TestProblemTypesLeadToTheirExplanation(t *testing.T) {
	s := newService(t)
	page := string(s.do(t, "", http.MethodGet, "/api/docs", "").body)
	types := problemNames(t)
	for _, p := range redirect.Problems() {
		types = append(types, strings.TrimPrefix(p.Type(), "/problems/"))
	}
	if len(types) < 25 {
		t.Errorf("only %d types were found", len(types))
	}
	for _, name := range types {
		a := s.do(t, "", http.MethodGet, "/problems/"+name, "")
		if a.StatusCode != http.StatusFound || a.Header.Get("Location") != "/api/docs#problem-"+name {
			t.Errorf("/problems/%s: %d to %q; a kind without a mapping belongs into ownKinds", name, a.StatusCode, a.Header.Get("Location"))
		}
		if !strings.Contains(page, `id="problem-`+name+`"`) {
			t.Errorf("the page does not explain %s", name)
		}
	}
	s.do(t, "", http.MethodGet, "/problems/nothing-like-that", "").want(t, http.StatusNotFound).problem(t)
	s.do(t, "", http.MethodPost, "/problems/not-found", "").want(t, http.StatusMethodNotAllowed).problem(t)
}

// problemNames finds the names of all kinds in the source of the kernel.
func problemNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("kernel/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			made, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if of, ok := made.Type.(*ast.Ident); ok && of.Name == "Kind" {
				if name, ok := made.Elts[0].(*ast.BasicLit); ok {
					text, _ := strconv.Unquote(name.Value)
					names = append(names, text)
				}
			}
			return true
		})
	}
	return names
}
