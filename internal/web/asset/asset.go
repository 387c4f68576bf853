// Package asset serves static files that were compressed when they were built.
package asset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"curt/internal/qr"
)

// File is a file in each of its encodings. It is safe for many goroutines.
type File struct {
	media   string
	digest  string
	policy  string            // Content-Security-Policy
	hashed  bool              // the name holds the digest
	encoded map[string][]byte // by content coding; "" = as it is
}

// Read reads a file, and what was compressed of it.
func Read(files fs.FS, name, policy string, hashed bool) (*File, error) {
	a := &File{media: mediaOf(name), policy: policy, hashed: hashed, encoded: map[string][]byte{}}
	for _, ending := range []string{"", ".br", ".gz"} {
		b, err := fs.ReadFile(files, name+ending)
		if errors.Is(err, fs.ErrNotExist) && ending != "" {
			continue // compressed, it was no smaller
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		a.encoded[Coding(name+ending)] = b
	}
	sum := sha256.Sum256(a.encoded[""])
	a.digest = hex.EncodeToString(sum[:8])
	return a, nil
}

// Coding returns the content coding of a file that was compressed ahead.
func Coding(name string) string {
	switch path.Ext(name) {
	case ".br":
		return "br"
	case ".gz":
		return "gzip"
	}
	return ""
}

// mediaOf names the kinds of files that a build has. What the machine's own table says
// may differ from one to the next.
func mediaOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "application/octet-stream"
}

// ServeHTTP answers with the file in the encoding that the client prefers of those there are.
func (a *File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	encoding := preferred(r.Header["Accept-Encoding"], a.encoded)
	tag := `"` + a.digest + `"`
	if encoding != "" {
		tag = `"` + a.digest + "-" + encoding + `"`
	}
	h["Etag"] = []string{tag}
	h["Vary"] = []string{"Accept-Encoding"}
	h["Cache-Control"] = []string{"no-cache"}
	if a.hashed {
		h["Cache-Control"] = []string{"public, max-age=31536000, immutable"}
	}
	h["Content-Security-Policy"] = []string{a.policy}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	h["Referrer-Policy"] = []string{"no-referrer"}
	h["Cross-Origin-Opener-Policy"] = []string{"same-origin"}
	h["Cross-Origin-Resource-Policy"] = []string{"same-origin"}
	if qr.Matches(r.Header["If-None-Match"], tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := a.encoded[encoding]
	if encoding != "" {
		h["Content-Encoding"] = []string{encoding}
	}
	h["Content-Type"] = []string{a.media}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the visitor is gone on an error
	}
}

// preferred returns the content coding to answer with: of those that there are and the
// client takes, Brotli before gzip; "" = none. Weights only refuse (RFC 9110, 12.5.3):
// whoever takes both is served best by the smaller.
func preferred(accept []string, has map[string][]byte) string {
	takes := map[string]bool{}
	for _, line := range accept {
		for item := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(item, ";")
			name = strings.ToLower(strings.TrimSpace(name))
			weight, found := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(params, " ", "")), "q=")
			q, err := strconv.ParseFloat(weight, 64)
			takes[name] = !found || err == nil && q > 0
		}
	}
	for _, c := range []string{"br", "gzip"} {
		wanted, named := takes[c]
		if _, there := has[c]; there && (wanted || !named && takes["*"]) {
			return c
		}
	}
	return ""
}
