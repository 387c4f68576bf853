package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"curt/internal/auth"
	"curt/internal/idempotency"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/shorten"
)

// Plans says how many links the callers of each plan may make. All limits of a plan
// hold at once; a plan without any is unlimited.
type Plans map[auth.Plan][]ratelimit.Limit

// DefaultPlans are the limits of an operator who sets none.
func DefaultPlans() Plans {
	const day = 24 * time.Hour
	return Plans{
		auth.PlanAnonymous:  {ratelimit.Per(10, time.Minute)},
		auth.PlanFree:       {ratelimit.Per(10, time.Minute), ratelimit.Per(100, time.Hour)},
		auth.PlanVerified:   {ratelimit.Per(100, time.Minute)},
		auth.PlanRegistered: {ratelimit.Per(10_000, day)},
		auth.PlanDefault:    nil,
	}
}

// With returns the plans with some of them replaced, as an operator writes it:
// "free=10/m+100/h,anonymous=off". Units are s, m, h and d. The error is one line
// that names what is wrong.
func (p Plans) With(text string) (Plans, error) {
	changed := maps.Clone(p)
	seen := map[auth.Plan]bool{}
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, limits, ok := strings.Cut(entry, "=")
		plan := auth.Plan(strings.TrimSpace(name))
		switch {
		case !ok:
			return nil, fmt.Errorf("%q: expected PLAN=LIMITS, such as free=10/m+100/h", entry)
		case !slices.Contains(auth.Plans(), plan):
			return nil, fmt.Errorf("unknown plan %q: expected one of %v", name, auth.Plans())
		case seen[plan]:
			return nil, fmt.Errorf("%q is set twice", plan)
		}
		seen[plan] = true
		var err error
		if changed[plan], err = parseLimits(strings.TrimSpace(limits)); err != nil {
			return nil, fmt.Errorf("%s: %w", plan, err)
		}
	}
	return changed, nil
}

func parseLimits(text string) ([]ratelimit.Limit, error) {
	if text == "off" {
		return nil, nil
	}
	var limits []ratelimit.Limit
	for entry := range strings.SplitSeq(text, "+") {
		l, err := ratelimit.Parse(strings.TrimSpace(entry))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(limits, func(o ratelimit.Limit) bool { return o.Period == l.Period }) {
			return nil, fmt.Errorf("%q: another limit has the same unit", entry)
		}
		limits = append(limits, l)
	}
	return limits, nil
}

// charge spends n creates of the caller's limits, all of them or none, in one
// question to the store. It returns the tightest verdict, nil when no limit applies,
// a LimitedError with the verdict that takes longest when one refuses, and an
// InvalidError for more than a limit ever allows at once, where waiting cannot help.
func (c *Creator) charge(ctx context.Context, now time.Time, who auth.Principal, n int) (*ratelimit.Verdict, error) {
	return c.spend(ctx, now, "create", who, n)
}

// ChargeReservation takes one reservation of an alias off the caller's limits: a workspace may make as many as
// links, and they take none of those.
func (c *Creator) ChargeReservation(ctx context.Context, now time.Time, who auth.Principal) (*ratelimit.Verdict, error) {
	return c.spend(ctx, now, "reserve", who, 1)
}

// spend spends n of the limits of a caller for one kind of request.
func (c *Creator) spend(ctx context.Context, now time.Time, kind string, who auth.Principal, n int) (*ratelimit.Verdict, error) {
	charges := c.charges(kind, who, n)
	if len(charges) == 0 {
		return nil, nil
	}
	most := slices.MinFunc(charges, func(a, b ratelimit.Charge) int { return a.Limit.Burst - b.Limit.Burst }).Limit.Burst
	if n > most {
		return nil, shorten.Invalid("links", "the limits of this key allow at most %d links per request", most)
	}
	verdicts, err := c.cfg.Limits.Spend(ctx, now, charges)
	if err != nil {
		return nil, fmt.Errorf("check the rate limit: %w", err)
	}
	tightest := &verdicts[0]
	for i := range verdicts {
		if v := &verdicts[i]; tighter(v, tightest) {
			tightest = v
		}
	}
	if !tightest.Allowed {
		return nil, &shorten.LimitedError{Verdict: *tightest}
	}
	return tightest, nil
}

// Afford refuses a caller whose limits allow no create now, with a LimitedError, and spends
// nothing: it is asked before a body is read, so that who may make nothing takes no memory for
// what he would. What the body says is charged by Create, which may still refuse it. A request
// with an idempotency key that was used before costs nothing, and is never refused here.
func (c *Creator) Afford(ctx context.Context, now time.Time, who auth.Principal, key string) error {
	charges := c.charges("create", who, 1)
	if len(charges) == 0 {
		return nil
	}
	verdicts, err := ratelimit.Peek(ctx, c.cfg.Limits, now, charges)
	if err != nil {
		return nil //nolint:nilerr // Create asks again, and says why it cannot be asked
	}
	refused := &verdicts[0]
	for i := range verdicts {
		if v := &verdicts[i]; tighter(v, refused) {
			refused = v
		}
	}
	if refused.Allowed {
		return nil
	}
	if key != "" && c.cfg.Once != nil && !who.IsAnonymous() {
		rec, err := c.cfg.Once.Find(ctx, idempotency.Name{Caller: who.KeyID, Key: key})
		again := err == nil && !rec.Created.Before(now.Add(-idempotency.Retention))
		if again || err != nil && !errors.Is(err, link.ErrNotFound) {
			return nil // Create asks again, and says why it cannot be asked
		}
	}
	return &shorten.LimitedError{Verdict: *refused}
}

// tighter reports whether a says more about what its caller may still do than b.
func tighter(a, b *ratelimit.Verdict) bool {
	switch {
	case a.Allowed != b.Allowed:
		return !a.Allowed
	case !a.Allowed:
		return a.RetryAfter > b.RetryAfter
	}
	return a.Remaining < b.Remaining
}

// Limits returns the plan of a caller and its limits of creates, which hold all at once;
// none = unlimited. They are not to be changed.
func (c *Creator) Limits(who auth.Principal) (auth.Plan, []ratelimit.Limit) {
	plan := cmp.Or(who.Plan, auth.PlanDefault)
	if who.IsAnonymous() {
		plan = auth.PlanAnonymous
	}
	limits, known := c.cfg.Plans[plan]
	if !known { // written by a newer release: not the time to be generous
		limits = c.cfg.Plans[auth.PlanFree]
	}
	return plan, limits
}

// charges names the buckets of a caller. A workspace shares its own among its keys;
// callers without a key have one for each network.
func (c *Creator) charges(kind string, who auth.Principal, n int) []ratelimit.Charge {
	_, limits := c.Limits(who)
	if len(limits) == 0 {
		return nil
	}
	bucket := kind + ":w:" + string(who.Workspace)
	if who.IsAnonymous() {
		bucket = kind + ":a:" + ratelimit.ClientBucket(who.Addr)
	}
	charges := make([]ratelimit.Charge, len(limits))
	for i, l := range limits {
		charges[i] = ratelimit.Charge{Bucket: bucket + "/" + l.Period.String(), Limit: l, Cost: n}
	}
	return charges
}
