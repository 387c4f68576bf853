package redirect

import (
	"curt/internal/link"
	"curt/internal/weburl"
)

// NewLoopGuard returns what cache.Config.Admit wants: it marks a target whose
// destination is a host of ours, and takes away a fallback that is. Our hosts do not
// change while we run, so it is asked when a target enters L1 and never by a hit.
func NewLoopGuard(own *weburl.Hosts) func(link.Target) link.Target {
	leadsHome := func(url string) bool {
		u, err := weburl.Parse(url)
		return err == nil && own.Refuses(u) // what is no URL is refused as such
	}
	return func(t link.Target) link.Target {
		t.Loops = leadsHome(t.Destination)
		if t.Fallback != "" && leadsHome(t.Fallback) {
			t.Fallback = ""
		}
		return t
	}
}
