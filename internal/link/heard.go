package link

import "sync"

// mostHeard bounds the keys that wait in a Heard.
const mostHeard = 10_000

// ChangedSet are links that changed since somebody looked what they are: they may belong to another
// workspace by now. Whoever adds to it need not know who takes, and never waits. The zero value
// is ready to use.
type ChangedSet struct {
	mu   sync.Mutex
	keys []Key // guarded by mu, as is all
	all  bool
}

// Add notes changed links; none = nobody knows which.
func (h *ChangedSet) Add(keys ...Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys = append(h.keys, keys...); len(keys) == 0 || len(h.keys) > mostHeard {
		h.keys, h.all = nil, true
	}
}

// Take returns what was added since the last Take; all = any link may have changed.
func (h *ChangedSet) Take() (keys []Key, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys, all = h.keys, h.all
	h.keys, h.all = nil, false
	return keys, all
}
