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

// Budget bounds how many unknown codes one network may request: a scanner gets 429 instead of 404.
// A known code is always answered, because a scanner cannot be distinguished
// from the other visitors of its network; therefore the code is looked up first, and
// a hit costs nothing of the budget. It is safe for many goroutines.
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
// its place, which is not a click. If the store is unavailable, nothing is refused.
func (h *Handler) Meter(ctx context.Context, out Outcome, client netip.Addr) Outcome {
	wait, allowed := h.budget.Spend(ctx, time.Now(), client)
	if allowed {
		return out
	}
	return Outcome{
		Status: http.StatusTooManyRequests, Problem: TooMany, CacheControl: noStore, NoIndex: true, HTML: out.HTML,
		RetryAfter: seconds(wait),
	}
}

// Spend charges an unknown code to the client's network, or returns when it may request the
// next. A nil Budget allows everything.
func (b *Budget) Spend(ctx context.Context, now time.Time, client netip.Addr) (wait time.Duration, allowed bool) {
	if b == nil {
		return 0, true
	}
	return b.answer(b.store.Spend(ctx, now, b.charge(client)))
}

// Peek is Spend without a charge: for answers that would distinguish a known code from the 429 of
// an unknown one.
func (b *Budget) Peek(ctx context.Context, now time.Time, client netip.Addr) (wait time.Duration, allowed bool) {
	if b == nil {
		return 0, true
	}
	return b.answer(ratelimit.Peek(ctx, b.store, now, b.charge(client)))
}

func (b *Budget) charge(client netip.Addr) []ratelimit.Charge {
	return []ratelimit.Charge{{Bucket: "unknown:" + ratelimit.ClientBucket(client), Limit: b.limit, Cost: 1}}
}

func (b *Budget) answer(v []ratelimit.Verdict, err error) (wait time.Duration, allowed bool) {
	if err != nil || v[0].Allowed {
		return 0, true
	}
	b.refused.Add(1)
	return v[0].RetryAfter, false
}
