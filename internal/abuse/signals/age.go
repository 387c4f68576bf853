package signals

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"curt/internal/abuse"
)

const (
	// young is how old a registered domain must be to add nothing (the fourth article
	// behind the design, "Deep Dive 4").
	young = 7 * 24 * time.Hour
	// believed is how long an age is used: a domain that ended can be registered again.
	believed = 24 * time.Hour
	// maxAges bounds the domains whose age is known, some 150 bytes each.
	maxAges = 100_000
)

// AgesConfig says who is told that an age would be of use.
type AgesConfig struct {
	// Missing is called with a registrable domain, as A-labels, whose age is not known.
	// It must not wait and may be called often for one domain; whoever finds out tells
	// Learn. nil = nobody.
	Missing func(domain string)
}

// Ages is the signal YoungDomain. It knows what it was told by Learn, and finds nothing
// else: to ask a registry takes longer than a create may.
type Ages struct {
	missing func(string)
	domains *otter.Cache[string, age]
	told    atomic.Bool // Learn was called
}

// age is when a domain was registered, and when that was learned.
type age struct{ registered, learned time.Time }

// NewAges returns the signal, which knows no age yet.
func NewAges(cfg AgesConfig) (*Ages, error) {
	c, err := otter.New(&otter.Options[string, age]{MaximumSize: maxAges})
	if err != nil {
		return nil, fmt.Errorf("cache the ages of domains: %w", err)
	}
	return &Ages{missing: cfg.Missing, domains: c}, nil
}

// Learn says when a domain was registered, as somebody found out at now. The zero time of
// registration is an age that cannot be known, which is not asked for again for a day.
func (a *Ages) Learn(now time.Time, domain string, registered time.Time) {
	a.domains.Set(domain, age{registered, now})
	a.told.Store(true)
}

// Name implements abuse.Signal.
func (*Ages) Name() abuse.Name { return abuse.YoungDomain }

// Inspect implements abuse.Signal.
func (a *Ages) Inspect(_ context.Context, now time.Time, f *abuse.Facts) ([]abuse.Finding, error) {
	if a.missing == nil && !a.told.Load() {
		return nil, nil // nothing is known, and nobody asks
	}
	domain := abuse.Registrable(strings.TrimSuffix(f.URL.Host(), "."))
	if domain == "" {
		return nil, nil
	}
	known, ok := a.domains.GetIfPresent(domain)
	if !ok || now.Sub(known.learned) >= believed {
		if a.missing != nil {
			a.missing(domain)
		}
		return nil, nil
	}
	if known.registered.IsZero() || now.Sub(known.registered) >= young {
		return nil, nil
	}
	return abuse.Found(abuse.YoungDomain, domain+" was registered on "+known.registered.UTC().Format(time.DateOnly)), nil
}
