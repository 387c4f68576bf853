package shorten

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"curt/internal/link"
	"curt/internal/search"
)

// Question says as text which links a list or an export has. Empty fields do not filter.
type Question struct {
	Words  string `json:"q,omitempty"`
	Tag    string `json:"tag,omitempty"`
	State  string `json:"state,omitempty"`
	Domain string `json:"domain,omitempty"`
}

// ListStates are the states that a list may be asked for: all but deleted, which is in no list.
func ListStates() []link.State {
	return []link.State{
		link.StateLive, link.StateNotYet, link.StateExpired, link.StateExhausted, link.StateDisabled,
		link.StateWarning, link.StateBlocked, link.StateLegal,
	}
}

// Filter returns what a question chooses, newest first. The errors are InvalidErrors.
func (r *Rules) Filter(q Question) (f search.Filter, err error) {
	if q.State != "" {
		i := slices.IndexFunc(ListStates(), func(s link.State) bool { return s.String() == q.State })
		if i < 0 {
			return f, &InvalidError{"state", "unknown state"}
		}
		f.State = ListStates()[i]
	}
	if q.Domain != "" {
		domain, ok := r.Domain(q.Domain)
		if !ok {
			return f, &InvalidError{"domain", "unknown domain"}
		}
		f.Domain = &domain
	}
	if f.Tag = q.Tag; !isTag(q.Tag) {
		return f, &InvalidError{"tag", "invalid tag"}
	}
	if q.Words != "" {
		if f.Words, err = search.ParseWords(r.plainWords(q.Words, &f)); err != nil {
			return f, &InvalidError{"q", err.Error()}
		}
	}
	return f, nil
}

// isTag reports whether a link may have the tag; none is fine.
func isTag(tag string) bool {
	return len(tag) <= link.MaxTag && utf8.ValidString(tag) && !strings.ContainsFunc(tag, unicode.IsControl)
}

// plainWords returns the words of a question, in which people also put whole URLs: without the
// scheme, which is no word of a link, and of a short URL of ours only the code. Its domain becomes
// the filter's; under a filter for another domain it stays words.
func (r *Rules) plainWords(text string, f *search.Filter) string {
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
		domain, ours := r.Domain(host)
		if host == "" || code == "" || !ours || f.Domain != nil && *f.Domain != domain {
			continue
		}
		f.Domain, pieces[i] = &domain, code
	}
	return strings.Join(pieces, " ")
}
