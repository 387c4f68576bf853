package issued

import "curt/internal/link"

// Filter is the set of codes behind Codes, for its tests.
type Filter = filter

// NewFilter returns an empty filter.
func NewFilter() *Filter { return newFilter() }

// Put adds a code.
func (f *filter) Put(code string) { f.add(link.Code(code)) }

// Has reports whether the code may be in the filter.
func (f *filter) Has(code string) bool { return f.has(link.Code(code)) }

// Bytes returns the size of the tables in bytes.
func (f *filter) Bytes() (n int) {
	for i := range f.shards {
		n += 4 * len(f.shards[i].slots)
	}
	return n
}
