package clicks

import (
	"encoding/binary"

	"github.com/axiomhq/hyperloglog"
)

// DayDigest is what is most often asked of a day, in a few hundred bytes: without
// it, a year in a zone other than UTC is read from 35,000 quarter hours with their
// visitors. Packed it is
//
//	2, visitors, then per quarter hour: index, clicks, humans
type DayDigest struct {
	Visitors uint64
	Quarters []Minute // by Index, 0 to 95
}

const digestVersion = 2

// MergeDay appends the packed digest of a day with the delta added. visitors is the
// stored form of the day's visitors, the delta's included.
func MergeDay(dst, stored []byte, delta []Minute, visitors []byte) ([]byte, error) {
	d, err := DecodeDay(stored)
	if err != nil {
		return nil, err
	}
	var quarters []Minute
	if d != nil {
		quarters = d.Quarters
	}
	n, err := countStored(visitors)
	if err != nil {
		return nil, err
	}
	dst = binary.AppendUvarint(append(dst, digestVersion), n)
	for _, q := range addMinutes(quarters, delta) {
		dst = append(dst, q.Index)
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, q.Clicks), q.Humans)
	}
	return dst, nil
}

// DecodeDay reads a packed digest; nil for a row that has none.
func DecodeDay(b []byte) (*DayDigest, error) {
	if len(b) == 0 {
		return nil, nil //nolint:nilnil // rows of earlier versions have none
	}
	visitors, size := binary.Uvarint(b[1:])
	if b[0] != digestVersion || size <= 0 {
		return nil, errPacked
	}
	b = b[1+size:]
	quarters := make([]Minute, 0, min(len(b)/3, 96))
	for last := -1; len(b) > 0; {
		q := Minute{Index: b[0]}
		var clicks, humans int
		q.Clicks, clicks = binary.Uvarint(b[1:])
		q.Humans, humans = binary.Uvarint(b[1+max(0, clicks):])
		if clicks <= 0 || humans <= 0 || q.Index > 95 || int(q.Index) <= last {
			return nil, errPacked
		}
		quarters, last = append(quarters, q), int(q.Index)
		b = b[1+clicks+humans:]
	}
	return &DayDigest{Visitors: visitors, Quarters: quarters}, nil
}

// countStored counts the visitors of a stored form.
func countStored(b []byte) (uint64, error) {
	switch {
	case len(b) == 0:
		return 0, nil
	case b[0] == formExact && len(b)%8 == 1:
		return uint64(len(b) / 8), nil
	case b[0] == formSketch && len(b) == sketchLength:
		var s hyperloglog.Sketch
		if err := s.UnmarshalBinary(b[1:]); err != nil {
			return 0, errVisitors
		}
		return s.Estimate(), nil
	}
	return 0, errVisitors
}

// Adds reports whether the digest accounts for all clicks of its day: it does not
// for a day that an earlier version began to count.
func (d *DayDigest) Adds(c Counts) bool {
	if d == nil {
		return false
	}
	var clicks, humans uint64
	for _, q := range d.Quarters {
		clicks += q.Clicks
		humans += q.Humans
	}
	return clicks == c.Clicks && humans == c.Humans
}
