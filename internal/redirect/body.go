package redirect

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// bodies are the answers that are no redirects, made once: only the warning page
// depends on the link. They hold nothing of a request.
type bodies struct {
	pages Pages
	json  [problems]body
	html  [problems]body
}

// body is bytes with their length as a header's value.
type body struct {
	bytes  []byte
	length []string
}

func newBody(b []byte) body {
	return body{bytes: b, length: []string{strconv.Itoa(len(b))}}
}

func newBodies(pages Pages) (*bodies, error) {
	b := &bodies{pages: pages}
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
		if b.html[p], err = b.render(p, d.status, "", ""); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *bodies) render(p Problem, status int, destination, onward string) (body, error) {
	made, err := b.pages.Page(p, status, destination, onward)
	if err != nil {
		return body{}, fmt.Errorf("redirect: make page %s: %w", p.Name(), err)
	}
	return newBody(made), nil
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
	made, err := b.render(out.Problem, out.Status, out.Destination, out.Onward)
	if err != nil {
		return b.html[out.Problem]
	}
	return made
}
