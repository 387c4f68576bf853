package signals

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"curt/internal/abuse"
)

const (
	// known is how many links an account needs before another country is unlike its
	// history: the tenth tells little more than the ninth.
	known = 10
	// rareShare is which part of the links a country must have to belong to the history:
	// less than one in twenty is a journey, or somebody else.
	rareShare = 20
	// mostCountries bounds what is kept of one account. Beyond it the rarest goes.
	mostCountries = 8
	// forgetAt halves the counts, so that an account that moves is known where it is.
	forgetAt = 1000
)

// Origin is the signal Country: it remembers where the links of each key came from. Links
// without a key and without a country add nothing, in either direction. What it knows is
// in memory, bounded, and forgotten at a restart. It counts what it is asked about, but for
// changes and fallbacks.
type Origin struct {
	accounts *otter.Cache[string, *history]
}

// NewOrigin returns the signal, which knows no account yet.
func NewOrigin() (*Origin, error) {
	c, err := otter.New(&otter.Options[string, *history]{MaximumSize: remembered})
	if err != nil {
		return nil, fmt.Errorf("cache the countries of accounts: %w", err)
	}
	return &Origin{accounts: c}, nil
}

// Name implements abuse.Signal.
func (*Origin) Name() abuse.Name { return abuse.Country }

// Inspect implements abuse.Signal.
func (o *Origin) Inspect(_ context.Context, _ time.Time, f *abuse.Facts) ([]abuse.Finding, error) {
	if f.Creator == "" || len(f.Country) != 2 {
		return nil, nil
	}
	h, ok := o.accounts.GetIfPresent(f.Creator)
	if !ok {
		h, _ = o.accounts.ComputeIfAbsent(f.Creator, func() (*history, bool) { return &history{}, false })
	}
	code := [2]byte{f.Country[0], f.Country[1]}
	usual, unlike := h.observe(code, !f.Change && !f.Fallback)
	if !unlike {
		return nil, nil
	}
	return abuse.Found(abuse.Country, "from "+f.Country+", while this account's links come from "+string(usual[:])), nil
}

// history is where the links of one account came from.
type history struct {
	mu    sync.Mutex
	total int
	seen  [mostCountries]struct {
		code  [2]byte
		count int
	}
}

// look reports whether a country is unlike what was seen before, and which one was seen
// most; then it may count it.
func (h *history) observe(code [2]byte, count bool) (usual [2]byte, unlike bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	most, least, at := 0, 0, -1
	for i, s := range h.seen {
		if s.count > h.seen[most].count {
			most = i
		}
		if s.count < h.seen[least].count {
			least = i
		}
		if s.count > 0 && s.code == code {
			at = i
		}
	}
	usual = h.seen[most].code
	unlike = h.total >= known && (at < 0 || h.seen[at].count*rareShare < h.total)
	if !count {
		return usual, unlike
	}
	if at < 0 {
		at = least
		h.total -= h.seen[at].count
		h.seen[at].code, h.seen[at].count = code, 0
	}
	h.seen[at].count++
	h.total++
	if h.total >= forgetAt {
		h.total = 0
		for i := range h.seen {
			h.seen[i].count /= 2
			h.total += h.seen[i].count
		}
	}
	return usual, unlike
}
