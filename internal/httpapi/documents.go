package httpapi

import (
	"crypto/sha256"
	_ "embed" // docs.html
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
)

// The paths that describe the API.
const (
	documentPath   = apiPrefix + "openapi.json"
	docsPath       = apiPrefix + "docs"
	problemsPrefix = "/problems/"
)

//go:embed docs.html
var docsSource string

// documents are what is answered to those who want to read about the API: the
// description for programs, the page for people, and the types of problems, which
// lead to their place on the page. The first who reads one waits until it is rendered,
// 20 to 30 ms: a start does not.
func (a *api) documents(described *huma.OpenAPI, operations []*operation) map[string]http.HandlerFunc {
	problems := a.problemTypes()
	text := sync.OnceValues(func() ([]byte, error) {
		return json.Marshal(described, json.Deterministic(true))
	})
	docs := sync.OnceValues(func() (docsPage, error) {
		return renderDocs(docsOf(described, operations, problems))
	})
	return map[string]http.HandlerFunc{
		documentPath: func(w http.ResponseWriter, r *http.Request) {
			text, err := text()
			if err != nil {
				a.fail(w, r, fmt.Errorf("describe the API: %w", err))
				return
			}
			writeDocument(w, "application/json", text)
		},
		docsPath: func(w http.ResponseWriter, r *http.Request) {
			page, err := docs()
			if err != nil {
				a.fail(w, r, err)
				return
			}
			w.Header().Set("Content-Security-Policy", page.policy)
			w.Header().Set("Referrer-Policy", "no-referrer")
			writeDocument(w, "text/html; charset=utf-8", page.text)
		},
		problemsPrefix + "{name}": a.problemPage(problems),
	}
}

func writeDocument(w http.ResponseWriter, media string, text []byte) {
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(text) // the client is gone: nobody is left to tell
}

// problemPage leads from a problem's type to what the page says about it.
func (a *api) problemPage(problems []problemType) http.HandlerFunc {
	known := map[string]bool{}
	for _, p := range problems {
		known[p.Name] = true
	}
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if !known[name] {
			a.noRoute(w, r)
			return
		}
		commonHeaders(w.Header())
		w.Header().Set("Location", docsPath+"#problem-"+name)
		w.WriteHeader(http.StatusFound)
	}
}

// docsPage is the page for people.
type docsPage struct {
	text   []byte
	policy string // allows its own style and nothing else: no script, no picture, nothing from elsewhere
}

func renderDocs(d docs) (docsPage, error) {
	t, err := template.New("docs").Parse(docsSource)
	if err != nil {
		return docsPage{}, fmt.Errorf("parse the page of the API: %w", err)
	}
	_, rest, opened := strings.Cut(docsSource, "<style>")
	style, _, closed := strings.Cut(rest, "</style>")
	if !opened || !closed {
		return docsPage{}, errors.New("the page of the API has no style to hash")
	}
	var b strings.Builder
	if err := t.Execute(&b, d); err != nil {
		return docsPage{}, fmt.Errorf("render the page of the API: %w", err)
	}
	sum := sha256.Sum256([]byte(style))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return docsPage{[]byte(b.String()), policy}, nil
}
