package abuse

import (
	"context"
	"net/netip"
	"time"

	"curt/internal/link"
	"curt/internal/weburl"
)

// Facts are what is known about a link when it is made or led elsewhere. One Facts is
// about one URL: a link with a fallback is judged twice, and the worse decision holds.
type Facts struct {
	URL       weburl.URL       // where the link leads
	Workspace link.WorkspaceID // of the link
	Creator   string           // id of the caller's key; "" = anonymous
	Network   netip.Prefix     // of the caller: the address, or its /64 under IPv6. Never stored
	Country   string           // of the caller, ISO 3166-1 alpha-2 in capitals; "" = unknown
	Change    bool             // an existing link is changed: it is no new one in any count
	Fallback  bool             // URL is the link's fallback: the link is counted with its destination
}

// Name names a signal: one to 32 of a-z and "_", in settings, answers and the journal.
type Name string

// The signals that ship. A Policy knows them all.
const (
	Allowed     Name = "allowlist"       // the operator says that it is good
	Listed      Name = "blocklist"       // somebody says that it is bad
	YoungDomain Name = "domain_age"      // registered less than seven days ago
	Credentials Name = "login_words"     // login, password, verify and their kin in the path or a sub-domain
	Velocity    Name = "velocity"        // more than 50 links of this maker in the last hour
	Country     Name = "country"         // another country than where this account's links came from
	LookAlike   Name = "look_alike"      // a host that reads like a listed brand and is not its own
	Shortener   Name = "shortener"       // leads to another service of redirects
	Address     Name = "ip_literal"      // a host that is an address
	Private     Name = "private_address" // an address that is nobody's on the internet
)

// Finding is one thing that a signal saw.
type Finding struct {
	Signal Name `json:"signal"`
	// Points is what the signal adds to the score, 0 to 100, as Decide filled it in from
	// the policy.
	Points int `json:"points"`
	// Evidence says in plain text what was seen, for moderators: the list and its line,
	// the brand that is imitated. At most MaxEvidence bytes of UTF-8 without control
	// characters. Strangers choose parts of it.
	Evidence string `json:"evidence,omitempty"`
}

// MaxEvidence bounds the evidence of one finding, in bytes.
const MaxEvidence = 300

// Signal looks at one thing. It is safe for many goroutines.
//
// A signal that is asked while a link is made answers from memory in microseconds, and
// does no I/O. A signal that asks others works behind: it is given the same Facts, after
// the link was answered.
type Signal interface {
	// Name is the one that its findings bear, but for those of lists, which bear Allowed
	// or Listed.
	Name() Name

	// Inspect returns what it sees, usually nothing: a nil slice and no allocation. An
	// error means that nothing is known, and never that nothing is wrong.
	Inspect(ctx context.Context, now time.Time, f *Facts) ([]Finding, error)
}
