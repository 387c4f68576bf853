package rollup

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/axiomhq/hyperloglog"

	"curt/internal/clicks"
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
	field, rest, ok := cutBytes(p.b)
	if !ok {
		p.bad = true
		return nil
	}
	p.b = rest
	return field
}

// cutBytes reads a field after its length.
func cutBytes(b []byte) (field, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	end := n + int(size)
	return b[n:end:end], b[end:], true
}

func (p *packed) err() error {
	if p.bad {
		return errPacked
	}
	return nil
}

// MergeMinutes appends the packed minutes of stored with the delta added.
func MergeMinutes(dst, stored []byte, delta []Minute) ([]byte, error) {
	var room [MinutesPerQuarter]Minute
	minutes, err := appendMinutes(room[:0], stored)
	if err != nil {
		return nil, err
	}
	minutes = addMinutes(minutes, delta)
	if len(minutes) == 0 {
		return dst, nil
	}
	return packMinutes(append(dst, packedVersion), minutes), nil
}

func packMinutes(dst []byte, minutes []Minute) []byte {
	for _, m := range minutes {
		dst = binary.AppendUvarint(binary.AppendUvarint(append(dst, m.Index), m.Clicks), m.Humans)
	}
	return dst
}

// DecodeMinutes reads packed minutes.
func DecodeMinutes(b []byte) ([]Minute, error) {
	if len(b) == 0 {
		return nil, nil
	}
	return appendMinutes(make([]Minute, 0, MinutesPerQuarter), b)
}

// MinutesPerQuarter is how many Minutes a Quarter has at most.
const MinutesPerQuarter = 15

// appendMinutes reads packed minutes to the end of minutes, which is empty.
func appendMinutes(minutes []Minute, b []byte) ([]Minute, error) {
	if len(b) == 0 {
		return minutes, nil
	}
	p := openPacked(b)
	minutes = p.minutes(minutes, MinutesPerQuarter)
	return minutes, p.err()
}

// minutes reads what packMinutes wrote, whose indexes are below limit, to the end of dst, which is empty.
func (p *packed) minutes(dst []Minute, limit uint8) []Minute {
	for p.more() {
		m := Minute{Index: p.b[0]}
		p.b = p.b[1:]
		m.Clicks, m.Humans = p.number(), p.number()
		p.bad = p.bad || m.Index >= limit || len(dst) > 0 && dst[len(dst)-1].Index >= m.Index
		dst = append(dst, m)
	}
	return dst
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
func MergeDimensions(dst, stored []byte, delta *[clicks.NumDimensions][]Value) ([]byte, error) {
	begin := len(dst)
	dst = append(dst, packedVersion)
	p := openPacked(stored)
	next, count := nextDimension(&p)
	for d := range clicks.Dimension(clicks.NumDimensions) {
		have := 0
		if next == d {
			have = count
		}
		if have == 0 && len(delta[d]) == 0 {
			continue
		}
		if have+len(delta[d]) > clicks.MaxValues {
			dst = appendLimited(dst, d, &p, have, delta[d])
		} else {
			dst = appendMerged(dst, d, &p, have, delta[d])
		}
		if next == d {
			next, count = nextDimension(&p)
		}
	}
	if err := p.err(); err != nil || next != clicks.NumDimensions {
		return nil, errPacked
	}
	if len(dst) == begin+1 {
		return dst[:begin], nil
	}
	return dst, nil
}

// nextDimension reads the head of a dimension; NumDimensions at the end.
func nextDimension(p *packed) (clicks.Dimension, int) {
	if !p.more() {
		return clicks.NumDimensions, 0
	}
	d, n := clicks.Dimension(p.b[0]), uint64(0)
	p.b = p.b[1:]
	n = p.number()
	if p.bad || d >= clicks.NumDimensions || n == 0 || n > uint64(len(p.b)) {
		p.bad = true
		return clicks.NumDimensions, 0
	}
	return d, int(n)
}

func (p *packed) value() (name []byte, clicks, humans uint64) {
	return p.bytes(), p.number(), p.number()
}

// appendMerged merges n packed values with the delta when the sum cannot pass
// MaxValues. How many there are is known only at the end; the count is written
// in two bytes, which hold every count up to MaxValues.
func appendMerged(dst []byte, d clicks.Dimension, p *packed, n int, delta []Value) []byte {
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
	dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
	return binary.AppendUvarint(binary.AppendUvarint(dst, clicks), humans)
}

// appendLimited is appendMerged for a dimension that may overflow.
func appendLimited(dst []byte, d clicks.Dimension, p *packed, n int, delta []Value) []byte {
	values := LimitValues(addValues(p.values(n), delta), clicks.MaxValues)
	dst = append(dst, byte(d))
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	for _, v := range values {
		dst = appendValue(dst, v.Value, v.Clicks, v.Humans)
	}
	return dst
}

func (p *packed) values(n int) []Value {
	values := make([]Value, 0, min(n, clicks.MaxValues+1))
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
	rest := Value{Value: clicks.Other}
	if i, found := slices.BinarySearchFunc(values, clicks.Other, byValue); found {
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
		i, _ := slices.BinarySearchFunc(values, clicks.Other, byValue)
		values = slices.Insert(values, i, rest)
	}
	return values
}

func byValue(v Value, name string) int { return strings.Compare(v.Value, name) }

// DecodeDimensions reads packed dimensions.
func DecodeDimensions(b []byte) (dims [clicks.NumDimensions][]Value, err error) {
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
	return packMinutes(dst, addMinutes(quarters, delta)), nil
}

// DecodeDay reads a packed digest; nil for a row that has none.
func DecodeDay(b []byte) (*DayDigest, error) {
	if len(b) == 0 {
		return nil, nil //nolint:nilnil // rows of earlier versions have none
	}
	p := packed{b: b[1:], bad: b[0] != digestVersion}
	d := &DayDigest{Visitors: p.number()}
	d.Quarters = p.minutes(make([]Minute, 0, min(len(p.b)/3, quartersPerDay)), quartersPerDay)
	return d, p.err()
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
