package abuse

import (
	"context"
	"time"
)

// Look is one round of Run.
func (b *Blocklists) Look(ctx context.Context, now time.Time) { b.look(ctx, now) }

// HostsOf, Parse and Names are what the package makes of lines, files and URLs.
var (
	HostsOf = hostsOf
	Parse   = parse
	Names   = names
)

// Read reads a file with room for so many hosts and returns how many digests are kept,
// and in how many places.
func Read(path string, digest func(string) uint64, room int) (hosts, places int, err error) {
	e, _, err := read(path, digest, room)
	if err != nil {
		return 0, 0, err
	}
	return len(e.digests), cap(e.digests), nil
}
