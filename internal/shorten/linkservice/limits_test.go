package linkservice_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
	"curt/internal/shorten/linkservice"
)

// planned returns a Creator with real limits.
func planned(t *testing.T, plans string) bench {
	t.Helper()
	p, err := create.DefaultPlans().With(plans)
	if err != nil {
		t.Fatal(err)
	}
	return newBench(t, func(cfg *linkservice.Config) { cfg.Plans, cfg.Limits = p, ratelimit.NewMemory() })
}

func onPlan(key string, workspace link.WorkspaceID, plan auth.Plan) auth.Principal {
	return auth.Principal{KeyID: key, Workspace: workspace, Plan: plan, Scopes: []auth.Scope{auth.LinksWrite}}
}

// creates makes links until the limit says no, and returns how many and its verdict.
func (b bench) creates(t *testing.T, now time.Time, who auth.Principal, most int) (int, ratelimit.Verdict) {
	t.Helper()
	for n := range most {
		req := to("http://example.com")
		_, err := b.created(t.Context(), now, by(who), &req)
		if limited, ok := errors.AsType[*shorten.LimitedError](err); ok {
			return n, limited.Verdict
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return most, ratelimit.Verdict{}
}

func TestPlansLimitTheirWorkspaces(t *testing.T) {
	for plan, want := range map[auth.Plan]int{
		auth.PlanFree: 10, auth.PlanVerified: 100, auth.PlanRegistered: 300, auth.PlanDefault: 300, "": 300, "newer": 10,
	} {
		b := planned(t, "")
		if n, _ := b.creates(t, noon(), onPlan("k", "acme", plan), 300); n != want {
			t.Errorf("plan %q: %d creates at once, want %d", plan, n, want)
		}
	}
}

func TestBothLimitsOfThePlanHold(t *testing.T) {
	b := planned(t, "")
	who, now := onPlan("k", "acme", auth.PlanFree), noon()
	total := 0
	for range 20 {
		n, _ := b.creates(t, now, who, 50)
		total += n
		now = now.Add(time.Minute)
	}
	// 100 at once and 100 an hour: 20 minutes after the first there are 33 more at most.
	if total < 100 || total > 134 {
		t.Errorf("%d creates in 20 minutes, want 100 to 134", total)
	}
	_, v := b.creates(t, now, who, 50)
	if v.Limit != 100 || v.RetryAfter <= 0 || v.RetryAfter > 36*time.Second {
		t.Errorf("refused with %+v, want the hour's limit", v)
	}
}

func TestKeysOfAWorkspaceShareItsLimit(t *testing.T) {
	b := planned(t, "free=10/m")
	first, _ := b.creates(t, noon(), onPlan("one", "acme", auth.PlanFree), 6)
	second, _ := b.creates(t, noon(), onPlan("two", "acme", auth.PlanFree), 20)
	other, _ := b.creates(t, noon(), onPlan("three", "other", auth.PlanFree), 20)
	if first != 6 || second != 4 || other != 10 {
		t.Errorf("%d, %d and %d creates, want 6, 4 and another workspace's 10", first, second, other)
	}
}

// A workspace that is called like an address has a bucket of its own.
func TestWorkspacesAreNoAddresses(t *testing.T) {
	b := planned(t, "free=1/m,anonymous=1/m")
	n, _ := b.creates(t, noon(), onPlan("k", "192.0.2.1", auth.PlanFree), 5)
	m, _ := b.creates(t, noon(), auth.Anonymous(addr("192.0.2.1"), auth.LinksWrite), 5)
	if n != 1 || m != 1 {
		t.Errorf("%d and %d creates, want one each", n, m)
	}
}

func TestTheTightestLimitIsTold(t *testing.T) {
	b := planned(t, "")
	req := to("http://example.com")
	if _, err := b.created(t.Context(), noon(), by(onPlan("k", "acme", auth.PlanFree)), &req); err != nil {
		t.Fatal(err)
	}
	if req.Limit == nil || req.Limit.Limit != 10 || req.Limit.Remaining != 9 || req.Limit.ResetAfter != 6*time.Second {
		t.Errorf("told %+v, want 9 of 10", req.Limit)
	}
	if _, err := b.created(t.Context(), noon(), by(admin()), &req); err != nil || req.Limit != nil {
		t.Errorf("the admin was told %+v, %v", req.Limit, err)
	}
}

// What no wait can make possible is the request's mistake, and costs nothing.
func TestABatchAboveTheSmallestBurstIsInvalid(t *testing.T) {
	b := planned(t, "free=10/m+5/h")
	who := onPlan("k", "acme", auth.PlanFree)
	batch := func(n int) []create.Row {
		all := make([]create.Row, n)
		for i := range all {
			all[i].Request = to("http://example.com")
		}
		return all
	}
	for _, n := range []int{6, 10, 11, create.MaxMany} {
		_, err := b.CreateMany(t.Context(), noon(), by(who), batch(n))
		wantError(t, "above the burst", err, link.ErrInvalid)
		if err == nil || !strings.Contains(err.Error(), "links: ") || !strings.Contains(err.Error(), "at most 5 ") {
			t.Errorf("%d links: %v, want to hear of 5", n, err)
		}
	}
	if v, err := b.CreateMany(t.Context(), noon(), by(who), batch(5)); err != nil || v.Remaining != 0 {
		t.Errorf("5 links: %+v, %v", v, err)
	}
	_, err := b.CreateMany(t.Context(), noon(), by(who), batch(5))
	if _, ok := errors.AsType[*shorten.LimitedError](err); !ok {
		t.Errorf("5 more: %v, want LimitedError", err)
	}
}

func TestPlansAsAnOperatorWritesThem(t *testing.T) {
	got, err := create.DefaultPlans().With(" free = 5/s + 20/m , anonymous=off,default=1000/d,")
	if err != nil {
		t.Fatal(err)
	}
	want := create.DefaultPlans()
	want[auth.PlanAnonymous] = nil
	want[auth.PlanFree] = []ratelimit.Limit{{Count: 5, Period: time.Second, Burst: 5}, {Count: 20, Period: time.Minute, Burst: 20}}
	want[auth.PlanDefault] = []ratelimit.Limit{{Count: 1000, Period: 24 * time.Hour, Burst: 1000}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plans (-want +got):\n%s", diff)
	}
	for _, wrong := range []string{
		"free", "free=", "free=10", "free=10/", "free=/m", "free=10/w", "free=0/m", "free=-1/m", "free=1e3/m", "free=10/m+5/m",
		"free=10/m,free=5/h", "gold=10/m", "=10/m", "free=10/m/h", "free=99999999999/m", "free=2000000000/s", "free=off+1/m", "FREE=1/m",
	} {
		if _, err := create.DefaultPlans().With(wrong); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want an error of one line", wrong, err)
		}
	}
}

// Whatever is taken for a limit, the store takes too.
func FuzzPlans(f *testing.F) {
	f.Add("free=10/m+100/h,anonymous=20/m")
	f.Add("default=1000000000/s+1/d")
	f.Fuzz(func(t *testing.T, text string) {
		plans, err := create.DefaultPlans().With(text)
		if err != nil {
			return
		}
		for plan, limits := range plans {
			for _, l := range limits {
				if err := l.Validate(); err != nil {
					t.Errorf("%q gives plan %s %v", text, plan, err)
				}
			}
		}
	})
}
