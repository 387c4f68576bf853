package clicks

import (
	"cmp"
	"slices"
	"strings"
)

// summer builds roll-ups from clicks. Its buffers are used again by the next
// chunk, so a flush of 100,000 links allocates for one chunk only. Owned by one
// goroutine.
type summer struct {
	numbers []uint64 // of one dimension: number << 1 | human
	values  []Value  // of all roll-ups of a chunk
	tags    []uint64
	minutes []Minute
	rollups []Rollup
	deltas  []BucketDelta
}

// reset makes everything that sum returned invalid.
func (s *summer) reset() {
	s.values, s.tags, s.minutes, s.rollups = s.values[:0], s.tags[:0], s.minutes[:0], s.rollups[:0]
	s.deltas = s.deltas[:0]
}

// buckets returns room for a quarter and its day, which is what most links need.
func (s *summer) buckets() []BucketDelta {
	n := len(s.deltas)
	s.deltas = append(s.deltas, BucketDelta{}, BucketDelta{})
	return s.deltas[n : n : n+2]
}

// sum returns the roll-up of the clicks without Counts, valid until reset.
func (s *summer) sum(a *aggregate, clicks []click) *Rollup {
	s.rollups = append(s.rollups, Rollup{})
	r := &s.rollups[len(s.rollups)-1]
	r.Minutes = s.sumMinutes(clicks)
	for d := range Dimension(NumDimensions) {
		r.Dimensions[d] = s.sumDimension(a, d, clicks)
	}
	begin := len(s.tags)
	for i := range clicks {
		if clicks[i].flags&byHuman != 0 {
			s.tags = append(s.tags, clicks[i].visitor)
		}
	}
	end := len(s.tags)
	r.Visitors.Add(s.tags[begin:end:end])
	return r
}

func (s *summer) sumMinutes(clicks []click) []Minute {
	var count, humans [minutesPerQuarter]uint64
	for i := range clicks {
		count[clicks[i].minute]++
		if clicks[i].flags&byHuman != 0 {
			humans[clicks[i].minute]++
		}
	}
	begin := len(s.minutes)
	for i := range count {
		if count[i] > 0 {
			s.minutes = append(s.minutes, Minute{uint8(i), count[i], humans[i]})
		}
	}
	return s.minutes[begin:len(s.minutes):len(s.minutes)]
}

// sumDimension counts the values of one dimension. Clicks without a value are not
// counted, but for the dimensions that every click has.
func (s *summer) sumDimension(a *aggregate, d Dimension, clicks []click) []Value {
	s.numbers = s.numbers[:0]
	for i := range clicks {
		c := &clicks[i]
		n := a.number(d, c)
		if n == 0 && optional(d) {
			continue
		}
		n <<= 1
		n |= uint64(c.flags & byHuman)
		s.numbers = append(s.numbers, n)
	}
	if len(s.numbers) == 0 {
		return nil
	}
	slices.Sort(s.numbers)
	begin := len(s.values)
	last := ^uint64(0)
	for _, n := range s.numbers {
		if n>>1 != last {
			last = n >> 1
			s.values = append(s.values, Value{Value: a.valueName(d, last)})
		}
		v := &s.values[len(s.values)-1]
		v.Clicks++
		v.Humans += n & 1
	}
	values := s.values[begin:len(s.values):len(s.values)]
	if len(values) > 1 {
		slices.SortFunc(values, func(x, y Value) int { return strings.Compare(x.Value, y.Value) })
	}
	return values
}

// optional reports whether clicks without a value of d are left out of it.
func optional(d Dimension) bool {
	switch d {
	case ReferrerHost, Device, Browser, OS, Trigger:
		return false
	default:
		return true
	}
}

// number returns the value of a dimension as a number; 0 = none.
func (a *aggregate) number(d Dimension, c *click) uint64 {
	switch d {
	case Country:
		return uint64(c.country[0])<<8 | uint64(c.country[1])
	case ReferrerHost:
		return uint64(c.referrer)
	case Device:
		return uint64(c.device)
	case Browser:
		return uint64(c.browser)
	case OS:
		return uint64(c.os)
	case Language:
		return uint64(c.language)
	case Trigger:
		return uint64(c.flags&(byQR|byWarning)) >> 1
	default:
		return uint64(a.extraIDs[c.extra].number(d))
	}
}

// number returns a rare dimension's value as a number; the zero extra has none.
func (x *extra) number(d Dimension) uint32 {
	switch d {
	case City:
		return x.city
	case Network:
		return x.network
	default:
		return x.utm[d-UTMSource]
	}
}

// valueName returns the name of a number that number returned.
func (a *aggregate) valueName(d Dimension, n uint64) string {
	switch d {
	case Country:
		return string([]byte{byte(n >> 8), byte(n)})
	case Device:
		return a.names.device[n]
	case Browser:
		return a.names.browser[n]
	case OS:
		return a.names.os[n]
	case Language:
		return languageName(uint16(n))
	case Trigger:
		return [...]string{TriggerLink, TriggerQR, TriggerWarning}[n]
	case ReferrerHost:
		return cmp.Or(a.texts.text(uint32(n)), Direct)
	default:
		return a.texts.text(uint32(n))
	}
}
