package redis_test

import (
	"strconv"
	"testing"
	"time"

	"curt/internal/backend/redis"
	"curt/internal/ratelimit"
	"curt/internal/testkit"
)

// spend makes one call and fails on an error.
func spend(t *testing.T, l *redis.Limiter, now time.Time, charges ...ratelimit.Charge) []ratelimit.Verdict {
	t.Helper()
	v, err := l.Spend(t.Context(), now, charges)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestLimitsAreCountedByTheServersClock has processes with wrong clocks share a bucket, which the
// server counts to the microsecond.
func TestLimitsAreCountedByTheServersClock(t *testing.T) {
	l := open(t, testkit.StartRedis(t).URL(), "clock").Limiter()
	c := ratelimit.Charge{Bucket: "a", Limit: ratelimit.Limit{Count: 1, Period: 24 * time.Hour, Burst: 1}, Cost: 1}
	first := spend(t, l, time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), c)[0]
	if !first.Allowed || first.ResetAfter != 24*time.Hour {
		t.Errorf("first: %+v", first)
	}
	second := spend(t, l, time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC), c)[0]
	// Some time goes by between two calls, of which a clock of seconds would mostly see nothing.
	if second.Allowed || second.RetryAfter >= 24*time.Hour || second.RetryAfter < 23*time.Hour {
		t.Errorf("two hundred years later, by another clock: %+v; want refused for a little less than a day", second)
	}
}

// TestTimeThatGoesBackStandsStill brings the clock of another server, as after a fail-over: the
// bucket knows when it was last charged.
func TestTimeThatGoesBackStandsStill(t *testing.T) {
	l := open(t, testkit.StartRedis(t).URL(), "back").Limiter().TheirClock()
	now := time.Now().Truncate(time.Millisecond)
	c := ratelimit.Charge{Bucket: "a", Limit: ratelimit.Limit{Count: 10, Period: time.Minute, Burst: 10}, Cost: 5}
	spend(t, l, now, c)
	if v := spend(t, l, now.Add(-time.Hour), c)[0]; !v.Allowed || v.Remaining != 0 || v.ResetAfter != time.Minute {
		t.Errorf("the rest, an hour before: %+v", v)
	}
	if v := spend(t, l, now.Add(-time.Hour), c)[0]; v.Allowed || v.RetryAfter != 30*time.Second || v.ResetAfter != time.Minute {
		t.Errorf("more than the rest, an hour before: %+v; want what the bucket needs, and no more", v)
	}
	if v := spend(t, l, now.Add(30*time.Second), c)[0]; !v.Allowed || v.Remaining != 0 {
		t.Errorf("what came back meanwhile: %+v", v)
	}
}

// TestABucketIsKeptLongerThanItNeeds looks at when the server forgets a bucket: with a clock that
// is set forward it would be full before its time.
func TestABucketIsKeptLongerThanItNeeds(t *testing.T) {
	r := testkit.StartRedis(t)
	c := ratelimit.Charge{Bucket: "a", Limit: ratelimit.Limit{Count: 1, Period: 24 * time.Hour, Burst: 10}, Cost: 1}
	const day, hour, second = 86_400_000, 3_600_000, 1000
	for name, l := range map[string]*redis.Limiter{
		"kept":  open(t, r.URL(), "kept").Limiter().TheirClock(), // an hour longer, where servers have a second
		"short": open(t, r.URL(), "short").Limiter(),
	} {
		spend(t, l, time.Now(), c)
		left, err := strconv.Atoi(r.Do(t, "pttl", r.Do(t, "keys", "curt:"+name+":r:*")))
		least, most := day-hour, day+second
		if name == "kept" {
			least, most = day+hour/2, day+hour
		}
		if err != nil || left > most || left < least {
			t.Errorf("%s: a bucket that is full in a day is kept for %d ms, %v; want %d to %d", name, left, err, least, most)
		}
	}
}

// givesBack refuses a call after its first charges were spent, and looks at what these say after
// they went back: full buckets, although time has gone by and a later charge was allowed.
func givesBack(t *testing.T, url string) {
	l := open(t, url, "back").Limiter()
	fast := ratelimit.Limit{Count: 1_000_000, Period: time.Second, Burst: 3} // one each microsecond
	slow := ratelimit.Limit{Count: 1, Period: time.Hour, Burst: 3}
	charge := func(owner string, limit ratelimit.Limit, cost int) ratelimit.Charge {
		return ratelimit.Charge{Bucket: owner + "/limit", Limit: limit, Cost: cost} // of each owner by itself
	}
	spend(t, l, time.Time{}, charge("empty", slow, 3))
	calls := []ratelimit.Charge{charge("fast", fast, 1), charge("slow", slow, 1), charge("empty", slow, 1), charge("last", slow, 1)}
	for i, v := range spend(t, l, time.Time{}, calls...) {
		switch empty := i == 2; {
		case v.Allowed == empty:
			t.Errorf("charge %d: %+v; want the empty bucket alone to refuse", i, v)
		case !empty && (v.Remaining != 3 || v.ResetAfter != 0):
			t.Errorf("charge %d: %+v; want a full bucket, and not more", i, v)
		}
	}
	if v := spend(t, l, time.Time{}, charge("slow", slow, 3))[0]; !v.Allowed {
		t.Errorf("what went back is gone: %+v", v)
	}
}
