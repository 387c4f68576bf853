// Package ratelimittest proves Stores of package ratelimit:
//
//	func TestMemory(t *testing.T) {
//		ratelimittest.Run(t, func(*testing.T) ratelimit.Store { return ratelimit.NewMemory() })
//	}
package ratelimittest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"curt/internal/ratelimit"
)

// start is when the suites begin; whole milliseconds, so that a Store may count in
// them.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// tenAMinute gives one cell every six seconds.
var tenAMinute = ratelimit.Limit{Count: 10, Period: time.Minute, Burst: 10}

// Run proves the Stores that open returns; each is empty. All times that it names
// are whole milliseconds.
func Run(t *testing.T, open func(t *testing.T) ratelimit.Store) {
	t.Run("a burst, then one at a time", func(t *testing.T) { burst(t, open(t)) })
	t.Run("verdicts tell the rest", func(t *testing.T) { verdicts(t, open(t)) })
	t.Run("buckets do not touch each other", func(t *testing.T) { apart(t, open(t)) })
	t.Run("several charges are spent together or not at all", func(t *testing.T) { together(t, open(t)) })
	t.Run("two charges of one bucket add up", func(t *testing.T) { sameBucket(t, open(t)) })
	t.Run("a cost of nothing asks", func(t *testing.T) { asks(t, open(t)) })
	t.Run("more than the burst is never allowed", func(t *testing.T) { tooMuch(t, open(t)) })
	t.Run("a limit that changes holds at once", func(t *testing.T) { changes(t, open(t)) })
	t.Run("senseless charges are errors", func(t *testing.T) { senseless(t, open(t)) })
	t.Run("many callers get exactly the burst", func(t *testing.T) { concurrent(t, open(t)) })
	t.Run("a network of many addresses is one caller", func(t *testing.T) { Network(t, open(t), 10_000) })
	t.Run("a clock that goes back gives nothing", func(t *testing.T) { backwards(t, open(t)) })
	t.Run("never more than burst and rate", func(t *testing.T) { bounded(t, open) })
}

// spend makes one call and fails on an error.
func spend(t *testing.T, s ratelimit.Store, now time.Time, charges ...ratelimit.Charge) []ratelimit.Verdict {
	t.Helper()
	v, err := s.Spend(t.Context(), now, charges)
	if err != nil {
		t.Fatalf("Spend: %v", err)
	}
	if len(v) != len(charges) {
		t.Fatalf("%d verdicts for %d charges", len(v), len(charges))
	}
	return v
}

func one(bucket string, cost int) ratelimit.Charge {
	return ratelimit.Charge{Bucket: bucket, Limit: tenAMinute, Cost: cost}
}

func burst(t *testing.T, s ratelimit.Store) {
	for i := range 10 {
		if v := spend(t, s, start, one("a", 1))[0]; !v.Allowed || v.RetryAfter != 0 || v.Remaining != 9-i {
			t.Fatalf("charge %d of the burst: %+v", i+1, v)
		}
	}
	now := start
	for range 25 {
		v := spend(t, s, now, one("a", 1))[0]
		if v.Allowed || v.Remaining != 0 || v.RetryAfter != 6*time.Second {
			t.Fatalf("charge after the burst: %+v; want a retry after 6s", v)
		}
		if v := spend(t, s, now.Add(v.RetryAfter-time.Millisecond), one("a", 1))[0]; v.Allowed || v.RetryAfter != time.Millisecond {
			t.Fatalf("charge a millisecond early: %+v", v)
		}
		now = now.Add(v.RetryAfter)
		if v := spend(t, s, now, one("a", 1))[0]; !v.Allowed {
			t.Fatalf("charge at the time that the verdict named: %+v", v)
		}
	}
	if v := spend(t, s, now.Add(time.Hour), one("a", 10))[0]; !v.Allowed || v.Remaining != 0 {
		t.Fatalf("a burst after an hour: %+v", v)
	}
}

