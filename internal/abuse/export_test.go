package abuse

import (
	"context"
	"io"
	"time"
)

// Look is one round of Run.
func (b *Blocklists) Look(ctx context.Context, now time.Time) { b.look(ctx, now) }

// HostsOf and Names are what the package makes of lines and URLs.
var (
	HostsOf = hostsOf
	Names   = names
)

// Parse returns how many lines nothing can be made of, and the first of them.
func Parse(r io.Reader, keep func(host string) error) (lines, first int, err error) {
	bad, err := parse(r, keep)
	return bad.lines, bad.first, err
}

// Read reads a file with room for so many hosts and returns how many digests are kept,
// and in how many places.
func Read(path string, digest func(string) uint64, room int) (hosts, places int, err error) {
	e, _, err := read(path, digest, room)
	if err != nil {
		return 0, 0, err
	}
	return len(e.digests), cap(e.digests), nil
}

// MixtureOf is what one label mixes.
var MixtureOf = mixture

// Known is one brand of a list.
type Known struct {
	Name, Home string
	Common     bool
}

// BrandsOf returns the brands that l knows.
func BrandsOf(l *LookAlikes) []Known {
	var all []Known
	for _, b := range l.brands.all {
		all = append(all, Known{b.name, b.home, b.common})
	}
	return all
}
