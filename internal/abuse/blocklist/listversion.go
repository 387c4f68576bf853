package blocklist

import (
	"fmt"
	"hash/maphash"
	"io"

	"curt/internal/abuse/listfile"
)

// listVersion is one version of a list.
type listVersion struct {
	digests
	reach    reach
	contents contents
}

// syntax finds the entries of a list. What it does with the same bytes is always the
// same.
type syntax func(r io.Reader, keep func(*entry) error) (contents, error)

// read makes a version of a file, with room for so many entries. It reads the file
// twice, once to count and once to keep, so that nothing but the version takes memory.
func read(path string, parse syntax, s *seeds, room int) (e *listVersion, of listfile.Stamp, err error) {
	of, err = listfile.Read(path, func(f io.ReadSeeker, size int64) (err error) {
		e, err = twice(f, size, parse, s, room)
		return err
	})
	return e, of, err
}

// shortLine is what a line takes at the least, nearly always.
const shortLine = 16

func twice(f io.ReadSeeker, size int64, parse syntax, s *seeds, room int) (*listVersion, error) {
	e := &listVersion{}
	count := newTally(min(int64(room), size/shortLine+1))
	var err error
	e.contents, err = parse(io.LimitReader(f, listfile.MaxFile), func(found *entry) error {
		if count.n >= room {
			return listfile.ErrTooMany
		}
		count.add(s.digest(found.kind, found.text))
		e.reach.add(found)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("%w: %w", listfile.ErrFile, err)
	}
	build := count.builder()
	if _, err = parse(io.LimitReader(f, listfile.MaxFile), func(found *entry) error {
		if !build.add(s.digest(found.kind, found.text)) {
			return listfile.ErrChanged
		}
		return nil
	}); err != nil {
		return nil, err
	}
	set, ok := build.set()
	if !ok {
		return nil, listfile.ErrChanged
	}
	e.digests = set
	return e, nil
}

// kind says what an entry of a list is compared with.
type kind uint8

const (
	ofHost  kind = iota // a host, and everything below it
	ofURL               // a host and the beginning of a path, on that host alone
	ofBelow             // the same, on that host and everything below it
	ofHash              // a SHA-256
	exceptHost
	exceptURL
	exceptBelow
	ofWord   // an alias
	ofPrefix // the beginning of an alias
	ofAlike  // the skeleton of an alias
	kinds
)

// excepted returns the kind of an entry that takes out of its list what k puts in.
func (k kind) excepted() kind { return k + exceptHost }

// entry is one thing that a line of a list means.
type entry struct {
	kind kind
	text string // a host, an expression, 32 bytes or a word, in the form in which it is looked up
	// reach is how many borders an expression has (expression.go), and how long the
	// beginning of an alias is: who looks up asks for no others. At most maxReach.
	reach int
}

// maxReach bounds entry.reach.
const maxReach = 63

// seeds make the digests of each kind differ, and those of each process.
type seeds [kinds]maphash.Seed

func newSeeds() *seeds {
	s := &seeds{}
	for i := range s {
		s[i] = maphash.MakeSeed()
	}
	return s
}

func (s *seeds) digest(k kind, text string) uint64 { return maphash.String(s[k], text) }

func (s *seeds) digestBytes(k kind, text []byte) uint64 { return maphash.Bytes(s[k], text) }

// reach says which entries of a kind a list has: bit n is set when there is one of
// reach n, 0 = there is none of the kind.
type reach [kinds]uint64

func (r *reach) add(e *entry) { r[e.kind] |= 1 << e.reach }

// contents is what parse made of a file.
type contents struct {
	good    int            // lines with an entry
	passed  listfile.Lines // understood, and passed over: what a list of another purpose says
	strange listfile.Lines // not understood
}
