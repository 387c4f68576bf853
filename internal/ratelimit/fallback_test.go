package ratelimit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"curt/internal/ratelimit"
	"curt/internal/ratelimit/ratelimittest"
)

// away is a Store that nobody can ask once it is set.
type away struct {
	ratelimit.Store
	err error
}

func (a *away) Spend(ctx context.Context, now time.Time, charges []ratelimit.Charge) ([]ratelimit.Verdict, error) {
	if a.err != nil {
		return nil, a.err
	}
	return a.Store.Spend(ctx, now, charges)
}

func TestFallbackKeepsTheContract(t *testing.T) {
	for name, err := range map[string]error{"there": nil, "away": errors.New("away")} {
		t.Run(name, func(t *testing.T) {
			ratelimittest.Run(t, func(*testing.T) ratelimit.Store {
				return ratelimit.NewFallback(&away{ratelimit.NewMemory(), err}, ratelimit.NewMemory())
			})
		})
	}
}

// TestAProcessAloneNeverAllowsMore: whatever becomes of what is shared, one process allows
// a burst and what comes back, and two of them not more than twice that.
func TestAProcessAloneNeverAllowsMore(t *testing.T) {
	charge := []ratelimit.Charge{{Bucket: "a", Limit: ratelimit.Per(10, time.Hour), Cost: 1}}
	shared := &away{Store: ratelimit.NewMemory()}
	processes := []*ratelimit.Fallback{ratelimit.NewFallback(shared, ratelimit.NewMemory()), ratelimit.NewFallback(shared, ratelimit.NewMemory())}
	allowed := make([]int, len(processes))
	spend := func(calls int) {
		t.Helper()
		for i := range calls {
			which := i % len(processes)
			v, err := processes[which].Spend(t.Context(), start, charge)
			if err != nil {
				t.Fatal(err)
			}
			if v[0].Allowed {
				allowed[which]++
			}
		}
	}
	spend(100)
	if allowed[0] != 5 || allowed[1] != 5 {
		t.Fatalf("%v of one burst were allowed", allowed)
	}
	for _, fault := range []func(){
		func() { shared.Store = ratelimit.NewMemory() }, // forgets everything
		func() { shared.err = errors.New("away") },
		func() { shared.err, shared.Store = nil, ratelimit.NewMemory() },
	} {
		fault()
		spend(100)
	}
	if allowed[0] != 10 || allowed[1] != 10 {
		t.Errorf("%v were allowed, want 10 by each", allowed)
	}
	if processes[0].Alone() == 0 {
		t.Error("no process decided by itself")
	}
}

// TestARefusalSpendsNothingAlone: what the shared Store refuses is not gone here.
func TestARefusalSpendsNothingAlone(t *testing.T) {
	charge := []ratelimit.Charge{{Bucket: "a", Limit: ratelimit.Per(10, time.Hour), Cost: 10}}
	shared := &away{Store: ratelimit.NewMemory()}
	if _, err := shared.Store.Spend(t.Context(), start, charge); err != nil { // by another process
		t.Fatal(err)
	}
	f := ratelimit.NewFallback(shared, ratelimit.NewMemory())
	for range 20 {
		if v, err := f.Spend(t.Context(), start, charge); err != nil || v[0].Allowed {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	shared.err = errors.New("away")
	if v, err := f.Spend(t.Context(), start, charge); err != nil || !v[0].Allowed {
		t.Errorf("%+v, %v: a refusal was spent", v, err)
	}
}
