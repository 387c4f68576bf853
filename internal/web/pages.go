package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strconv"
	"strings"

	"curt/internal/redirect"
	"curt/internal/weburl"
)

//go:embed pages/*.html files
var sources embed.FS

// policy allows a page its stylesheet, its icon and forms that are sent to where it
// came from. No script, no style within the page, no frame.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// staticPrefix is a reserved word: no alias lies under it.
const staticPrefix = "/static/"

// Pages is what pages look like. It is safe for many goroutines.
type Pages struct {
	// Set once in NewPages.
	templates map[string]*template.Template
	files     map[string]file // by path
	style     string          // the path of the stylesheet
	icon      string
}

var _ redirect.Pages = (*Pages)(nil)

// file is a file that pages need. Its path holds its digest, so that it may be kept for
// good.
type file struct {
	media string
	bytes []byte
}

// shell is what every page has.
type shell struct {
	Title string
	Style string
	Icon  string
	Index bool // search engines may list it
	Wide  bool
}

// message is a page that says one thing.
type message struct {
	shell
	Detail      string
	Status      string
	Back        string // where a link back leads; "" = none
	Destination *destination
	Onward      string // where the warning's link leads on; "" = it has none

	Report, Appeal bool // a link to the form
}

// destination is where a link leads, cut so that its host can be told from the rest.
type destination struct {
	Before, Host, After string
	Letters             string // of a host that is written in A-labels
}

func destinationOf(href string) *destination {
	d := &destination{}
	d.Before, d.Host, d.After = weburl.Split(href)
	d.Letters = weburl.Unicode(d.Host)
	return d
}

// NewPages reads the templates and the files.
func NewPages() (*Pages, error) {
	p := &Pages{templates: map[string]*template.Template{}, files: map[string]file{}}
	for _, name := range []string{"message", "home", "preview", "key", "stats", "report", "appeal"} {
		t, err := template.New("layout.html").Funcs(template.FuncMap{"text": text}).
			ParseFS(sources, "pages/layout.html", "pages/destination.html", "pages/linkfield.html", "pages/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("web: parse page %s: %w", name, err)
		}
		p.templates[name] = t
	}
	var err error
	if p.style, err = p.add("curt.css", "text/css; charset=utf-8"); err != nil {
		return nil, err
	}
	p.icon, err = p.add("icon.svg", "image/svg+xml")
	return p, err
}

// add offers a file and returns its path.
func (p *Pages) add(name, media string) (string, error) {
	b, err := sources.ReadFile("files/" + name)
	if err != nil {
		return "", fmt.Errorf("web: read %s: %w", name, err)
	}
	sum := sha256.Sum256(b)
	ext := path.Ext(name)
	at := staticPrefix + strings.TrimSuffix(name, ext) + "-" + hex.EncodeToString(sum[:8]) + ext
	p.files[at] = file{media, b}
	return at, nil
}

func (p *Pages) shell(title string) shell { return shell{Title: title, Style: p.style, Icon: p.icon} }

// make writes a page.
func (p *Pages) make(name string, content any) ([]byte, error) {
	var b bytes.Buffer
	if err := p.templates[name].Execute(&b, content); err != nil {
		return nil, fmt.Errorf("web: render page %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// Policy implements redirect.Pages.
func (p *Pages) Policy() string { return policy }

// Page implements redirect.Pages.
func (p *Pages) Page(problem redirect.Problem, status int, href, onward string) ([]byte, error) {
	m := message{shell: p.shell(problem.Title()), Detail: problem.Detail(), Status: statusLine(status)}
	m.Report, m.Appeal = strangersMay(problem)
	if href != "" {
		m.Destination, m.Onward = destinationOf(href), onward
	}
	return p.make("message", m)
}

// strangersMay says of what a page is about whether it can be reported, and whether its
// owner can appeal: of links that are there. The pages are the same for every link; which
// one a visitor comes from, the forms are told by the browser.
func strangersMay(p redirect.Problem) (report, appeal bool) {
	switch p {
	case redirect.Warning:
		return true, true
	case redirect.Blocked, redirect.Legal:
		return false, true
	case redirect.Expired, redirect.Exhausted, redirect.Disabled:
		return true, false
	default:
		return false, false
	}
}

func statusLine(status int) string { return strconv.Itoa(status) + " " + http.StatusText(status) }

// Files serves what pages need, under the paths that they name.
func (p *Pages) Files() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f, ok := p.files[r.URL.Path]; ok {
			f.serve(w, r)
			return
		}
		http.NotFound(w, r)
	})
}

// serve answers with a file.
func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["X-Content-Type-Options"] = []string{"nosniff"}
	if !isRead(r) {
		h["Allow"] = []string{"GET, HEAD"}
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	h["Content-Type"] = []string{f.media}
	h["Cache-Control"] = []string{"public, max-age=31536000, immutable"}
	h["Content-Security-Policy"] = []string{"default-src 'none'; sandbox"} // a picture that is opened by itself is a document
	h["Content-Length"] = []string{strconv.Itoa(len(f.bytes))}
	if r.Method != http.MethodHead {
		_, _ = w.Write(f.bytes) // the visitor is gone: nobody is left to tell
	}
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
