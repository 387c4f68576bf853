package clicks

import (
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
	names := [...]string{"unknown", Redirected: "redirected", FellBack: "fallback", Refused: "refused", Orphan: "orphan"}
	if int(o) >= len(names) {
		return names[0]
	}
	return names[o]
}

// EventID identifies one click for good: the process that captured it, and its sequence there.
// A reader that meets an ID twice counts it once.
type EventID struct {
	Instance uint64 // random per start of the process
	Sequence uint64 // 0, 1, 2 … in the order of the log
}

// Ended is the watermark of an instance that has stopped and whose events were all
// delivered.
const Ended = 1<<63 - 1
