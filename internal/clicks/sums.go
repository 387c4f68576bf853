package clicks

// Sums adds up the values of some dimensions over many rows. Packed rows are read
// without being unpacked: a year of a busy link has a hundred thousand values in rows,
// of which a few hundred differ.
type Sums struct {
	asked [NumDimensions]*valueSums
}

// valueSums are the sums of one dimension.
type valueSums struct {
	at   map[string]int
	list []Value
}

// NewSums returns empty sums of the dimensions that are asked for.
func NewSums(dimensions ...Dimension) *Sums {
	s := new(Sums)
	for _, d := range dimensions {
		s.asked[d] = &valueSums{at: make(map[string]int, MaxValues)}
	}
	return s
}

// Values returns the sums of a dimension, each value once, in no order. They are valid
// until the next Add.
func (s *Sums) Values(d Dimension) []Value {
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
	p := openPacked(b)
	for p.more() {
		d, n := nextDimension(&p)
		if p.bad {
			break
		}
		for sums := s.asked[d]; n > 0 && !p.bad; n-- {
			name, clicks, humans := p.value()
			if sums == nil {
				continue
			}
			i, known := sums.at[string(name)]
			if !known {
				i = sums.grow(string(name))
			}
			sums.list[i].Clicks += clicks
			sums.list[i].Humans += humans
		}
	}
	return p.err()
}

// grow adds a value and returns its place.
func (v *valueSums) grow(name string) int {
	v.at[name] = len(v.list)
	v.list = append(v.list, Value{Value: name})
	return len(v.list) - 1
}
