package redirect

import (
	"net/http"

	"curt/internal/link"
)

// Problem says why a visitor is not redirected. Each has a stable type (RFC 9457),
// "/problems/" and a name: a reference relative to the server, because an instance
// has no address of its own to promise for good.
type Problem uint8

// The problems of a redirect; NoProblem is a redirect.
const (
	NoProblem Problem = iota
	NotFound
	Expired
	Exhausted
	Disabled
	Deleted
	Warning
	Blocked
	Legal
	Unavailable
	MethodNotAllowed
	URITooLong
	BrokenLink
	Loop
	TooMany

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
		return description{404, "not-found", "No such link", "This address leads nowhere. It may be mistyped: capital and small letters matter."}
	case Expired:
		return description{410, "expired", "Link expired", "The time of this link is over."}
	case Exhausted:
		return description{410, "exhausted", "Link used up", "This link has been used as often as its owner allowed."}
	case Disabled:
		return description{410, "disabled", "Link switched off", "The owner of this link has switched it off."}
	case Deleted:
		return description{410, "deleted", "Link deleted", "This link was deleted and will not come back."}
	case Warning:
		return description{403, "warning", "This link may be harmful", "This link was reported or looks like one that harms its visitors, so it does not lead on by itself."}
	case Blocked:
		return description{403, "blocked", "Link blocked", "This link was blocked because it harms its visitors."}
	case Legal:
		return description{451, "legal", "Unavailable for legal reasons", "This link was taken down because of a legal demand."}
	case Unavailable:
		return description{503, "unavailable", "Try again in a moment", "The link could not be looked up just now. It is not gone."}
	case MethodNotAllowed:
		return description{405, "method-not-allowed", "Method not allowed", "This link can be followed by GET and HEAD only."}
	case URITooLong:
		return description{414, "uri-too-long", "Address too long", "With the query of this request the destination would be too long."}
	case BrokenLink:
		return description{500, "broken-link", "Broken link", "What is stored for this link is not an address that a browser may be sent to."}
	case Loop:
		return description{508, "loop", "Link leads in a circle", "This link leads back to the service that serves it, so following it would not end."}
	case TooMany:
		return description{429, "rate-limited", "Too many unknown links", "Too many links that do not exist were asked for from this network. Links that do exist go on working."}
	case NoProblem, problems:
	}
	return description{500, "internal", http.StatusText(500), ""}
}

// Type returns the problem's type, such as "/problems/expired".
func (p Problem) Type() string { return "/problems/" + p.describe().name }

// Problems lists all problems, for those who document them.
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
