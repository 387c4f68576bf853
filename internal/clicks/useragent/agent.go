package useragent

import (
	"slices"

	"curt/internal/clicks"
)

// Agent is what a user agent tells. The fields are indices of the name lists of parser.go, so
// that it is four bytes and a stranger cannot invent browsers. The log keeps them: lists
// only grow, at their ends. The zero Agent is that of a user agent that was not parsed yet.
type Agent struct {
	device, browser, os uint8
	kind                agentKind
}

// agentKind says what a user agent is: not parsed yet, a person, or why it is a bot. Its
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

// reasons are by agentKind.
func reasons() []clicks.BotReason {
	return []clicks.BotReason{unread: "", person: "", namedBot: clicks.BotNamed, listedBot: clicks.BotListed, noBrowser: clicks.BotNoBrowser}
}

// NewAgent returns the Agent of the names that its methods give; one that this release does
// not know is Other. reason is empty for people.
func NewAgent(device, browser, os string, reason clicks.BotReason) Agent {
	index := func(names []string, name string) uint8 { return uint8(max(0, slices.Index(names, name))) }
	a := Agent{index(deviceNames(), device), index(browserNames(), browser), index(osNames(), os), person}
	if reason != "" {
		a.kind = noBrowser // also for the reasons of a later release
		if i := slices.Index(reasons(), reason); i > 0 {
			a.kind = agentKind(i)
		}
	}
	return a
}

// Numbers returns the places of the Agent in Names.
func (a Agent) Numbers() (device, browser, os uint8) { return a.device, a.browser, a.os }

// Parsed reports whether the user agent was read.
func (a Agent) Parsed() bool { return a.kind != unread }

// Bot reports whether it is a robot's.
func (a Agent) Bot() bool { return a.kind > person }

// Reason says why; "" for people.
func (a Agent) Reason() clicks.BotReason { return reasons()[a.kind] }

// Device returns the kind of device.
func (a Agent) Device() string { return deviceNames()[a.device] }

// Browser returns the family of the browser.
func (a Agent) Browser() string { return browserNames()[a.browser] }

// OS returns the operating system.
func (a Agent) OS() string { return osNames()[a.os] }

// AgentSize is the size of the log's form.
const AgentSize = 4

// Append appends the log's form.
func (a Agent) Append(b []byte) []byte { return append(b, a.device, a.browser, a.os, byte(a.kind)) }

// ReadAgent reads the log's form. What a later release has more of is Other.
func ReadAgent(b []byte) Agent {
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

// Result is an Agent, and how it calls itself if it is a bot.
type Result struct {
	Agent

	Name string
}

// MaxLength is how much of a user agent is read, in bytes. The longest ones of in-app
// browsers are near 400.
const MaxLength = 512

// maxBotName bounds how a program may call itself.
const maxBotName = 64
