package ratelimit_test

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"curt/internal/ratelimit"
)

func TestWhoIsOneClient(t *testing.T) {
	for text, want := range map[string][3]string{
		"203.0.113.7":                 {"203.0.113.7/32", "203.0.113.0/24", "203.0.113.7"},
		"::ffff:203.0.113.7":          {"203.0.113.7/32", "203.0.113.0/24", "203.0.113.7"},
		"::ffff:203.0.113.7%eth0":     {"203.0.113.7/32", "203.0.113.0/24", "203.0.113.7"},
		"2001:db8:1:2:3:4:5:6":        {"2001:db8:1:2::/64", "2001:db8:1::/48", "2001:db8:1:2::/64"},
		"2001:db8:ffff:ffff::1":       {"2001:db8:ffff:ffff::/64", "2001:db8:ffff::/48", "2001:db8:ffff:ffff::/64"},
		"fe80::aaaa:bbbb:cccc:1%eth0": {"fe80::/64", "fe80::/48", "fe80::/64"},
	} {
		addr := netip.MustParseAddr(text)
		got := [3]string{ratelimit.ClientNetwork(addr).String(), ratelimit.ClientSurroundings(addr).String(), ratelimit.ClientBucket(addr)}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	var nobody netip.Addr
	if ratelimit.ClientNetwork(nobody).IsValid() || ratelimit.ClientSurroundings(nobody).IsValid() || ratelimit.ClientBucket(nobody) == "" {
		t.Errorf("an unknown address: %v, %v, %q", ratelimit.ClientNetwork(nobody), ratelimit.ClientSurroundings(nobody), ratelimit.ClientBucket(nobody))
	}
}

func TestLimitsAsOperatorsWriteThem(t *testing.T) {
	for text, want := range map[string]ratelimit.Limit{
		"1/s": ratelimit.Per(1, time.Second), "100/m": ratelimit.Per(100, time.Minute), "100/h": ratelimit.Per(100, time.Hour),
		"7/d": ratelimit.Per(7, 24*time.Hour), "1000000000/s": ratelimit.Per(1_000_000_000, time.Second),
	} {
		got, err := ratelimit.Parse(text)
		if err != nil || got != want || got.Validate() != nil || got.Burst != got.Count {
			t.Errorf("%q: %+v, %v, %v; want %+v", text, got, err, got.Validate(), want)
		}
	}
	for _, text := range []string{"", "100", "100/", "/h", "0/h", "-1/h", "1.5/h", "100/w", "100/hh", "100 /h", "1000000001/s", "99999999999999999999/s"} {
		if got, err := ratelimit.Parse(text); err == nil || got != (ratelimit.Limit{}) {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
}

func TestBoundsOfLimits(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	good := ratelimit.Limit{Count: 1, Period: time.Second, Burst: 1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, l := range []ratelimit.Limit{
		{Count: 0, Period: time.Second, Burst: 1},
		{Count: 1, Period: 0, Burst: 1},
		{Count: 1, Period: time.Second, Burst: 0},
		{Count: -1, Period: time.Second, Burst: 1},
		{Count: 1, Period: -1, Burst: 1},
		{Count: 1, Period: time.Second, Burst: -1},
		{Count: 1, Period: century + 1, Burst: 1},
		{Count: 1, Period: century, Burst: 2},
		{Count: 1, Period: time.Second, Burst: math.MaxInt},
	} {
		if err := l.Validate(); !errors.Is(err, ratelimit.ErrInvalid) {
			t.Errorf("%+v: %v", l, err)
		}
		if err := (ratelimit.Charge{Limit: l}).Validate(); !errors.Is(err, ratelimit.ErrInvalid) {
			t.Errorf("a charge of %+v: %v", l, err)
		}
	}
	if err := (ratelimit.Charge{Limit: good, Cost: 0}).Validate(); err != nil {
		t.Errorf("a cost of nothing: %v", err)
	}
	if err := (ratelimit.Charge{Limit: good, Cost: -1}).Validate(); !errors.Is(err, ratelimit.ErrInvalid) {
		t.Errorf("a negative cost: %v", err)
	}
}

// A verdict is exact to the nanosecond.
func TestVerdictsToTheNanosecond(t *testing.T) {
	limit := ratelimit.Limit{Count: 1, Period: 100, Burst: 3} // a cell each 100 ns
	for _, c := range []struct {
		full, now int64
		cost      int
		after     int64
		want      ratelimit.Verdict
	}{
		{0, 1000, 1, 1100, ratelimit.Verdict{Allowed: true, Limit: 3, Remaining: 2, ResetAfter: 100}},
		{1000, 1000, 3, 1300, ratelimit.Verdict{Allowed: true, Limit: 3, Remaining: 0, ResetAfter: 300}},
		{1200, 1000, 1, 1300, ratelimit.Verdict{Allowed: true, Limit: 3, Remaining: 0, ResetAfter: 300}},
		{1201, 1000, 1, 1201, ratelimit.Verdict{Limit: 3, Remaining: 0, RetryAfter: 1, ResetAfter: 201}},
		{1201, 1001, 1, 1301, ratelimit.Verdict{Allowed: true, Limit: 3, Remaining: 0, ResetAfter: 300}},
		{1150, 1000, 0, 1150, ratelimit.Verdict{Allowed: true, Limit: 3, Remaining: 1, ResetAfter: 150}},
		{1150, 1000, 4, 1150, ratelimit.Verdict{Limit: 3, Remaining: 1, RetryAfter: 150, ResetAfter: 150}},
		{0, 1000, 4, 0, ratelimit.Verdict{Limit: 3, Remaining: 3}},
		{1400, 1000, 1, 1400, ratelimit.Verdict{Limit: 3, Remaining: 0, RetryAfter: 200, ResetAfter: 400}}, // of a larger limit before
	} {
		after, got := ratelimit.Take(c.full, c.now, ratelimit.Charge{Limit: limit, Cost: c.cost})
		if after != c.after || got != c.want {
			t.Errorf("cost %d of a bucket full at %d, at %d: full at %d, %+v; want %d, %+v", c.cost, c.full, c.now, after, got, c.after, c.want)
		}
	}
}

// What nobody can decide is an error, and what makes no sense is not decided by oneself.
func TestFallbackPassesErrorsOn(t *testing.T) {
	away1, away2 := &away{ratelimit.NewMemory(), errors.New("away")}, &away{ratelimit.NewMemory(), errors.New("gone")}
	charge := []ratelimit.Charge{{Bucket: "a", Limit: ratelimit.Per(10, time.Hour), Cost: 1}}
	f := ratelimit.NewFallback(away1, away2)
	if v, err := f.Spend(t.Context(), start, charge); !errors.Is(err, away2.err) || v != nil || f.Alone() != 0 {
		t.Errorf("nobody there: %+v, %v, %d decided alone", v, err, f.Alone())
	}
	away2.err, away1.err = nil, fmt.Errorf("a mistake: %w", ratelimit.ErrInvalid)
	if v, err := f.Spend(t.Context(), start, charge); !errors.Is(err, ratelimit.ErrInvalid) || v != nil || f.Alone() != 0 {
		t.Errorf("a mistake: %+v, %v, %d decided alone", v, err, f.Alone())
	}
	away1.err = nil
	if v, err := f.Spend(t.Context(), start, charge); err != nil || !v[0].Allowed || f.Alone() != 0 {
		t.Errorf("both there: %+v, %v, %d decided alone", v, err, f.Alone())
	}
	away1.err = errors.New("away")
	if v, err := f.Spend(t.Context(), start, charge); err != nil || !v[0].Allowed || f.Alone() != 1 {
		t.Errorf("the shared one away: %+v, %v, %d decided alone", v, err, f.Alone())
	}
}

// With several charges of which one is refused, the others say what they have: nothing of
// them is spent.
func TestWhatIsNotSpentRemains(t *testing.T) {
	m := ratelimit.NewMemory()
	limit := ratelimit.Per(10, 10*time.Second)
	charges := []ratelimit.Charge{{Bucket: "a", Limit: limit, Cost: 4}, {Bucket: "b", Limit: limit, Cost: 11}, {Bucket: "a", Limit: limit, Cost: 4}}
	for range 2 {
		v, err := m.Spend(t.Context(), start, charges)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []ratelimit.Verdict{
			{Allowed: true, Limit: 10, Remaining: 10}, {Limit: 10, Remaining: 10}, {Allowed: true, Limit: 10, Remaining: 10},
		} {
			if v[i] != want {
				t.Errorf("charge %d: %+v, want %+v", i, v[i], want)
			}
		}
	}
	v, err := m.Spend(t.Context(), start, []ratelimit.Charge{charges[0], charges[0], charges[0]})
	if err != nil || v[2].Allowed || v[0].Remaining != 10 {
		t.Errorf("three charges of one bucket that hold two: %+v, %v", v, err)
	}
	v, err = m.Spend(t.Context(), start, []ratelimit.Charge{charges[0], charges[0]})
	if err != nil || !v[1].Allowed || v[0].Remaining != 6 || v[1].Remaining != 2 {
		t.Errorf("two charges of one bucket: %+v, %v", v, err)
	}
}
