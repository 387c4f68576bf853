package httpapi

import (
	"strings"

	"curt/internal/search"
)

// question returns the text of q, in which people also put whole URLs: without the
// scheme, which is no word of a link, and of a short URL of ours only the code. Its
// domain becomes the filter's; under a filter for another domain it stays words.
func (c *call) question(f *search.Filter) string {
	text := c.query.Get("q")
	if len(text) > search.MaxText {
		return text // is refused as it was sent
	}
	pieces := strings.Fields(text)
	for i, piece := range pieces {
		scheme, rest, ok := strings.Cut(piece, "://")
		if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
			continue
		}
		pieces[i] = rest
		host, path, _ := strings.Cut(rest, "/")
		code := path
		if end := strings.IndexAny(path, "/?#"); end >= 0 {
			code = path[:end]
		}
		domain, ours := c.api.links.Domain(host)
		if host == "" || code == "" || !ours || f.Domain != nil && *f.Domain != domain {
			continue
		}
		f.Domain, pieces[i] = &domain, code
	}
	return strings.Join(pieces, " ")
}
