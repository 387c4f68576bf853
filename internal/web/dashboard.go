package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"curt/internal/qr"
)

// dist is what `make web` built of the folder web: nothing but .keep where it did not run.
//
//go:embed all:dist
var dist embed.FS

const (
	// dashboardPrefix is a reserved word: no alias lies under it.
	dashboardPrefix = "/app/"
	// hashedPrefix is where files lie whose names hold their digest.
	hashedPrefix = dashboardPrefix + "assets/"
)

// dashboardPolicy allows scripts and styles from this server alone, none of them within
// the page, and of Trusted Types the one policy of Svelte, whose templates are constants.
// Pictures may be blobs: QR codes are fetched with the key.
const dashboardPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html"

// Dashboard is the dashboard as it was built into this binary. It is safe for many
// goroutines.
type Dashboard struct {
	page  *asset            // nil = nothing was built
	files map[string]*asset // by path
}

// asset is a file of the dashboard in every encoding that there is.
type asset struct {
	media   string
	digest  string
	hashed  bool
	encoded map[string][]byte // by content coding; "" = as it is
}

// NewDashboard returns the dashboard of this binary.
func NewDashboard() (*Dashboard, error) { return readDashboard(dist, "dist") }

// readDashboard reads what was built into a folder.
func readDashboard(files fs.FS, folder string) (*Dashboard, error) {
	d := &Dashboard{files: map[string]*asset{}}
	err := fs.WalkDir(files, folder, func(name string, e fs.DirEntry, err error) error {
		base := path.Base(name)
		if err != nil || e.IsDir() || strings.HasPrefix(base, ".") || coding(base) != "" {
			return err
		}
		a, err := readAsset(files, name)
		if err != nil {
			return err
		}
		at := dashboardPrefix + strings.TrimPrefix(name, folder+"/")
		a.hashed = strings.HasPrefix(at, hashedPrefix)
		d.files[at] = a
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("web: read the dashboard: %w", err)
	}
	d.page = d.files[dashboardPrefix+"index.html"]
	return d, nil
}

// coding returns the content coding of a file that was compressed ahead.
func coding(name string) string {
	switch path.Ext(name) {
	case ".br":
		return "br"
	case ".gz":
		return "gzip"
	}
	return ""
}

func readAsset(files fs.FS, name string) (*asset, error) {
	a := &asset{media: mediaOf(name), encoded: map[string][]byte{}}
	for _, ending := range []string{"", ".br", ".gz"} {
		b, err := fs.ReadFile(files, name+ending)
		if errors.Is(err, fs.ErrNotExist) && ending != "" {
			continue // compressed, it was no smaller
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		a.encoded[coding(name+ending)] = b
	}
	sum := sha256.Sum256(a.encoded[""])
	a.digest = hex.EncodeToString(sum[:8])
	return a, nil
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

// Built reports whether there is a dashboard in this binary.
func (d *Dashboard) Built() bool { return d.page != nil }

// dashboard answers what lies under /app: the files, and for every other path the page,
// which reads the path itself.
func (h *Handler) dashboard(w http.ResponseWriter, r *http.Request) {
	d, p := h.Dashboard, r.URL.Path
	a := d.files[p]
	switch {
	case !isRead(r):
		w.Header().Set("Allow", "GET, HEAD")
		h.say(w, r, http.StatusMethodNotAllowed, "Method not allowed", "The dashboard takes GET and HEAD.", "")
	case !d.Built():
		h.say(w, r, http.StatusNotFound, "No dashboard", "This server was built without its dashboard. All else works: links can be made on the start page and by the API.", "/")
	case p+"/" == dashboardPrefix:
		target := url.URL{Path: dashboardPrefix, RawQuery: r.URL.RawQuery}
		header := w.Header()
		header["Cache-Control"] = []string{"no-cache"}
		header["Location"] = []string{target.String()}
		header["Content-Length"] = []string{"0"}
		w.WriteHeader(http.StatusPermanentRedirect)
	case a != nil:
		a.serve(w, r)
	case strings.HasPrefix(p, hashedPrefix): // of another build
		h.say(w, r, http.StatusNotFound, "No such file", "This file belongs to another version of the dashboard. Load the page anew.", dashboardPrefix)
	default:
		d.page.serve(w, r)
	}
}

// serve answers with the file in the encoding that the client prefers of those there are.
func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
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
	h["Content-Security-Policy"] = []string{dashboardPolicy}
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
