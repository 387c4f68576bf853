// Package idset is an exact set of clicks, by instance and sequence, a bit each.
package idset

import (
	"errors"

	"curt/internal/clicks"
)

// ErrTooMany says that more clicks are to be compared than are kept in memory.
var ErrTooMany = errors.New("too many clicks to compare at once: use fewer hours")

const (
	pageSize = 1024 // sequences of a page

	// MaxPages bounds a comparison to some 400 MB. Sequences follow one another, so that a page
	// Has nearly as many clicks: 5,000 a second are 17,600 pages an hour.
	MaxPages = 1 << 20
)

// page names the sequences of an instance that lie together.
type page struct{ instance, number uint64 }

// marks are two bits for each click of a page: it is one of the set, and it was met.
type marks struct{ in, met [pageSize / 64]uint64 }

// Set is an exact set of clicks. Its memory is that of the pages, however many clicks are in
// them, and however often each is added.
type Set struct {
	pages map[page]*marks
	most  int // pages
}

// New returns an empty set of at most so many pages.
func New(most int) *Set { return &Set{map[page]*marks{}, most} }

func place(id clicks.EventID) (p page, word int, bit uint64) {
	at := id.Sequence % pageSize
	return page{id.Instance, id.Sequence / pageSize}, int(at / 64), 1 << (at % 64)
}

// Add adds a click, and reports whether it was not there.
func (s *Set) Add(id clicks.EventID) (isNew bool, err error) {
	p, word, bit := place(id)
	m := s.pages[p]
	if m == nil {
		if len(s.pages) >= s.most {
			return false, ErrTooMany
		}
		m = &marks{}
		s.pages[p] = m
	}
	isNew = m.in[word]&bit == 0
	m.in[word] |= bit
	return isNew, nil
}

// Has reports whether a click is in the set.
func (s *Set) Has(id clicks.EventID) bool {
	p, word, bit := place(id)
	m := s.pages[p]
	return m != nil && m.in[word]&bit != 0
}

// Meet reports whether a click is in the set, and whether it is met for the first time.
func (s *Set) Meet(id clicks.EventID) (in, first bool) {
	p, word, bit := place(id)
	m := s.pages[p]
	if m == nil || m.in[word]&bit == 0 {
		return false, false
	}
	first = m.met[word]&bit == 0
	m.met[word] |= bit
	return true, first
}