func verdicts(t *testing.T, s ratelimit.Store) {
	for _, step := range []struct {
		after time.Duration
		cost  int
		want  ratelimit.Verdict
	}{
		{0, 4, ratelimit.Verdict{Allowed: true, Limit: 10, Remaining: 6, ResetAfter: 24 * time.Second}},
		{3 * time.Second, 0, ratelimit.Verdict{Allowed: true, Limit: 10, Remaining: 6, ResetAfter: 21 * time.Second}},
		{6 * time.Second, 7, ratelimit.Verdict{Allowed: true, Limit: 10, Remaining: 0, ResetAfter: 60 * time.Second}},
		{6 * time.Second, 3, ratelimit.Verdict{Limit: 10, RetryAfter: 18 * time.Second, ResetAfter: 60 * time.Second}},
		{30 * time.Second, 9, ratelimit.Verdict{Limit: 10, Remaining: 4, RetryAfter: 30 * time.Second, ResetAfter: 36 * time.Second}},
		{66 * time.Second, 0, ratelimit.Verdict{Allowed: true, Limit: 10, Remaining: 10}},
	} {
		if v := spend(t, s, start.Add(step.after), one("a", step.cost))[0]; v != step.want {
			t.Errorf("cost %d after %v: %+v, want %+v", step.cost, step.after, v, step.want)
		}
	}
}

func apart(t *testing.T, s ratelimit.Store) {
	names := []string{"", "a", "A", "a ", "a:b", "a\x00", "\x00", "ä", "\xff", strings.Repeat("x", 1000), strings.Repeat("x", 1001), "create:203.0.113.7", "create:2001:db8::/64"}
	for _, name := range names {
		if v := spend(t, s, start, one(name, 10))[0]; !v.Allowed {
			t.Errorf("bucket %q is not full: %+v", name, v)
		}
	}
	for _, name := range names {
		if v := spend(t, s, start, one(name, 1))[0]; v.Allowed {
			t.Errorf("bucket %q is not empty: %+v", name, v)
		}
	}
}

func together(t *testing.T, s ratelimit.Store) {
	hour := ratelimit.Limit{Count: 100, Period: time.Hour, Burst: 3}
	pair := []ratelimit.Charge{one("minute", 1), {Bucket: "hour", Limit: hour, Cost: 1}}
	for range 3 {
		for i, v := range spend(t, s, start, pair...) {
			if !v.Allowed {
				t.Fatalf("charge %d within both limits: %+v", i, v)
			}
		}
	}
	for range 20 {
		v := spend(t, s, start, pair...)
		if !v[0].Allowed || v[0].Remaining != 7 || v[0].ResetAfter != 18*time.Second {
			t.Fatalf("the charge that was not the reason: %+v; want allowed, and nothing spent", v[0])
		}
		if v[1].Allowed || v[1].RetryAfter != 36*time.Second {
			t.Fatalf("the charge that was the reason: %+v", v[1])
		}
	}
	if v := spend(t, s, start, one("minute", 7))[0]; !v.Allowed {
		t.Errorf("what refused calls did not spend is gone: %+v", v)
	}
	if v := spend(t, s, start); len(v) != 0 {
		t.Errorf("no charges have verdicts: %+v", v)
	}
}

func sameBucket(t *testing.T, s ratelimit.Store) {
	v := spend(t, s, start, one("a", 6), one("a", 5))
	if v[1].Allowed {
		t.Errorf("6 and 5 of 10 were allowed: %+v", v)
	}
	if v[0].Remaining != 10 || v[0].ResetAfter != 0 || v[1].Remaining != 4 || v[1].RetryAfter != 6*time.Second {
		t.Errorf("6 and 5 of 10: %+v; want 10 left of what was not spent, and 4 behind it", v)
	}
	v = spend(t, s, start, one("a", 6), one("a", 4))
	if !v[0].Allowed || !v[1].Allowed || v[1].Remaining != 0 {
		t.Errorf("6 and 4 of 10: %+v", v)
	}
	if v := spend(t, s, start, one("a", 1))[0]; v.Allowed {
		t.Errorf("an eleventh was allowed: %+v", v)
	}
}

func asks(t *testing.T, s ratelimit.Store) {
	for range 100 {
		if v := spend(t, s, start, one("a", 0))[0]; !v.Allowed || v.Remaining != 10 || v.ResetAfter != 0 {
			t.Fatalf("asking a full bucket: %+v", v)
		}
	}
}

