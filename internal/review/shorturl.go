package review

import (
	"strings"

	"curt/internal/link"
)

// maxShortURL bounds what is read as a short URL, in bytes: with what a mail program or a
// scanner of codes has put behind it.
const maxShortURL = 2048

// ParseLink reads what people name a link by: its code, which is then one of the domain
// here; or its short URL, with or without a scheme, and with what was behind it in the
// address bar. domains says which hosts are ours.
func ParseLink(text string, here link.Domain, domains func(host string) (link.Domain, bool)) (link.Key, bool) {
	text = strings.TrimSpace(text)
	if link.ValidCode(text) {
		return link.Key{Domain: here, Code: link.Code(text)}, true
	}
	if len(text) > maxShortURL {
		return link.Key{}, false
	}
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		if !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
			return link.Key{}, false
		}
		text = rest
	}
	host, path, _ := strings.Cut(text, "/")
	domain, ours := domains(host)
	if host == "" || !ours {
		return link.Key{}, false
	}
	if end := strings.IndexAny(path, "/?#"); end >= 0 {
		path = path[:end]
	}
	path = strings.TrimSuffix(path, "+")
	return link.Key{Domain: domain, Code: link.Code(path)}, link.ValidCode(path)
}
