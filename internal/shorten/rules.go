package shorten

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"curt/internal/abuse/blocklist"
	"curt/internal/abuse/skeleton"
	"curt/internal/hosts"
	"curt/internal/link"
	"curt/internal/moderation/lists"
	"curt/internal/weburl"
)

const (
	// maxExpiresIn is ten years, with three leap days, in seconds.
	maxExpiresIn = 3653 * 24 * 60 * 60
	// maxClicks is the largest integer that every JSON reader keeps exactly
	// (RFC 8259, section 6).
	maxClicks = 1<<53 - 1
)

// DefaultRedirect is the status of links that name none: browsers ask again
// each time, so that clicks count and changes take effect.
const DefaultRedirect link.Redirect = 302

// Rules say what a link may be. They are safe for many goroutines.
type Rules struct {
	// Set once in New.
	hosts   *hosts.Current   // nil = none is known
	words   *blocklist.Words // nil = none
	lists   Lists
	aliases AliasPolicy
}

// Lists are what creating links needs of the lists.Keeper: the aliases that its lists refuse.
type Lists interface {
	// RefusesCode is about a generated code, RefusesAlias about a chosen one.
	RefusesCode(code string) bool
	RefusesAlias(alias string) bool
	// ReadsLikeService reports whether visitors would take an alias for a page of the service.
	ReadsLikeService(alias string) bool
}

// serviceNames are the Lists of a service without lists: skeletons.
type serviceNames map[string]struct{}

func (serviceNames) RefusesCode(string) bool  { return false }
func (serviceNames) RefusesAlias(string) bool { return false }
func (s serviceNames) ReadsLikeService(alias string) bool {
	_, imitates := s[skeleton.Of(alias)]
	return imitates
}

// AliasPolicy is what an operator allows of the aliases that CheckAlias accepts.
type AliasPolicy struct {
	Min, Max int    // characters; 0 = no further bound
	Alphabet string // the characters of an alias; "" = all

	// Generated reports whether a code was perhaps generated for a link that is not written yet. Nobody may choose it: its
	// link is announced to its owner, and the store does not know it. nil = links are written before they are announced.
	Generated func(code link.Code) bool
}

// NewRules returns the rules of a service at these hosts. Words and lists may be nil.
func NewRules(own *hosts.Current, words *blocklist.Words, refused Lists, aliases AliasPolicy) *Rules {
	aliases.Min, aliases.Max = max(aliases.Min, minAlias), min(cmp.Or(aliases.Max, maxAlias), maxAlias)
	if refused == nil {
		refused = serviceNames(lists.Service(nil))
	}
	return &Rules{hosts: own, words: words, lists: refused, aliases: aliases}
}

// lastDate is the end of the dates that RFC 3339 can write.
func lastDate() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC) }

// Apply writes the given fields into l, or returns an InvalidError for the first
// that breaks a rule. On error l is half-written and must be thrown away.
func (r *Rules) Apply(now time.Time, l *link.Link, f *Fields) error {
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
		return Invalid("cacheable", "a link with max_clicks or forward_query cannot be cacheable")
	}
	return nil
}

// CheckFields returns the InvalidError that any service has for a create with the fields
// at now, as far as that can be said without knowing which hosts are its own.
func CheckFields(now time.Time, f *Fields) error {
	return (&Rules{}).Apply(now, new(link.Link), f)
}

