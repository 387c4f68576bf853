package searchindex

import (
	"encoding/binary"
	"math/bits"
)

// docSet is a set of documents of one segment, one bit each.
type docSet []uint64

func newDocSet(docs int) docSet { return make(docSet, (docs+63)/64) }

// fill makes it the set of all documents.
func (s docSet) fill(docs int) {
	for i := range s {
		s[i] = ^uint64(0)
	}
	if rest := docs % 64; rest > 0 {
		s[len(s)-1] = 1<<rest - 1
	}
}

func (s docSet) add(doc int) { s[doc>>6] |= 1 << (doc & 63) }

func (s docSet) has(doc int) bool { return len(s) > 0 && s[doc>>6]&(1<<(doc&63)) != 0 }

func (s docSet) and(o docSet) {
	for i := range s {
		s[i] &= o[i]
	}
}

// without removes what o holds; an empty o holds nothing.
func (s docSet) without(o docSet) {
	for i := range o {
		s[i] &^= o[i]
	}
}

func (s docSet) empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

func (s docSet) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// next returns the first document at or after doc, or -1.
func (s docSet) next(doc int) int {
	for i := doc >> 6; i < len(s); i++ {
		w := s[i]
		if i == doc>>6 {
			w &= ^uint64(0) << (doc & 63)
		}
		if w != 0 {
			return i<<6 | bits.TrailingZeros64(w)
		}
	}
	return -1
}

// previous returns the last document at or before doc, or -1.
func (s docSet) previous(doc int) int {
	if doc < 0 {
		return -1
	}
	for i := doc >> 6; i >= 0; i-- {
		w := s[i]
		if i == doc>>6 {
			w &= ^uint64(0) >> (63 - doc&63)
		}
		if w != 0 {
			return i<<6 | (63 - bits.LeadingZeros64(w))
		}
	}
	return -1
}

// pack returns the set as bytes; the empty set has none.
func (s docSet) pack() []byte {
	b := make([]byte, 0, 8*len(s))
	if s.empty() {
		return b
	}
	for _, w := range s {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

func unpackDocSet(b []byte, docs int) (docSet, bool) {
	if len(b) == 0 {
		return nil, true
	}
	s := newDocSet(docs)
	if len(b) != 8*len(s) {
		return nil, false
	}
	for i := range s {
		s[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return s, true
}

// Postings are the documents of one term: nothing when it is all of the segment;
// the gaps between them as varints; or one bit each where that is shorter. They stand
// behind a varint of their length, doubled, plus one when they are bits.

// appendPostings packs sorted documents.
func appendPostings(b []byte, list []int, docs int, scratch *[]byte) []byte {
	if len(list) == docs {
		return append(b, 0)
	}
	gaps, last := (*scratch)[:0], -1
	for _, doc := range list {
		gaps = binary.AppendUvarint(gaps, uint64(doc-last-1))
		last = doc
	}
	*scratch = gaps
	size := (docs + 7) / 8
	if len(gaps) <= size {
		return append(binary.AppendUvarint(b, uint64(len(gaps))<<1), gaps...)
	}
	b = binary.AppendUvarint(b, uint64(size)<<1|1)
	begin := len(b)
	b = append(b, make([]byte, size)...)
	for _, doc := range list {
		b[begin+doc>>3] |= 1 << (doc & 7)
	}
	return b
}

// postings are packed, inside a page.
type postings struct {
	data []byte
	bits bool
}

// each calls f with every document; it is false where the bytes make no sense.
func (p postings) each(docs int, f func(doc int)) bool {
	switch {
	case len(p.data) == 0:
		for doc := range docs {
			f(doc)
		}
	case p.bits:
		for i, b := range p.data {
			for ; b != 0; b &= b - 1 {
				doc := i<<3 | bits.TrailingZeros8(b)
				if doc >= docs {
					return false
				}
				f(doc)
			}
		}
	default:
		for data, doc := p.data, -1; len(data) > 0; {
			gap, n := binary.Uvarint(data)
			if n <= 0 || gap >= uint64(docs-doc-1) {
				return false
			}
			data, doc = data[n:], doc+1+int(gap)
			f(doc)
		}
	}
	return true
}

// addTo adds the documents to a set.
func (p postings) addTo(s docSet, docs int) bool {
	switch {
	case len(p.data) == 0:
		s.fill(docs)
		return true
	case p.bits && len(p.data) == (docs+7)/8 && docs%64 == 0:
		for i := range s {
			s[i] |= binary.LittleEndian.Uint64(p.data[8*i:])
		}
		return true
	}
	return p.each(docs, s.add)
}
