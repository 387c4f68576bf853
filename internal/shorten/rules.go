package shorten

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"curt/internal/abuse"
	"curt/internal/link"
	"curt/internal/weburl"
)

const (
	// maxExpiresIn is ten years, with three leap days, in seconds.
	maxExpiresIn = 3653 * 24 * 60 * 60
	// maxClicks is the largest integer that every JSON reader keeps exactly
	// (RFC 8259, section 6).
	maxClicks = 1<<53 - 1
)

// defaultRedirect is the status of links that name none: browsers ask again
// each time, so that clicks count and changes take effect.
const defaultRedirect link.Redirect = 302

// rules say what a link may be. They are safe for many goroutines.
type rules struct {
	// Set once in New.
	own      *weburl.Hosts
	words    *abuse.Words // nil = none
	imitated map[string]struct{}
	host     link.Domain
	domains  map[link.Domain]struct{}
}

// lastDate is the end of the dates that RFC 3339 can write.
func lastDate() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC) }

// apply writes the given fields into l, or returns an InvalidError for the first
// that breaks a rule. On error l is half-written and must be thrown away.
func (r *rules) apply(now time.Time, l *link.Link, f *Fields) error {
	if err := r.applyURLs(l, f); err != nil {
		return err
	}
	if err := applyTimes(now, l, f); err != nil {
		return err
	}
	if err := applyPlain(l, f); err != nil {
		return err
	}
	if err := applyTags(l, f); err != nil {
		return err
	}
	if err := applyAnswer(l, f); err != nil {
		return err
	}
	if l.Cacheable && (l.MaxClicks > 0 || l.ForwardQuery) {
		return invalid("cacheable", "a link with max_clicks or forward_query cannot be cacheable")
	}
	return nil
}

// CheckFields returns the InvalidError that any service has for a create with the fields
// at now, as far as that can be said without knowing which hosts are its own.
func CheckFields(now time.Time, f *Fields) error {
	return (&rules{own: new(weburl.Hosts)}).apply(now, new(link.Link), f)
}

func (r *rules) applyURLs(l *link.Link, f *Fields) (err error) {
	if f.LongURL.Given {
		if f.LongURL.Null || f.LongURL.Value == "" {
			return invalid("long_url", "must not be empty")
		}
		if l.Destination, err = r.destination("long_url", f.LongURL.Value); err != nil {
			return err
		}
	}
	switch {
	case f.Fallback.Null:
		l.Fallback = ""
	case f.Fallback.Given:
		l.Fallback, err = r.destination("fallback_url", f.Fallback.Value)
	}
	return err
}

// destination returns the normal form of a URL that a link may lead to.
func (r *rules) destination(field, raw string) (string, error) {
	u, err := weburl.Parse(raw)
	if err != nil {
		return "", invalid(field, "%s", publicMessage(err, "not a URL that a link may lead to"))
	}
	if r.own.Refuses(u) {
		return "", invalid(field, "leads to this service itself")
	}
	return u.Href(), nil
}

func publicMessage(err error, otherwise string) string {
	var public interface{ PublicMessage() string }
	if errors.As(err, &public) {
		return public.PublicMessage()
	}
	return otherwise
}

func applyTimes(now time.Time, l *link.Link, f *Fields) error {
	switch {
	case f.ExpiresAt.some() && f.ExpiresIn.some():
		return invalid("expires_in", "give expires_at or expires_in, not both")
	case f.ExpiresIn.some():
		seconds := f.ExpiresIn.Value
		if seconds < 1 || seconds > maxExpiresIn {
			return invalid("expires_in", "want 1 to %d seconds", maxExpiresIn)
		}
		l.Expires = now.Add(time.Duration(seconds) * time.Second)
	case f.ExpiresAt.some():
		l.Expires = f.ExpiresAt.Value.UTC().Truncate(time.Millisecond)
		if !l.Expires.After(now) || l.Expires.After(lastDate()) {
			return invalid("expires_at", "must lie in the future")
		}
	case f.ExpiresAt.Null || f.ExpiresIn.Null:
		l.Expires = time.Time{}
	}
	switch {
	case f.StartsAt.Null:
		l.Starts = time.Time{}
	case f.StartsAt.Given:
		l.Starts = f.StartsAt.Value.UTC().Truncate(time.Millisecond)
		if l.Starts.UnixMilli() <= 0 || l.Starts.After(lastDate()) {
			return invalid("starts_at", "must lie between 1970 and 9999")
		}
	}
	given := f.StartsAt.some() || f.ExpiresAt.some() || f.ExpiresIn.some()
	if given && !l.Starts.IsZero() && !l.Expires.IsZero() && !l.Starts.Before(l.Expires) {
		return invalid("starts_at", "must lie before the expiry")
	}
	return nil
}

// applyPlain writes the flags and texts that are given; null brings a default back.
func applyPlain(l *link.Link, f *Fields) error {
	for _, p := range plains() {
		switch to := p.stored.Of(l).(type) {
		case *bool:
			if given, ok := p.of(f).(*Field[bool]); ok && given.Given {
				*to = given.Value || given.Null && p.stored.On
			}
		case *string:
			given, ok := p.of(f).(*Field[string])
			switch {
			case !ok || !given.Given:
			case len(given.Value) > p.stored.Max || !printable(given.Value):
				return invalid(p.stored.Name, "want at most %d bytes of text without control characters", p.stored.Max)
			default:
				*to = given.Value
			}
		}
	}
	return nil
}

func applyTags(l *link.Link, f *Fields) error {
	if !f.Tags.Given {
		return nil
	}
	if len(f.Tags.Value) > link.MaxTags {
		return invalid("tags", "want at most %d", link.MaxTags)
	}
	l.Tags = nil
	for i, tag := range f.Tags.Value {
		if tag == "" || len(tag) > link.MaxTag || !printable(tag) {
			return invalid("tags", "each is 1 to %d bytes of text without control characters", link.MaxTag)
		}
		if slices.Contains(f.Tags.Value[:i], tag) {
			return invalid("tags", "one is given twice")
		}
		l.Tags = append(l.Tags, tag)
	}
	return nil
}

// printable reports whether s is UTF-8 that can be shown on one line: no control
// characters and no line or paragraph separators, which end up in logs, CSV cells
// and header lines of those who show it.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
	})
}

func applyAnswer(l *link.Link, f *Fields) error {
	switch {
	case f.Redirect.Null:
		l.Redirect = defaultRedirect
	case f.Redirect.Given:
		l.Redirect = link.Redirect(f.Redirect.Value)
		if f.Redirect.Value != int64(l.Redirect) || !l.Redirect.Valid() {
			return invalid("redirect_status", "want 301, 302, 307 or 308")
		}
	}
	switch {
	case f.MaxClicks.Null:
		l.MaxClicks = 0
	case f.MaxClicks.Given:
		if f.MaxClicks.Value < 1 || f.MaxClicks.Value > maxClicks {
			return invalid("max_clicks", "want 1 to %d", int64(maxClicks))
		}
		l.MaxClicks = uint64(f.MaxClicks.Value)
	}
	return nil
}
