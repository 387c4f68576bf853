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
// lead to their place on the page. All are made once.
func (a *api) documents(described *huma.OpenAPI, operations []*operation) (map[string]http.HandlerFunc, error) {
	text, err := json.Marshal(described, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	problems := a.problemTypes()
	page, policy, err := renderDocs(docsOf(described, operations, problems))
	if err != nil {
		return nil, err
	}
	return map[string]http.HandlerFunc{
		documentPath: func(w http.ResponseWriter, _ *http.Request) {
			writeDocument(w, "application/json", text)
		},
		docsPath: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", policy)
			w.Header().Set("Referrer-Policy", "no-referrer")
			writeDocument(w, "text/html; charset=utf-8", page)
		},
		problemsPrefix + "{name}": a.problemPage(problems),
	}, nil
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

// renderDocs returns the page and the policy that allows its own style and nothing
// else: no script, no picture, nothing from elsewhere.
func renderDocs(d docs) (page []byte, policy string, err error) {
	t, err := template.New("docs").Parse(docsSource)
	if err != nil {
		return nil, "", fmt.Errorf("parse the page of the API: %w", err)
	}
	_, rest, opened := strings.Cut(docsSource, "<style>")
	style, _, closed := strings.Cut(rest, "</style>")
	if !opened || !closed {
		return nil, "", errors.New("the page of the API has no style to hash")
	}
	var b strings.Builder
	if err := t.Execute(&b, d); err != nil {
		return nil, "", fmt.Errorf("make the page of the API: %w", err)
	}
	sum := sha256.Sum256([]byte(style))
	policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return []byte(b.String()), policy, nil
}
