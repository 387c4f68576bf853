package clicks

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
)

// The packed forms of a row's minutes and dimensions, used by every store that has
// no columns for them. Both begin with a version; no bytes at all mean nothing.
//
//	minutes     1, then per minute: index, clicks, humans
//	dimensions  1, then per dimension: number, how many values, then per value:
//	            length and bytes, clicks, humans; by number and by value
//
// Numbers are uvarints. Because both are sorted, a delta is merged into a stored
// form in one walk.
const packedVersion = 1

var errPacked = errors.New("packed roll-up is damaged or of a later version")

// packed reads a packed form; bad stays set after the first thing that does not fit.
type packed struct {
	b   []byte
	bad bool
}

func openPacked(b []byte) packed {
	if len(b) == 0 {
		return packed{}
	}
	return packed{b: b[1:], bad: b[0] != packedVersion}
}

func (p *packed) more() bool { return len(p.b) > 0 && !p.bad }

func (p *packed) number() uint64 {
	n, size := binary.Uvarint(p.b)
	if size <= 0 {
		p.bad = true
		return 0
	}
	p.b = p.b[size:]
	return n
}

func (p *packed) bytes() []byte {
	field, rest, err := nextBytes(p.b)
	if err != nil {
		p.bad = true
		return nil
	}
	p.b = rest
	return field
}

func (p *packed) err() error {
	if p.bad {
		return errPacked
	}
	return nil
}

// MergeMinutes appends the packed minutes of stored with the delta added.
func MergeMinutes(dst, stored []byte, delta []Minute) ([]byte, error) {
	var room [minutesPerQuarter]Minute
	minutes, err := appendMinutes(room[:0], stored)
	if err != nil {
		return nil, err
	}
	minutes = addMinutes(minutes, delta)
	if len(minutes) == 0 {
		return dst, nil
	}
	dst = append(dst, packedVersion)
	for _, m := range minutes {
		dst = append(dst, m.Index)
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, m.Clicks), m.Humans)
	}
	return dst, nil
}

// DecodeMinutes reads packed minutes.
func DecodeMinutes(b []byte) ([]Minute, error) {
	if len(b) == 0 {
		return nil, nil
	}
	return appendMinutes(make([]Minute, 0, minutesPerQuarter), b)
}

const minutesPerQuarter = 15

// appendMinutes reads packed minutes to the end of minutes, which is empty.
func appendMinutes(minutes []Minute, b []byte) ([]Minute, error) {
	if len(b) == 0 {
		return minutes, nil
	}
	p := openPacked(b)
	for p.more() {
		m := Minute{Index: p.b[0]}
		p.b = p.b[1:]
		m.Clicks, m.Humans = p.number(), p.number()
		p.bad = p.bad || m.Index > 14 || len(minutes) > 0 && minutes[len(minutes)-1].Index >= m.Index
		minutes = append(minutes, m)
	}
	return minutes, p.err()
}

// addMinutes adds b to a; both are sorted, and so is the result.
func addMinutes(a, b []Minute) []Minute {
	for _, m := range b {
		i, found := slices.BinarySearchFunc(a, m, func(x, y Minute) int { return cmp.Compare(x.Index, y.Index) })
		if !found {
			a = slices.Insert(a, i, Minute{Index: m.Index})
		}
		a[i].Clicks += m.Clicks
		a[i].Humans += m.Humans
	}
	return a
}

// MergeDimensions appends the packed dimensions of stored with the delta added. A
// dimension that then has more than MaxValues keeps the most clicked of them.
func MergeDimensions(dst, stored []byte, delta *[NumDimensions][]Value) ([]byte, error) {
	begin := len(dst)
	dst = append(dst, packedVersion)
	p := openPacked(stored)
	next, count := nextDimension(&p)
	for d := range Dimension(NumDimensions) {
		have := 0
		if next == d {
			have = count
		}
		if have == 0 && len(delta[d]) == 0 {
			continue
		}
		if have+len(delta[d]) > MaxValues {
			dst = appendLimited(dst, d, &p, have, delta[d])
		} else {
			dst = appendMerged(dst, d, &p, have, delta[d])
		}
		if next == d {
			next, count = nextDimension(&p)
		}
	}
	if err := p.err(); err != nil || next != NumDimensions {
		return nil, errPacked
	}
	if len(dst) == begin+1 {
		return dst[:begin], nil
	}
	return dst, nil
}

// nextDimension reads the head of a dimension; NumDimensions at the end.
func nextDimension(p *packed) (Dimension, int) {
	if !p.more() {
		return NumDimensions, 0
	}
	d, n := Dimension(p.b[0]), uint64(0)
	p.b = p.b[1:]
	n = p.number()
	if p.bad || d >= NumDimensions || n == 0 || n > uint64(len(p.b)) {
		p.bad = true
		return NumDimensions, 0
	}
	return d, int(n)
}

