package rollup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/axiomhq/hyperloglog"
)

// MaxExact is how many visitors are counted exactly. Beyond it 16 KiB of registers
// are smaller than the tags, and the count is within 0.8 % (one standard error of
// p = 14).
const MaxExact = 2048

const (
	precision    = 14
	registers    = 1 << precision
	sketchHead   = 8 // of the library's format, version 2: see Sketch.UnmarshalBinary
	formExact    = 1 // then the tags, sorted, 8 bytes each, little-endian
	formSketch   = 2 // then a dense sketch in the library's format
	sketchLength = 1 + sketchHead + registers
)

// Visitors is a set of visitor tags: exact while small, a HyperLogLog sketch once
// larger. Tags are uniform 64-bit hashes; 0 is no visitor. The zero Visitors is
// empty.
type Visitors struct {
	tags  []uint64 // sorted, distinct
	dense []byte   // the stored form of a sketch; nil while exact
}

var errVisitors = errors.New("invalid set of visitors")

// Add adds tags, in any order and with repeats. It takes the slice over.
func (v *Visitors) Add(tags []uint64) {
	slices.Sort(tags)
	tags = slices.Compact(tags)
	if len(tags) > 0 && tags[0] == 0 {
		tags = tags[1:]
	}
	if len(v.tags) == 0 && v.dense == nil && len(tags) <= MaxExact {
		v.tags = tags
		return
	}
	v.Merge(Visitors{tags: tags})
}

// Merge adds the visitors of o, which it does not change.
func (v *Visitors) Merge(o Visitors) {
	if v.dense == nil && o.dense == nil {
		v.tags = mergeTags(make([]uint64, 0, len(v.tags)+len(o.tags)), v.tags, o.tags)
		if len(v.tags) <= MaxExact {
			return
		}
	}
	if v.dense == nil {
		v.dense = emptySketch()
		observe(v.dense, v.tags)
		v.tags = nil
	}
	observe(v.dense, o.tags)
	if o.dense != nil {
		mine, theirs := v.dense[1+sketchHead:], o.dense[1+sketchHead:]
		for i, r := range theirs {
			mine[i] = max(mine[i], r)
		}
	}
}

// Count returns how many visitors there are.
func (v *Visitors) Count() uint64 {
	if v.dense == nil {
		return uint64(len(v.tags))
	}
	var s hyperloglog.Sketch
	if err := s.UnmarshalBinary(v.dense[1:]); err != nil {
		return 0 // DecodeVisitors lets no such bytes in
	}
	return s.Estimate()
}

// Tags returns the tags of a set that is exact; nil of a sketch. It is not to be changed.
func (v *Visitors) Tags() []uint64 { return v.tags }

func (v *Visitors) clone() Visitors {
	return Visitors{tags: slices.Clone(v.tags), dense: slices.Clone(v.dense)}
}

func mergeTags(dst, a, b []uint64) []uint64 {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			dst, a = append(dst, a[0]), a[1:]
		case a[0] > b[0]:
			dst, b = append(dst, b[0]), b[1:]
		default:
			dst, a, b = append(dst, a[0]), a[1:], b[1:]
		}
	}
	return append(append(dst, a...), b...)
}

// emptySketch returns the stored form of a sketch without visitors. Writing the
// library's dense format ourselves lets a flush add a few tags to a stored sketch
// without building the library's objects around 16 KiB.
func emptySketch() []byte {
	b := make([]byte, sketchLength)
	b[0], b[1], b[2] = formSketch, 2, precision
	binary.BigEndian.PutUint32(b[5:], registers)
	return b
}

// observe adds tags to the registers of a stored sketch as the library's
// InsertHash does.
func observe(sketch []byte, tags []uint64) {
	regs := sketch[1+sketchHead:]
	for _, t := range tags {
		i := t >> (64 - precision)
		rho := uint8(bits.LeadingZeros64(t<<precision|1<<(precision-1))) + 1
		regs[i] = max(regs[i], rho)
	}
}

// Append appends the stored form; an empty set is no bytes.
func (v *Visitors) Append(dst []byte) []byte {
	if v.dense != nil {
		return append(dst, v.dense...)
	}
	if len(v.tags) == 0 {
		return dst
	}
	dst = append(dst, formExact)
	for _, t := range v.tags {
		dst = binary.LittleEndian.AppendUint64(dst, t)
	}
	return dst
}

// DecodeVisitors reads a stored form. The result shares no memory with b.
func DecodeVisitors(b []byte) (Visitors, error) {
	switch {
	case len(b) == 0:
		return Visitors{}, nil
	case b[0] == formExact && len(b)%8 == 1:
		v := Visitors{tags: make([]uint64, 0, len(b)/8)}
		for b = b[1:]; len(b) > 0; b = b[8:] {
			v.tags = append(v.tags, binary.LittleEndian.Uint64(b))
		}
		if !slices.IsSorted(v.tags) {
			return Visitors{}, errVisitors
		}
		return v, nil
	case b[0] == formSketch && len(b) == sketchLength:
		var s hyperloglog.Sketch
		if err := s.UnmarshalBinary(b[1:]); err != nil {
			return Visitors{}, fmt.Errorf("%w: %w", errVisitors, err)
		}
		return Visitors{dense: slices.Clone(b)}, nil
	}
	return Visitors{}, errVisitors
}

// MergeVisitors appends the stored form of the stored set with the delta added.
func MergeVisitors(dst, stored []byte, delta *Visitors) ([]byte, error) {
	switch {
	case len(stored) == 0:
		return delta.Append(dst), nil
	case len(stored) == sketchLength && stored[0] == formSketch && delta.dense == nil:
		at := len(dst)
		dst = append(dst, stored...)
		observe(dst[at:], delta.tags)
		return dst, nil
	}
	v, err := DecodeVisitors(stored)
	if err != nil {
		return nil, err
	}
	v.Merge(*delta)
	return v.Append(dst), nil
}