func (r *Rules) applyURLs(l *link.Link, f *Fields) (err error) {
	if f.LongURL.Given {
		if f.LongURL.Null || f.LongURL.Value == "" {
			return Invalid("long_url", "must not be empty")
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
func (r *Rules) destination(field, raw string) (string, error) {
	u, err := weburl.Parse(raw)
	if err != nil {
		return "", Invalid(field, "%s", publicMessage(err, "not allowed as a destination"))
	}
	if r.hosts.Load().Refuses(u) {
		return "", Invalid(field, "must not point to this service")
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
	case f.ExpiresAt.Some() && f.ExpiresIn.Some():
		return Invalid("expires_in", "expires_at and expires_in are mutually exclusive")
	case f.ExpiresIn.Some():
		seconds := f.ExpiresIn.Value
		if seconds < 1 || seconds > maxExpiresIn {
			return Invalid("expires_in", "expected 1 to %d seconds", maxExpiresIn)
		}
		l.Expires = now.Add(time.Duration(seconds) * time.Second)
	case f.ExpiresAt.Some():
		l.Expires = f.ExpiresAt.Value.UTC().Truncate(time.Millisecond)
		if !l.Expires.After(now) || l.Expires.After(lastDate()) {
			return Invalid("expires_at", "must be in the future")
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
			return Invalid("starts_at", "must be between 1970 and 9999")
		}
	}
	given := f.StartsAt.Some() || f.ExpiresAt.Some() || f.ExpiresIn.Some()
	if given && !l.Starts.IsZero() && !l.Expires.IsZero() && !l.Starts.Before(l.Expires) {
		return Invalid("starts_at", "must be before the expiry")
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
				return Invalid(p.stored.Name, "expected at most %d bytes of text without control characters", p.stored.Max)
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
		return Invalid("tags", "expected at most %d", link.MaxTags)
	}
	l.Tags = nil
	for i, tag := range f.Tags.Value {
		if tag == "" || len(tag) > link.MaxTag || !printable(tag) {
			return Invalid("tags", "each must be 1 to %d bytes of text without control characters", link.MaxTag)
		}
		if slices.Contains(f.Tags.Value[:i], tag) {
			return Invalid("tags", "duplicate tag")
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
		l.Redirect = DefaultRedirect
	case f.Redirect.Given:
		l.Redirect = link.Redirect(f.Redirect.Value)
		if f.Redirect.Value != int64(l.Redirect) || !l.Redirect.Valid() {
			return Invalid("redirect_status", "expected 301, 302, 307 or 308")
		}
	}
	switch {
	case f.MaxClicks.Null:
		l.MaxClicks = 0
	case f.MaxClicks.Given:
		if f.MaxClicks.Value < 1 || f.MaxClicks.Value > maxClicks {
			return Invalid("max_clicks", "expected 1 to %d", int64(maxClicks))
		}
		l.MaxClicks = uint64(f.MaxClicks.Value)
	}
	return nil
}

// DomainOf returns the Domain that a caller's name for it means. The name of the
// default domain is the zero Domain: an operator who moves to another host name
// keeps every link.
func (r *Rules) DomainOf(name Field[string]) (link.Domain, error) {
	if !name.Some() {
		return "", nil
	}
	d, ok := r.Domain(name.Value)
	if !ok {
		return "", Invalid("domain", "unknown domain")
	}
	return d, nil
}

// Domain returns the Domain that serves links under a host name, in any case.
// The empty name is the default domain.
func (r *Rules) Domain(name string) (link.Domain, bool) { return r.hosts.Load().Domain(name) }

// Domains returns the names of the domains that links may be on: the default domain, then
// the others in the order of their letters.
func (r *Rules) Domains() []link.Domain { return r.hosts.Load().Domains() }

// Bounds of an alias in characters (design §4).
const (
	minAlias = 3
	maxAlias = link.MaxCode
)

// longestReserved is the length of the longest reserved word: no longer code
// needs a look.
const longestReserved = len("well-known")

// CheckAlias returns an InvalidError for an alias of a wrong shape and
// ErrReserved for a reserved word.
func CheckAlias(alias string) error {
	if len(alias) < minAlias || !link.ValidCode(alias) {
		return Invalid("custom_alias", "expected %d to %d characters of A-Z a-z 0-9 - _", minAlias, maxAlias)
	}
	if Reserved(alias) {
		return ErrReserved
	}
	return nil
}

// CheckAlias is CheckAlias with the words of the operator.
func (r *Rules) CheckAlias(alias string) error {
	if err := CheckAlias(alias); err != nil {
		return err
	}
	if len(alias) < r.aliases.Min || len(alias) > r.aliases.Max {
		return Invalid("custom_alias", "expected %d to %d characters", r.aliases.Min, r.aliases.Max)
	}
	if a := r.aliases.Alphabet; a != "" && strings.Trim(alias, a) != "" {
		return Invalid("custom_alias", "expected only the characters %s", a)
	}
	if r.lists.ReadsLikeService(alias) {
		return ErrReserved
	}
	if err := r.checkFiles(alias); err != nil {
		return err
	}
	if r.lists.RefusesAlias(alias) {
		return ErrRefused
	}
	if r.aliases.Generated != nil && r.aliases.Generated(link.Code(alias)) {
		return ErrTaken
	}
	return nil
}

// AliasPolicy returns the bounds of new aliases, and their characters.
func (r *Rules) AliasPolicy() AliasPolicy {
	p := r.aliases
	p.Alphabet = cmp.Or(p.Alphabet, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
	return p
}

// CheckCode returns ErrReserved or ErrRefused for a generated code that is a word of the operator
// or of the lists, or is made of words of which one is refused.
func (r *Rules) CheckCode(code string) error {
	if r.lists.RefusesCode(code) {
		return ErrRefused
	}
	if err := r.checkFiles(code); err != nil || !strings.Contains(code, "-") {
		return err
	}
	for word := range strings.SplitSeq(code, "-") {
		if r.lists.RefusesCode(word) || r.words != nil && r.words.Refuses(word) {
			return ErrRefused
		}
	}
	return nil
}

// checkFiles asks for the operator's words.
func (r *Rules) checkFiles(code string) error {
	if r.words == nil {
		return nil
	}
	switch word, found := r.words.Find(code); {
	case !found:
		return nil
	case word.Refused:
		return ErrRefused
	}
	return ErrReserved
}

// Reserved reports whether the code is, in any case, a word that curt keeps for
// its own paths. The list is complete from the first release, because an alias is
// never freed. It does not allocate.
func Reserved[T ~string | ~[]byte](code T) bool {
	if len(code) > longestReserved {
		return false
	}
	var lower [longestReserved]byte
	for i := range len(code) {
		c := code[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	switch string(lower[:len(code)]) {
	case "api", "v1", "v2", "app", "admin", "login", "logout", "signup", "oauth",
		"auth", "callback", "report", "abuse", "appeal", "docs", "help", "about",
		"terms", "privacy", "status", "health", "healthz", "readyz", "metrics",
		"static", "assets", "qr", "pages", "bio", "mcp", "bulk", "links", "urls",
		"shorten", "rest", "preview", "well-known", "robots", "favicon", "sitemap":
		return true
	}
	return false
}
