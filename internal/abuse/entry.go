package abuse

import "hash/maphash"

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

// lines counts those that mean nothing to us.
type lines struct{ n, first int }

func (l *lines) add(number int) {
	if l.n++; l.n == 1 {
		l.first = number
	}
}

// contents is what parse made of a file.
type contents struct {
	good    int   // lines with an entry
	passed  lines // understood, and passed over: what a list of another purpose says
	strange lines // not understood
}
