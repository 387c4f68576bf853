package redirect

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // page.html
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
)

//go:embed page.html
var pageSource string

// bodies are the answers that are no redirects, made once: only the warning page
// depends on the link. They hold nothing of a request.
type bodies struct {
	page *template.Template
	csp  string // allows the page's own style and nothing else
	json [problems]body
	html [problems]body
}

// body is bytes with their length as a header's value.
type body struct {
	bytes  []byte
	length []string
}

// page is what page.html shows.
type page struct {
	Title, Detail, Status, Destination string
}

func newBody(b []byte) body {
	return body{bytes: b, length: []string{strconv.Itoa(len(b))}}
}

func newBodies() (*bodies, error) {
	t, err := template.New("page").Parse(pageSource)
	if err != nil {
		return nil, fmt.Errorf("redirect: parse the page: %w", err)
	}
	_, rest, opened := strings.Cut(pageSource, "<style>")
	style, _, closed := strings.Cut(rest, "</style>")
	if !opened || !closed {
		return nil, errors.New("redirect: the page has no style to hash")
	}
	sum := sha256.Sum256([]byte(style))
	b := &bodies{page: t, csp: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}
	for p := NotFound; p < problems; p++ {
		d := p.describe()
		j, err := json.Marshal(struct {
			Type   string `json:"type"`
			Title  string `json:"title"`
			Status int    `json:"status"`
			Detail string `json:"detail"`
		}{p.Type(), d.title, d.status, d.detail})
		if err != nil {
			return nil, fmt.Errorf("redirect: write problem %s: %w", d.name, err)
		}
		b.json[p] = newBody(append(j, '\n'))
		if b.html[p], err = b.render(p, d.status, ""); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// render makes a page; the template escapes the destination.
func (b *bodies) render(p Problem, status int, destination string) (body, error) {
	d := p.describe()
	var out bytes.Buffer
	err := b.page.Execute(&out, page{
		Title: d.title, Detail: d.detail, Destination: destination,
		Status: strconv.Itoa(status) + " " + http.StatusText(status),
	})
	if err != nil {
		return body{}, fmt.Errorf("redirect: make page %s: %w", d.name, err)
	}
	return newBody(out.Bytes()), nil
}

// of returns the body of an answer that is no redirect. A page that cannot be made
// falls back to the one without a destination.
func (b *bodies) of(out Outcome) body {
	switch {
	case !out.HTML:
		return b.json[out.Problem]
	case out.Destination == "":
		return b.html[out.Problem]
	}
	made, err := b.render(out.Problem, out.Status, out.Destination)
	if err != nil {
		return b.html[out.Problem]
	}
	return made
}
