package redirect

import (
	"context"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"curt/internal/link"
	"curt/internal/ratelimit"
)

// Budget bounds how many unknown codes one network may ask for: who tries codes finds
// his answers turn to 429. A known code never does, because nobody can tell a scanner
// from the other visitors of his network; therefore the code is looked up first, and
// a hit pays nothing for the budget. It is safe for many goroutines.
type Budget struct {
	store   ratelimit.Store
	limit   ratelimit.Limit
	refused atomic.Uint64
}

// NewBudget returns a budget of the limit for each IPv4 address and each IPv6 /64.
func NewBudget(store ratelimit.Store, limit ratelimit.Limit) *Budget {
	return &Budget{store: store, limit: limit}
}

// Refused returns how many answers were 429.
func (b *Budget) Refused() uint64 { return b.refused.Load() }

// Metered reports whether the answer to a request for code costs its network
// something: only what could be a code and is none. Browsers ask for /favicon.ico by
// themselves.
func (h *Handler) Metered(out Outcome, code link.Code) bool {
	return h.budget != nil && out.Problem == NotFound && link.ValidCode(code)
}

// Meter charges a Metered answer to the client's network and returns it, or the 429 in
// its place, which counts as no click. A store that cannot be asked refuses nobody.
func (h *Handler) Meter(ctx context.Context, out Outcome, client netip.Addr) Outcome {
	v, err := h.budget.store.Spend(ctx, time.Now(), []ratelimit.Charge{
		{Bucket: "unknown:" + ratelimit.ClientBucket(client), Limit: h.budget.limit, Cost: 1},
	})
	if err != nil || v[0].Allowed {
		return out
	}
	h.budget.refused.Add(1)
	return Outcome{
		Status: http.StatusTooManyRequests, Problem: TooMany, CacheControl: noStore, NoIndex: true, HTML: out.HTML,
		RetryAfter: max(1, int((v[0].RetryAfter+time.Second-1)/time.Second)),
	}
}
