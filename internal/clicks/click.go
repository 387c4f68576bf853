package clicks

import (
	"cmp"
	"time"
)

// Click is one event as people read it: what statistics are made of. Texts are
// valid UTF-8 without control characters; empty = unknown or not there.
type Click struct {
	Time    time.Time // UTC, milliseconds
	Outcome Outcome
	Preview bool // HEAD or prefetch

	Country, City, Network string
	Device, Browser, OS    string
	Language               string
	ReferrerHost           string
	Trigger                string
	UTM                    [UTMContent - UTMSource + 1]string // in the order of the dimensions from UTMSource on

	Bot       bool
	BotReason BotReason // "" for people
	BotName   string    // how the program calls itself

	// Visitor is the log's tag of the visitor, the same on all links of a day; 0 =
	// unknown. It is not for showing as it is.
	Visitor uint64
}

// Value returns what the click has of a dimension, as statistics spell it; "" = nothing.
func (c *Click) Value(d Dimension) string {
	switch d {
	case Country:
		return c.Country
	case City:
		return c.City
	case Network:
		return c.Network
	case ReferrerHost:
		return c.ReferrerHost
	case Device:
		return c.Device
	case Browser:
		return c.Browser
	case OS:
		return c.OS
	case Language:
		return c.Language
	case Trigger:
		return c.Trigger
	default:
		if d >= UTMSource && d < NumDimensions {
			return c.UTM[d-UTMSource]
		}
		return ""
	}
}

// BotReason says why a click counts as a bot's.
type BotReason string

// The reasons.
const (
	BotNamed     BotReason = "named"      // its name or its address says so
	BotListed    BotReason = "listed"     // it is on the list of crawlers
	BotNoBrowser BotReason = "no_browser" // it does not begin as browsers do: a program, a preview
)

// String returns the outcome's name in the API.
func (o Outcome) String() string {
	switch o {
	case Redirected:
		return "redirected"
	case FellBack:
		return "fallback"
	case Refused:
		return "refused"
	case Orphan:
		return "orphan"
	}
	return "unknown"
}

// Click turns an event into what statistics know of it. It copies what it keeps.
func (b *BotList) Click(e *Event) Click {
	var host [256]byte
	who, name := b.describe(e)
	c := Click{
		Time: e.When(), Outcome: e.Outcome, Preview: e.Preview(),
		City: Plain(string(e.City)), Network: Plain(string(e.Network)),
		Device: who.Device(), Browser: who.Browser(), OS: who.OS(),
		Language: languageName(primaryLanguage(e.Language)), Trigger: TriggerLink,
		ReferrerHost: cmp.Or(string(referrerHost(e.Referrer, host[:])), Direct),
		Bot:          who.Bot(), BotReason: who.Reason(), BotName: name, Visitor: e.Visitor,
	}
	if e.Country != [2]byte{} {
		c.Country = Plain(string(e.Country[:]))
	}
	switch {
	case e.Flags&Warned != 0:
		c.Trigger = TriggerWarning
	case e.Flags&ViaQR != 0:
		c.Trigger = TriggerQR
	}
	c.UTM, _ = readUTM(e.Query)
	return c
}

// describe returns what Fold counts an event's user agent as, and how a bot calls itself.
func (b *BotList) describe(e *Event) (who Agent, name string) {
	if e.Agent.Known() {
		return e.Agent, Plain(string(e.BotName))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.agents.parse(e.UserAgent)
	return found.Agent, found.name
}
