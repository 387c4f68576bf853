package ratelimit_test

import (
	"math"
	"testing"
	"time"

	"curt/internal/ratelimit"
)

// TestRatesThatDoNotDivideAreRoundedDown counts nanoseconds: three cells in ten are
// one in four, not one in three.
func TestRatesThatDoNotDivideAreRoundedDown(t *testing.T) {
	c := ratelimit.Charge{Limit: ratelimit.Limit{Count: 3, Period: 10, Burst: 1}, Cost: 1}
	full, allowed := int64(0), 0
	for now := range int64(1000) {
		var v ratelimit.Verdict
		if full, v = ratelimit.Take(full, now, c); v.Allowed {
			allowed++
		}
	}
	if allowed != 250 {
		t.Errorf("%d cells in 1,000 ns of 3 per 10 ns, want 250", allowed)
	}
}

func TestFasterThanANanosecondIsANanosecond(t *testing.T) {
	c := ratelimit.Charge{Limit: ratelimit.Limit{Count: math.MaxInt, Period: 10, Burst: 1}, Cost: 1}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	full, v := ratelimit.Take(0, 100, c)
	if full != 101 || !v.Allowed || v.ResetAfter != 1 {
		t.Errorf("%d, %+v; want full at 101", full, v)
	}
}

func TestTheLongestLimitDoesNotOverflow(t *testing.T) {
	century := 100 * 365 * 24 * time.Hour
	c := ratelimit.Charge{Limit: ratelimit.Limit{Count: 1, Period: century, Burst: 1}, Cost: 1}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	now := int64(50 * 365 * 24 * time.Hour)
	full, v := ratelimit.Take(0, now, c)
	if !v.Allowed || v.ResetAfter != century {
		t.Errorf("%+v; want full after a century", v)
	}
	if _, v := ratelimit.Take(full, now, c); v.Allowed || v.RetryAfter != century {
		t.Errorf("%+v; want refused for a century", v)
	}
}

func TestARefusalChangesNothing(t *testing.T) {
	c := ratelimit.Charge{Limit: ratelimit.Limit{Count: 1, Period: time.Second, Burst: 2}, Cost: 2}
	full, _ := ratelimit.Take(0, 0, c)
	if again, v := ratelimit.Take(full, 1, c); again != full || v.Allowed {
		t.Errorf("a refusal moved the bucket from %d to %d: %+v", full, again, v)
	}
}