func tooMuch(t *testing.T, s ratelimit.Store) {
	spend(t, s, start, one("a", 2))
	if v := spend(t, s, start, one("a", 11))[0]; v.Allowed || v.Remaining != 8 || v.RetryAfter != 12*time.Second {
		t.Errorf("11 of a burst of 10: %+v", v)
	}
	if v := spend(t, s, start.Add(time.Hour), one("a", 11))[0]; v.Allowed {
		t.Errorf("11 of a burst of 10 after an hour: %+v", v)
	}
	if v := spend(t, s, start, one("b", int(^uint(0)>>1)))[0]; v.Allowed {
		t.Errorf("the largest cost: %+v", v)
	}
}

func changes(t *testing.T, s ratelimit.Store) {
	spend(t, s, start, one("a", 10))
	small := ratelimit.Charge{Bucket: "a", Limit: ratelimit.Limit{Count: 10, Period: time.Minute, Burst: 1}, Cost: 1}
	if v := spend(t, s, start, small)[0]; v.Allowed || v.Remaining != 0 || v.RetryAfter != time.Minute {
		t.Errorf("a smaller burst on an empty bucket: %+v", v)
	}
	large := ratelimit.Charge{Bucket: "a", Limit: ratelimit.Limit{Count: 10, Period: time.Minute, Burst: 20}, Cost: 10}
	if v := spend(t, s, start, large)[0]; !v.Allowed {
		t.Errorf("a larger burst on an empty bucket: %+v", v)
	}
}

func senseless(t *testing.T, s ratelimit.Store) {
	for _, c := range []ratelimit.Charge{
		one("a", -1),
		{Bucket: "a", Cost: 1},
		{Bucket: "a", Cost: 1, Limit: ratelimit.Limit{Count: 0, Period: time.Second, Burst: 1}},
		{Bucket: "a", Cost: 1, Limit: ratelimit.Limit{Count: 1, Period: 0, Burst: 1}},
		{Bucket: "a", Cost: 1, Limit: ratelimit.Limit{Count: 1, Period: -time.Second, Burst: 1}},
		{Bucket: "a", Cost: 1, Limit: ratelimit.Limit{Count: 1, Period: time.Second, Burst: -1}},
		{Bucket: "a", Cost: 1, Limit: ratelimit.Limit{Count: 1, Period: 24 * time.Hour, Burst: 1 << 40}},
	} {
		if _, err := s.Spend(t.Context(), start, []ratelimit.Charge{one("b", 1), c}); !errors.Is(err, ratelimit.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", c, err)
		}
	}
	if v := spend(t, s, start, one("b", 0))[0]; v.Remaining != 10 {
		t.Errorf("calls that ended in errors spent: %+v", v)
	}
}

