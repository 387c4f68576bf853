package rollup

import (
	"encoding/binary"

	"curt/internal/clicks"
)

// Sums adds up the values of some dimensions over many rows. Packed rows are read
// without being unpacked: a year of a busy link has a hundred thousand values in rows,
// of which a few hundred differ.
type Sums struct {
	asked [clicks.NumDimensions]*valueSums
}

// valueSums are the sums of one dimension.
type valueSums struct {
	at   map[string]int // places in list
	list []Value
	next int // behind the value that came last
}

// NewSums returns empty sums of the dimensions that are asked for.
func NewSums(dimensions ...clicks.Dimension) *Sums {
	s := new(Sums)
	for _, d := range dimensions {
		s.asked[d] = &valueSums{at: make(map[string]int)}
	}
	return s
}

// Values returns the sums of a dimension, each value once, in no order. They are valid
// until the next Add.
func (s *Sums) Values(d clicks.Dimension) []Value {
	if s.asked[d] == nil {
		return nil
	}
	return s.asked[d].list
}

// Add adds a row.
func (s *Sums) Add(r *Rollup) {
	for d, sums := range s.asked {
		if sums == nil {
			continue
		}
		for _, v := range r.Dimensions[d] {
			i, known := sums.at[v.Value]
			if !known {
				i = sums.grow(v.Value)
			}
			sums.list[i].Clicks += v.Clicks
			sums.list[i].Humans += v.Humans
		}
	}
}

// AddPacked adds the packed dimensions of a row. After an error the sums are of no use.
func (s *Sums) AddPacked(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if b[0] != packedVersion {
		return errPacked
	}
	for b = b[1:]; len(b) > 0; {
		d := clicks.Dimension(b[0])
		n, size := binary.Uvarint(b[1:])
		if size <= 0 || d >= clicks.NumDimensions || n == 0 || n > uint64(len(b)-1-size) {
			return errPacked
		}
		b = b[1+size:]
		for sums := s.asked[d]; n > 0; n-- {
			name, rest, ok := cutBytes(b)
			if !ok {
				return errPacked
			}
			clicks, read := binary.Uvarint(rest)
			humans, more := binary.Uvarint(rest[max(0, read):])
			if read <= 0 || more <= 0 {
				return errPacked
			}
			b = rest[read+more:]
			if sums != nil {
				v := sums.value(name)
				v.Clicks += clicks
				v.Humans += humans
			}
		}
	}
	return nil
}

// value returns the sum of a value, which is new when it was not seen before. Rows are
// sorted and mostly hold the same values, so the next is looked for behind the last.
func (v *valueSums) value(name []byte) *Value {
	if v.next < len(v.list) && v.list[v.next].Value == string(name) {
		v.next++
		return &v.list[v.next-1]
	}
	i, known := v.at[string(name)]
	if !known {
		i = v.grow(string(name))
	}
	v.next = i + 1
	return &v.list[i]
}

// grow adds a value and returns its place.
func (v *valueSums) grow(name string) int {
	v.at[name] = len(v.list)
	v.list = append(v.list, Value{Value: name})
	return len(v.list) - 1
}