func (p *packed) value() (name []byte, clicks, humans uint64) {
	return p.bytes(), p.number(), p.number()
}

// appendMerged merges n packed values with the delta when the sum cannot pass
// MaxValues. How many there are is known only at the end; the count is written
// in two bytes, which hold every count up to MaxValues.
func appendMerged(dst []byte, d Dimension, p *packed, n int, delta []Value) []byte {
	dst = append(dst, byte(d), 0, 0)
	countAt, written := len(dst)-2, 0
	for ; n > 0 && !p.bad; n-- {
		name, clicks, humans := p.value()
		for len(delta) > 0 && delta[0].Value < string(name) {
			dst = appendValue(dst, delta[0].Value, delta[0].Clicks, delta[0].Humans)
			delta = delta[1:]
			written++
		}
		if len(delta) > 0 && delta[0].Value == string(name) {
			clicks, humans = clicks+delta[0].Clicks, humans+delta[0].Humans
			delta = delta[1:]
		}
		dst = appendValue(dst, name, clicks, humans)
		written++
	}
	for _, v := range delta {
		dst = appendValue(dst, v.Value, v.Clicks, v.Humans)
		written++
	}
	dst[countAt], dst[countAt+1] = byte(written)|0x80, byte(written>>7) // a uvarint, not the shortest
	return dst
}

func appendValue[T ~string | ~[]byte](dst []byte, name T, clicks, humans uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(appendBytes(dst, name), clicks), humans)
}

// appendLimited is appendMerged for a dimension that may overflow.
func appendLimited(dst []byte, d Dimension, p *packed, n int, delta []Value) []byte {
	values := LimitValues(addValues(p.values(n), delta), MaxValues)
	dst = append(dst, byte(d))
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	for _, v := range values {
		dst = appendValue(dst, v.Value, v.Clicks, v.Humans)
	}
	return dst
}

func (p *packed) values(n int) []Value {
	values := make([]Value, 0, min(n, MaxValues+1))
	for ; n > 0 && !p.bad; n-- {
		name, clicks, humans := p.value()
		values = append(values, Value{string(name), clicks, humans})
	}
	return values
}

// addValues adds b to a; both are sorted by value, and so is the result.
func addValues(a, b []Value) []Value {
	if len(a) == 0 {
		return slices.Clone(b)
	}
	sum := make([]Value, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := strings.Compare(a[0].Value, b[0].Value); {
		case c < 0:
			sum, a = append(sum, a[0]), a[1:]
		case c > 0:
			sum, b = append(sum, b[0]), b[1:]
		default:
			sum = append(sum, Value{a[0].Value, a[0].Clicks + b[0].Clicks, a[0].Humans + b[0].Humans})
			a, b = a[1:], b[1:]
		}
	}
	return append(append(sum, a...), b...)
}

// LimitValues keeps the most clicked values and sums the rest up as Other, so that
// at most limit + 1 are left, sorted by value. Equal clicks are decided by value.
func LimitValues(values []Value, limit int) []Value {
	rest := Value{Value: Other}
	if i, found := slices.BinarySearchFunc(values, Other, byValue); found {
		rest = values[i]
		values = slices.Delete(values, i, i+1)
	}
	if len(values) > limit {
		slices.SortFunc(values, func(a, b Value) int {
			return cmp.Or(cmp.Compare(b.Clicks, a.Clicks), strings.Compare(a.Value, b.Value))
		})
		for _, v := range values[limit:] {
			rest.Clicks += v.Clicks
			rest.Humans += v.Humans
		}
		values = values[:limit]
		slices.SortFunc(values, func(a, b Value) int { return strings.Compare(a.Value, b.Value) })
	}
	if rest.Clicks > 0 {
		i, _ := slices.BinarySearchFunc(values, Other, byValue)
		values = slices.Insert(values, i, rest)
	}
	return values
}

func byValue(v Value, name string) int { return strings.Compare(v.Value, name) }

// DecodeDimensions reads packed dimensions.
func DecodeDimensions(b []byte) (dims [NumDimensions][]Value, err error) {
	p := openPacked(b)
	for p.more() {
		d, n := nextDimension(&p)
		if p.bad {
			break
		}
		dims[d] = p.values(n)
	}
	return dims, p.err()
}

// Add adds o to r. Neither minutes nor values of o are changed.
func (r *Rollup) Add(o *Rollup) {
	r.Counts.Add(o.Counts)
	r.Minutes = addMinutes(r.Minutes, o.Minutes)
	for d := range r.Dimensions {
		if len(o.Dimensions[d]) > 0 {
			r.Dimensions[d] = addValues(r.Dimensions[d], o.Dimensions[d])
		}
	}
	r.Visitors.Merge(o.Visitors)
}
