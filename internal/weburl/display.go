package weburl

import "strings"

// Display shortens a URL in normal form to what a reader wants to see: host, port
// unless it is the default, and path, with "?…" in the place of a query. A-labels
// and escapes stay as they are, so that the text cannot pretend to be another
// host. What is no such URL comes back unchanged.
func Display(href string) string {
	_, s, ok := strings.Cut(href, "://")
	if !ok {
		return href
	}
	s, _, _ = strings.Cut(s, "#")
	s, _, query := strings.Cut(s, "?")
	if !query {
		return strings.TrimSuffix(s, "/")
	}
	return s + "?…"
}
