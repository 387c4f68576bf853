package redirect

import (
	"net/http"

	"curt/internal/link"
)

// Problem says why a visitor is not redirected. Each has a stable type (RFC 9457),
// "/problems/" and a name: a reference relative to the server, because an instance
// has no permanent address of its own.
type Problem uint8

// The problems of a redirect; NoProblem is a redirect.
const (
	NoProblem Problem = iota
	NotFound
	Expired
	Exhausted
	Disabled
	Deleted
	Unreadable
	Unstorable
	Warning
	Blocked
	Legal
	Unavailable
	MethodNotAllowed
	URITooLong
	BrokenLink
	Loop
	TooMany
	Limited

	problems // how many there are
)

// description is a row of the table of problem types: the only place that names
// them.
type description struct {
	status int
	name   string // type is "/problems/" + name
	title  string
	detail string // for people, in full sentences
}

func (p Problem) describe() description {
	switch p {
	case NotFound:
		return description{404, "not-found", "Link not found", "There is no link at this URL. Check the spelling: short links are case-sensitive."}
	case Expired:
		return description{410, "expired", "Link expired", "This link has expired."}
	case Exhausted:
		return description{410, "exhausted", "Link limit reached", "This link has reached its click limit."}
	case Disabled:
		return description{410, "disabled", "Link disabled", "This link has been disabled by its owner."}
	case Deleted:
		return description{410, "deleted", "Link deleted", "This link has been deleted permanently."}
	case Unreadable:
		return description{410, "record-unreadable", "Link not stored", "This link was accepted, but could not be stored: its record is damaged."}
	case Unstorable:
		return description{410, "record-invalid", "Link not stored", "This link was accepted, but could not be stored: its record is invalid."}
	case Warning:
		return description{403, "warning", "This link may be harmful", "This link was reported or looks unsafe, so we paused the redirect."}
	case Blocked:
		return description{403, "blocked", "Link blocked", "This link was blocked because it is harmful to visitors."}
	case Legal:
		return description{451, "legal", "Unavailable for legal reasons", "This link was taken down because of a legal demand."}
	case Unavailable:
		return description{503, "unavailable", "Try again in a moment", "This link is temporarily unavailable."}
	case MethodNotAllowed:
		return description{405, "method-not-allowed", "Method not allowed", "This link supports only GET and HEAD requests."}
	case URITooLong:
		return description{414, "uri-too-long", "URL too long", "The destination URL would be too long with the query parameters of this request."}
	case BrokenLink:
		return description{500, "broken-link", "Broken link", "The stored destination of this link is not a valid URL."}
	case Loop:
		return description{508, "loop", "Redirect loop", "This link points back to its own service, so the redirect would never end."}
	case TooMany:
		return description{429, "rate-limited", "Too many unknown links", "Your network requested too many unknown links. Existing links still work."}
	case Limited:
		return description{429, "too-many-visits", "Too many visits", "This link, or your network, had too many visits in a short time. Try again in a moment."}
	case NoProblem, problems:
	}
	return description{500, "internal", http.StatusText(500), ""}
}

// Type returns the problem's type, such as "/problems/expired".
func (p Problem) Type() string { return "/problems/" + p.describe().name }

// Problems lists all problems, for the documentation.
func Problems() []Problem {
	var all []Problem
	for p := NotFound; p < problems; p++ {
		all = append(all, p)
	}
	return all
}

// Name is the last segment of the type.
func (p Problem) Name() string { return p.describe().name }

// Status is the HTTP status that it is answered with.
func (p Problem) Status() int { return p.describe().status }

// Title names the problem for people.
func (p Problem) Title() string { return p.describe().title }

// Detail explains the problem in full sentences.
func (p Problem) Detail() string { return p.describe().detail }

// problemOf maps the states that are no redirect.
func problemOf(s link.State) Problem {
	switch s {
	case link.StateDeleted:
		return Deleted
	case link.StateLegal:
		return Legal
	case link.StateBlocked:
		return Blocked
	case link.StateDisabled:
		return Disabled
	case link.StateNotYet:
		return NotFound
	case link.StateExpired:
		return Expired
	case link.StateExhausted:
		return Exhausted
	case link.StateWarning:
		return Warning
	case link.StateLive:
	}
	return NoProblem
}

// goneAs says why a link is gone for good: it was deleted, or could never be stored.
func goneAs(t *link.Target) Problem {
	switch t.Unwritten() {
	case link.UnwrittenUnreadable:
		return Unreadable
	case link.UnwrittenInvalid:
		return Unstorable
	}
	return Deleted
}
