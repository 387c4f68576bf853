package clicks

import "slices"

// Agent is what a user agent tells. The fields are indices of the name lists of agents.go, so
// that it is four bytes and a stranger cannot invent browsers. The log keeps them: lists
// only grow, at their ends. The zero Agent is that of a user agent that nobody has read yet.
type Agent struct {
	device, browser, os uint8
	kind                agentKind
}

// agentKind says who a user agent is: nobody knows yet, a person, or why it is a bot. Its
// numbers are stored in the log.
type agentKind uint8

const (
	unread agentKind = iota
	person
	namedBot
	listedBot
	noBrowser
	agentKinds
)

// NewAgent returns the Agent of the names that its methods give; one that this release does
// not know is Other. reason is empty for people.
func NewAgent(device, browser, os string, reason BotReason) Agent {
	index := func(names []string, name string) uint8 { return uint8(max(0, slices.Index(names, name))) }
	a := Agent{index(deviceNames(), device), index(browserNames(), browser), index(osNames(), os), person}
	switch reason {
	case "":
	case BotNamed:
		a.kind = namedBot
	case BotListed:
		a.kind = listedBot
	default: // of a release to come
		a.kind = noBrowser
	}
	return a
}

// Known reports whether the user agent was read.
func (a Agent) Known() bool { return a.kind != unread }

// Bot reports whether it is a robot's.
func (a Agent) Bot() bool { return a.kind > person }

// Reason says why; "" for people.
func (a Agent) Reason() BotReason {
	switch a.kind {
	case namedBot:
		return BotNamed
	case listedBot:
		return BotListed
	case noBrowser:
		return BotNoBrowser
	default:
		return ""
	}
}

// Device returns the kind of device.
func (a Agent) Device() string { return deviceNames()[a.device] }

// Browser returns the family of the browser.
func (a Agent) Browser() string { return browserNames()[a.browser] }

// OS returns the operating system.
func (a Agent) OS() string { return osNames()[a.os] }

const agentSize = 4

// append writes the bytes of the log.
func (a Agent) append(b []byte) []byte { return append(b, a.device, a.browser, a.os, byte(a.kind)) }

// readAgent reads them. What a later release has more of is Other.
func readAgent(b []byte) Agent {
	a := Agent{b[0], b[1], b[2], agentKind(b[3])}
	if a.device >= numDevices {
		a.device = deviceOther
	}
	if a.browser >= numBrowsers {
		a.browser = 0
	}
	if a.os >= numSystems {
		a.os = 0
	}
	if a.kind >= agentKinds {
		a.kind = noBrowser
	}
	return a
}

// How long the lists are.
const (
	numDevices  = 5
	numBrowsers = 37
	numSystems  = 11
)

// told is an Agent, and how it calls itself if it is a bot.
type told struct {
	Agent
	name string
}

// maxBotName bounds how a program may call itself.
const maxBotName = 64
