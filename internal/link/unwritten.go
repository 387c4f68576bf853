package link

import "time"

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
