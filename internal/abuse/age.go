package abuse

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/net/publicsuffix"
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
		return nil, fmt.Errorf("remember the ages of domains: %w", err)
	}
	return &Ages{missing: cfg.Missing, domains: c}, nil
}

// Learn says when a domain was registered, as somebody found out at now. The zero time of
// registration is an age that cannot be known, which is not asked for again for a day.
func (a *Ages) Learn(now time.Time, domain string, registered time.Time) {
	a.domains.Set(domain, age{registered, now})
	a.told.Store(true)
}

// Name implements Signal.
func (*Ages) Name() Name { return YoungDomain }

// Look implements Signal.
func (a *Ages) Look(_ context.Context, now time.Time, f *Facts) ([]Finding, error) {
	if a.missing == nil && !a.told.Load() {
		return nil, nil // nothing is known, and nobody asks
	}
	domain := registrable(strings.TrimSuffix(f.URL.Host(), "."))
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
	return one(YoungDomain, domain+" was registered on "+known.registered.UTC().Format(time.DateOnly)), nil
}

// registrable returns the part of a name that somebody registered: one label more than
// the public suffix; "" for a public suffix itself, and for an address.
func registrable(host string) string {
	if isAddress(host) {
		return ""
	}
	suffix, _ := publicsuffix.PublicSuffix(host)
	if len(host) <= len(suffix) {
		return ""
	}
	rest := host[:len(host)-len(suffix)-1]
	return host[strings.LastIndexByte(rest, '.')+1:]
}
