package redirect

import (
	"context"

	"curt/internal/clicks"
	"curt/internal/link"
)

// Source finds targets. link.ErrNotFound is only ever the store's own word; any
// other error means that nobody could be asked, and is answered 503.
type Source interface {
	Lookup(ctx context.Context, k link.Key) (link.Target, error)
}

// Recorder takes clicks. The byte slices of the Raw are valid during the call
// only. Record never blocks and never allocates; kept is false when the click was
// dropped because the ring is full, which the Recorder itself counts.
type Recorder interface {
	Record(c *clicks.Raw) (kept bool)
}

// Pages writes the answers that people read. The package decides when one is due; what
// it looks like is another's (internal/web).
type Pages interface {
	// Page returns the whole page of a problem. The destination is "" but on the warning
	// page, and anybody may have chosen it: it is shown as text. Onward is where a link
	// on that page leads on, a path and query of this host; "" = it has none. No page
	// follows it by itself.
	Page(p Problem, status int, destination, onward string) ([]byte, error)
	// Policy is the Content-Security-Policy of every page.
	Policy() string
}
