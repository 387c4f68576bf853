package clicks

import "net/netip"

// Place is what an address tells, and what remains of it.
type Place struct {
	Country [2]byte // ISO 3166-1 alpha-2; zero = unknown
	City    string
	Network string
}

// Geo finds the place of an address. It is called once per click: it must answer
// from memory, and an address it does not know is the zero Place.
type Geo interface {
	Locate(addr netip.Addr) Place
}
