package link

import "time"

// Target is what a redirect needs of a link, and all that a cache may hold. Times
// are Unix milliseconds, zero = none: a cache holds millions of Targets, and two
// time.Times would cost 32 bytes more each.
type Target struct {
	Destination  string
	Fallback     string
	Starts       int64
	Expires      int64
	Version      Version
	Limited      bool // has a bound of clicks, which only Spender can decide
	Exhausted    bool // the bound was reached when this was read; a bound may be raised, so Spender decides
	Redirect     Redirect
	Status       Status
	Safety       Safety
	ForwardQuery bool
	NoIndex      bool
	Cacheable    bool
	Loops        bool // leads to this service itself; no link says so, but who lets a Target into a cache
}

// Leads returns the Target of l for a redirect, or a NewerError where it takes a later release
// to say where l leads.
func (l *Link) Leads() (Target, error) {
	if unknown := Unknown(l.Needs()); unknown != 0 {
		return Target{}, &NewerError{Key: l.Key, Needs: unknown}
	}
	return l.Target(), nil
}

// Target returns the part of l that a redirect needs, as far as this release knows it.
func (l Link) Target() Target {
	return Target{
		Destination: l.Destination, Fallback: l.Fallback,
		Starts: Millis(l.Starts), Expires: Millis(l.Expires), Version: l.Version,
		Limited: l.MaxClicks > 0, Exhausted: l.MaxClicks > 0 && l.Spent >= l.MaxClicks,
		Redirect: l.Redirect, Status: l.Status, Safety: l.Safety,
		ForwardQuery: l.ForwardQuery, NoIndex: l.NoIndex, Cacheable: l.Cacheable,
	}
}

// State is what a link is at one moment: computed, never stored.
type State uint8

// The states, in the order in which the first that holds decides.
const (
	StateDeleted State = iota + 1
	StateLegal
	StateBlocked
	StateDisabled
	StateNotYet
	StateExpired
	StateExhausted
	StateWarning // warn or quarantined
	StateLive
)

// String returns the state's name in the API.
func (s State) String() string {
	switch s {
	case StateDeleted:
		return "deleted"
	case StateLegal:
		return "legal"
	case StateBlocked:
		return "blocked"
	case StateDisabled:
		return "disabled"
	case StateNotYet:
		return "not_yet"
	case StateExpired:
		return "expired"
	case StateExhausted:
		return "exhausted"
	case StateWarning:
		return "warning"
	case StateLive:
		return "live"
	}
	return "unknown"
}

// At returns the state of the target at now. It is pure: expiry is exact at the
// millisecond because it is computed here, on the read path.
func (t Target) At(now time.Time) State {
	ms := now.UnixMilli()
	switch {
	case t.Status == Deleted:
		return StateDeleted
	case t.Safety == Legal:
		return StateLegal
	case t.Safety == Blocked:
		return StateBlocked
	case t.Status == Disabled:
		return StateDisabled
	case t.Upcoming(now):
		return StateNotYet
	case t.Expires != 0 && ms >= t.Expires:
		return StateExpired
	case t.Exhausted:
		return StateExhausted
	case t.Safety == Warn || t.Safety == Quarantined:
		return StateWarning
	}
	return StateLive
}

// Upcoming reports whether the target's start lies ahead. Visitors are then told what they
// are told of a code that no link has, whatever state At names to the owner.
func (t Target) Upcoming(now time.Time) bool {
	return t.Starts != 0 && now.UnixMilli() < t.Starts
}

// Plain reports whether every live answer of the target is the same bytes but for
// Date, so that it may be prepared ahead: clean, no loop, no bound of clicks, no query
// to forward. A start or an expiry does not matter, because At is asked each time.
func (t Target) Plain() bool {
	return t.Status == Active && t.Safety == Clean && !t.Loops && !t.Limited && !t.ForwardQuery
}

// Unwritten says why a link that was accepted was never written, and never will be; 0 = nothing says so.
type Unwritten uint8

// The reasons.
const (
	UnwrittenUnreadable Unwritten = iota + 1 // what was kept of it until it was to be written is damaged
	UnwrittenInvalid                         // no store may have it
)

// NeverWritten returns the tombstone of a link that was accepted and can never be written. It bears the reason as its Redirect:
// a tombstone redirects nobody, so that the reason needs no column, no byte of a cache, and no release that knows it.
func (l Link) NeverWritten(now time.Time, why Unwritten) Link {
	t := l.Tombstone(now)
	t.Redirect = Redirect(why)
	return t
}

// Unwritten returns why a link was never written.
func (l *Link) Unwritten() Unwritten { return unwritten(l.Status, l.Redirect) }

// Unwritten returns why a link was never written.
func (t *Target) Unwritten() Unwritten { return unwritten(t.Status, t.Redirect) }

func unwritten(s Status, r Redirect) Unwritten {
	if why := Unwritten(r); s == Deleted && Redirect(why) == r && why <= UnwrittenInvalid { // 302 does not fit
		return why
	}
	return 0
}
