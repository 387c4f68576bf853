// Package countries holds a table of the countries of addresses, which is part of the
// program: statistics show countries without a file of the operator's.
//
// The data is IP2Location LITE's, under CC BY-SA 4.0, as github.com/phuslu/iploc publishes it
// monthly. Its licence wants [Attribution] wherever the data is shown or passed on: the
// documentation, `curt licenses` and the map of the dashboard.
//
// The module would add 4.5 MB to the program. Its data is therefore packed into 0.8 MB before a build
// (scripts/countries), into a folder that Git ignores; package pack compares the result with the
// module, entry by entry. A plain go build works without it and knows no countries.
package countries

import (
	"net/netip"
	"sync"
	"time"

	"curt/internal/clicks"
)

const (
	// Module is what the data comes from.
	Module = "github.com/phuslu/iploc"
	// Attribution is the sentence that the licence of the data wants.
	Attribution = "This site or product includes IP2Location LITE data available from https://lite.ip2location.com."
	// License names the licence of the data and says where its text is.
	License = "Creative Commons Attribution-ShareAlike 4.0 International (CC BY-SA 4.0), https://creativecommons.org/licenses/by-sa/4.0/"
)

// File is a database of the operator's, which the table completes.
type File interface {
	clicks.Geo
	Built() time.Time // zero = none is loaded
}

// Table finds the country of an address. It implements clicks.Geo and is safe for many
// goroutines.
type Table struct {
	file   File // nil = there is none
	v4, v6 func() *ranges
}

var _ clicks.Geo = &Table{}

// New returns the built-in table, which is used where the file has no country for an address; a
// nil file has none for any.
func New(file File) *Table {
	return &Table{file: file, v4: load(IPv4), v6: load(IPv6)}
}

// load returns what reads a file of the table once.
func load(name string) func() *ranges {
	return sync.OnceValue(func() *ranges {
		r, err := unpack(packed(name), name == IPv4)
		if err != nil {
			return nil // no countries: a build without the table, which has no date in Published
		}
		return r
	})
}

func packed(name string) []byte {
	b, err := files.ReadFile(Folder + "/" + name)
	if err != nil {
		return nil
	}
	return b
}

// Locate implements clicks.Geo. Without a file a look-up takes some 30 ns. The first address of
// a family takes longer, because it unpacks that half of the table: 2 MB in memory for IPv4, 12 MB
// for IPv6, which a server without IPv6 does not spend.
func (t *Table) Locate(addr netip.Addr) (p clicks.Location) {
	if t.file != nil {
		p = t.file.Locate(addr)
	}
	if p.Country == ([2]byte{}) {
		copy(p.Country[:], t.lookup(addr))
	}
	return p
}

// Country returns the country of an address, ISO 3166-1 alpha-2; "" = unknown.
func (t *Table) Country(addr netip.Addr) string {
	if t.file != nil {
		if code := t.file.Locate(addr).Country; code != ([2]byte{}) {
			return string(code[:])
		}
	}
	return t.lookup(addr)
}

// Built returns the date of the data: the file's, or else the table's.
func (t *Table) Built() time.Time {
	if t.file != nil {
		if at := t.file.Built(); !at.IsZero() {
			return at
		}
	}
	return Published()
}

// Published returns the date of the built-in data; zero = this build has none.
func Published() time.Time {
	b := packed(IPv4)
	if len(b) < dateSize {
		return time.Time{}
	}
	at, err := time.Parse("20060102", string(b[:dateSize]))
	if err != nil {
		return time.Time{} // Pack writes no such file
	}
	return at
}

// lookup returns what the table has for a public address; "" = unknown.
func (t *Table) lookup(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return ""
	}
	if addr.Is4() {
		return t.v4().country(addr)
	}
	return t.v6().country(addr)
}
