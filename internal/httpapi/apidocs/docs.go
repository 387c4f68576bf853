// Package apidocs is what the API says about itself: the description for programs, and a page
// for people.
//
// Read this file first. openapi.go begins the description and names its choices,
// examples.go adds recorded requests and answers; page.go and docs.html are the page.
package apidocs

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"curt/internal/httpapi/kernel"
)

// The paths that describe the API.
const (
	// Prefix begins the paths of the API.
	Prefix = "/api/"
	// Path is that of the page for people.
	Path = Prefix + "docs"
	// ProblemsPrefix begins the types of problems.
	ProblemsPrefix = "/problems/"
	// documentPath is that of the description.
	documentPath = Prefix + "openapi.json"
)

// Documents are what is answered to those who want to read about the API: the
// description for programs, the page for people, and the types of problems, which
// lead to their place on the page. The first request renders a document, in
// 20 to 30 ms: a start does not.
func Documents(k *kernel.Kernel, described *huma.OpenAPI, operations []*kernel.Operation) map[string]http.HandlerFunc {
	problems := kernel.ProblemTypes()
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
				k.Fail(w, r, fmt.Errorf("describe the API: %w", err))
				return
			}
			writeDocument(w, "application/json", text)
		},
		Path: func(w http.ResponseWriter, r *http.Request) {
			page, err := docs()
			if err != nil {
				k.Fail(w, r, err)
				return
			}
			w.Header().Set("Content-Security-Policy", page.policy)
			w.Header().Set("Referrer-Policy", "no-referrer")
			writeDocument(w, "text/html; charset=utf-8", page.text)
		},
		ProblemsPrefix + "{name}": problemPage(k, problems),
	}
}

// NoRoute answers a path that the API does not have.
func NoRoute(k *kernel.Kernel, w http.ResponseWriter, r *http.Request) {
	k.Fail(w, r, kernel.Refuse(kernel.KindNoRoute(), "the API is documented at "+Path))
}

func writeDocument(w http.ResponseWriter, media string, text []byte) {
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(text) // the client is gone: nobody is left to tell
}

// problemPage leads from a problem's type to what the page says about it.
func problemPage(k *kernel.Kernel, problems []kernel.ProblemType) http.HandlerFunc {
	known := map[string]bool{}
	for _, p := range problems {
		known[p.Name] = true
	}
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if !known[name] {
			NoRoute(k, w, r)
			return
		}
		kernel.CommonHeaders(w.Header())
		w.Header().Set("Location", Path+"#problem-"+name)
		w.WriteHeader(http.StatusFound)
	}
}
