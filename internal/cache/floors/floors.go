// Package floors keeps, for a while after a change, the version below which a key must not be answered.
package floors

import "curt/internal/link"

// Floors are the versions below which keys must not be answered, for as long as a
// replica may still hold less. All floors last equally long, so they end in the
// order in which they began, and Raise itself clears away the old ones.
type Floors struct {
	byKey map[link.Key]floor
	order []expiring
}

type floor struct {
	version link.Version
	until   int64
}

type expiring struct {
	key   link.Key
	until int64
}

// Raise sets the floor of k to at least v until the given time.
func (f *Floors) Raise(k link.Key, v link.Version, now, until int64) {
	f.clear(now)
	if f.byKey == nil {
		f.byKey = map[link.Key]floor{}
	}
	f.byKey[k] = floor{version: max(v, f.byKey[k].version), until: until}
	f.order = append(f.order, expiring{k, until})
}

// Of returns the floor of k; 0 = none.
func (f *Floors) Of(k link.Key, now int64) link.Version {
	if e, ok := f.byKey[k]; ok && now < e.until {
		return e.version
	}
	return 0
}

// clear drops what ended before now.
func (f *Floors) clear(now int64) {
	n := 0
	for n < len(f.order) && f.order[n].until <= now {
		// A key that was raised again since has a later end, and a later place.
		if k := f.order[n].key; f.byKey[k].until <= now {
			delete(f.byKey, k)
		}
		n++
	}
	if n == len(f.order) {
		f.order = nil
	} else {
		f.order = f.order[n:]
	}
}
