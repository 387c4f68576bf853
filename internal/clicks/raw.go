package clicks

import (
	"net/netip"
)

// Outcome is what the visitor was answered. Its numbers are stored in the log.
type Outcome uint8

const (
	// Redirected: the link's own redirect. The only outcome that counts as a click.
	Redirected Outcome = 1
	// FellBack: the link's fallback.
	FellBack Outcome = 2
	// Refused: a known link that did not redirect: expired, disabled, blocked, warned of.
	Refused Outcome = 3
	// Orphan: no such link.
	Orphan Outcome = 4
)

// Flags of a Raw. A click with Head or Prefetch is a preview, never a click.
type Flags uint8

// The flags; their numbers are stored in the log.
const (
	Head     Flags = 1 << 0 // the method was HEAD
	Prefetch Flags = 1 << 1 // Sec-Purpose or Purpose announced a prefetch
	ViaQR    Flags = 1 << 2 // the query had qr=1
	Warned   Flags = 1 << 3 // the visitor was shown a warning page, and went on
)

// Raw is one answered request as the redirect path saw it. The byte slices belong
// to the request and are valid only during Record; Addr never reaches a disk.
type Raw struct {
	Time      int64 // Unix milliseconds, when the answer was written
	Domain    []byte
	Code      []byte
	Outcome   Outcome
	Flags     Flags
	Addr      netip.Addr
	Country   [2]byte // as a trusted proxy states it; zero = none does
	UserAgent []byte
	Referrer  []byte // the Referer header, as sent
	Language  []byte // the Accept-Language header, as sent
	Query     []byte // the raw query, without "?": UTM fields are read from it later
}

// Location is what an address tells, and what remains of it.
type Location struct {
	Country [2]byte // ISO 3166-1 alpha-2; zero = unknown
	City    string
	Network string
}

// Geo finds the place of an address. It is called once per click: it must answer
// from memory, and an address it does not know is the zero Place.
type Geo interface {
	Locate(addr netip.Addr) Location
}
