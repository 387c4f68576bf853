package web

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"

	"curt/internal/web/asset"
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
	page  *asset.File            // nil = nothing was built
	files map[string]*asset.File // by path
}

// NewDashboard returns the dashboard of this binary.
func NewDashboard() (*Dashboard, error) { return readDashboard(dist, "dist") }

// readDashboard reads what was built into a folder.
func readDashboard(files fs.FS, folder string) (*Dashboard, error) {
	d := &Dashboard{files: map[string]*asset.File{}}
	err := fs.WalkDir(files, folder, func(name string, e fs.DirEntry, err error) error {
		base := path.Base(name)
		if err != nil || e.IsDir() || strings.HasPrefix(base, ".") || asset.Coding(base) != "" {
			return err
		}
		at := dashboardPrefix + strings.TrimPrefix(name, folder+"/")
		d.files[at], err = asset.Read(files, name, dashboardPolicy, strings.HasPrefix(at, hashedPrefix))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("web: read the dashboard: %w", err)
	}
	d.page = d.files[dashboardPrefix+"index.html"]
	return d, nil
}

// Built reports whether there is a dashboard in this binary.
func (d *Dashboard) Built() bool { return d.page != nil }

// dashboardPages serve the files of the dashboard.
type dashboardPages struct {
	*site

	built *Dashboard
}

// serve answers what lies under /app: the files, and for every other path the page,
// which reads the path itself.
func (b *dashboardPages) serve(w http.ResponseWriter, r *http.Request) {
	d, p := b.built, r.URL.Path
	a := d.files[p]
	switch {
	case !isRead(r):
		w.Header().Set("Allow", "GET, HEAD")
		b.say(w, r, http.StatusMethodNotAllowed, "Method not allowed", "The dashboard supports only GET and HEAD.", "")
	case !d.Built():
		b.say(w, r, http.StatusNotFound, "No dashboard", "This server was built without the dashboard. Create links on the start page or with the API.", "/")
	case p+"/" == dashboardPrefix:
		target := url.URL{Path: dashboardPrefix, RawQuery: r.URL.RawQuery}
		header := w.Header()
		header["Cache-Control"] = []string{"no-cache"}
		header["Location"] = []string{target.String()}
		header["Content-Length"] = []string{"0"}
		w.WriteHeader(http.StatusPermanentRedirect)
	case a != nil:
		a.ServeHTTP(w, r)
	case strings.HasPrefix(p, hashedPrefix): // of another build
		b.say(w, r, http.StatusNotFound, "File not found", "This file belongs to another version of the dashboard. Reload the page.", dashboardPrefix)
	default:
		d.page.ServeHTTP(w, r)
	}
}
