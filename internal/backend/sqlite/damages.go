package sqlite

import (
	"errors"
	"sync"

	"curt/internal/link"
)

// mostDamages bounds what is remembered: beyond it the file is damaged rather than a link.
const mostDamages = 1000

// damages are the links that were found damaged since the start, each once. A link that was
// discarded is none of them any more.
type damages struct {
	mu    sync.Mutex
	found map[string]error // guarded by mu; by what names the link for people
}

// met notes an error, if it is one of a damaged link. k is the key that was asked for; zero =
// the error names the link.
func (d *damages) met(k link.Key, err error) {
	of, is := errors.AsType[*link.DamagedError](err)
	if !is && !errors.Is(err, ErrCorrupt) {
		return
	}
	if is && k == (link.Key{}) {
		k = of.Key
	}
	name := k.String()
	if k == (link.Key{}) {
		name = err.Error()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found == nil {
		d.found = map[string]error{}
	}
	if _, known := d.found[name]; known || len(d.found) < mostDamages {
		d.found[name] = err
	}
}

// gone forgets a link that is damaged no more.
func (d *damages) gone(k link.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.found, k.String())
}

// Damaged returns how many links were found damaged since the start, up to 1,000, and names
// one of them for people. It does no I/O.
func (s *Links) Damaged() (n int, example string) {
	s.damages.mu.Lock()
	defer s.damages.mu.Unlock()
	for name := range s.damages.found {
		if example == "" || name < example {
			example = name
		}
	}
	return len(s.damages.found), example
}