// concurrent lets 64 callers loose on one bucket alone and, in either order, on a
// pair whose halves are in each other's way.
func concurrent(t *testing.T, s ratelimit.Store) {
	limit := ratelimit.Limit{Count: 1, Period: time.Hour, Burst: 1000}
	a, b := ratelimit.Charge{Bucket: "a", Limit: limit, Cost: 1}, ratelimit.Charge{Bucket: "b", Limit: limit, Cost: 1}
	calls := [][]ratelimit.Charge{{a}, {a, b}, {b, a}}
	var spentA, spentB atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 100 {
				charges := calls[(i+j)%3]
				verdicts, err := s.Spend(t.Context(), start, charges)
				if err != nil {
					t.Errorf("Spend: %v", err)
					return
				}
				for _, v := range verdicts {
					if !v.Allowed {
						verdicts = nil
						break
					}
				}
				if verdicts == nil {
					continue
				}
				for _, c := range charges {
					if c.Bucket == "a" {
						spentA.Add(1)
					} else {
						spentB.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := spentA.Load(); n != 1000 {
		t.Errorf("64 callers spent %d of 1000", n)
	}
	rest := spend(t, s, start, ratelimit.Charge{Bucket: "b", Limit: limit})[0].Remaining
	if n := spentB.Load(); n+int64(rest) != 1000 || n == 0 {
		t.Errorf("64 callers spent %d and left %d of 1000", n, rest)
	}
}

// Network has addresses of one /64 spend, by 64 callers: they share one bucket.
func Network(t *testing.T, s ratelimit.Store, addresses int) {
	const callers = 64
	limit := ratelimit.Limit{Count: 1, Period: time.Hour, Burst: 100}
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			a := [16]byte{0x20, 0x01, 0x0d, 0xb8}
			for i := caller; i < addresses; i += callers {
				binary.BigEndian.PutUint64(a[8:], uint64(i)*0x9e3779b97f4a7c15) // all over the /64
				charge := ratelimit.Charge{Bucket: "create:a:" + ratelimit.ClientBucket(netip.AddrFrom16(a)), Limit: limit, Cost: 1}
				v, err := s.Spend(t.Context(), start, []ratelimit.Charge{charge})
				if err != nil {
					t.Errorf("Spend: %v", err)
					return
				}
				if v[0].Allowed {
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := allowed.Load(); n != int64(limit.Burst) {
		t.Errorf("%d addresses of one network were allowed %d, want %d", addresses, n, limit.Burst)
	}
	other := ratelimit.Charge{Bucket: "create:a:" + ratelimit.ClientBucket(netip.MustParseAddr("2001:db8:0:1::1")), Limit: limit, Cost: 1}
	if v := spend(t, s, start, other)[0]; !v.Allowed {
		t.Errorf("the network beside it: %+v", v)
	}
}

func backwards(t *testing.T, s ratelimit.Store) {
	if v := spend(t, s, start, one("a", 10))[0]; !v.Allowed {
		t.Fatalf("the burst: %+v", v)
	}
	for _, back := range []time.Duration{time.Millisecond, time.Hour, 1000 * time.Hour} {
		v := spend(t, s, start.Add(-back), one("a", 1))[0]
		if v.Allowed || v.RetryAfter > time.Minute {
			t.Errorf("a charge %v in the past: %+v; want refused, and no longer than the bucket needs", back, v)
		}
	}
	if v := spend(t, s, start, one("a", 1))[0]; v.Allowed {
		t.Errorf("a charge after the clock came back: %+v", v)
	}
	if v := spend(t, s, start.Add(6*time.Second), one("a", 1))[0]; !v.Allowed {
		t.Errorf("a charge when a cell came back: %+v", v)
	}
}

// bounded drives one bucket with any costs at any times, forwards and backwards, and
// checks the promise between every two charges that were allowed: not more than
// Burst plus what came back meanwhile; and that every refusal ends when it says.
func bounded(t *testing.T, open func(t *testing.T) ratelimit.Store) {
	s := open(t)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		bucket, origin := fmt.Sprint("run ", runs), start.Add(time.Duration(runs)*1000*time.Hour)
		limit := ratelimit.Limit{
			Count:  rapid.IntRange(1, 50).Draw(rt, "count"),
			Period: time.Duration(rapid.IntRange(1, 600_000).Draw(rt, "period")) * time.Millisecond,
			Burst:  rapid.IntRange(1, 30).Draw(rt, "burst"),
		}
		type spent struct {
			at   time.Duration
			cost int
		}
		var all []spent
		now, latest := time.Duration(0), time.Duration(math.MinInt64)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now += time.Duration(rapid.IntRange(-2000, 20_000).Draw(rt, "ms")) * time.Millisecond
			latest = max(latest, now)
			c := ratelimit.Charge{Bucket: bucket, Limit: limit, Cost: rapid.IntRange(0, limit.Burst).Draw(rt, "cost")}
			v := spend(t, s, origin.Add(now), c)[0]
			if !v.Allowed && v.RetryAfter > 0 {
				latest += v.RetryAfter.Truncate(time.Millisecond) + time.Millisecond // what is not whole milliseconds is later
				now = latest
				if v = spend(t, s, origin.Add(now), c)[0]; !v.Allowed {
					rt.Fatalf("refused at the time that the refusal named: %+v", v)
				}
			}
			if !v.Allowed || v.Remaining < 0 || v.Remaining > limit.Burst {
				rt.Fatalf("verdict %+v of %+v", v, c)
			}
			all = append(all, spent{latest, c.Cost})
		}
		for i := range all {
			sum := 0
			for _, later := range all[i:] {
				sum += later.cost
				back := float64(later.at-all[i].at) * float64(limit.Count) / float64(limit.Period)
				if float64(sum) > float64(limit.Burst)+back+1e-6 {
					rt.Fatalf("%d in %v of %+v", sum, later.at-all[i].at, limit)
				}
			}
		}
	})
}
