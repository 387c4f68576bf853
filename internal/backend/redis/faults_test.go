package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"curt/internal/backend/redis"
	"curt/internal/cache"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/testkit"
)

// impatient returns a client with the deadlines of a server.
func impatient(t *testing.T, r *testkit.Redis) *redis.Client {
	t.Helper()
	return openAs(t, r.URL(), "faults", false)
}

// away makes calls until the breaker is open, and fails if one is asked for behind it.
func away(t *testing.T, c *redis.Client) {
	t.Helper()
	wait(t, "an open breaker", func() bool {
		_, _, _ = c.Get(t.Context(), link.Key{Code: "a"})
		return c.Healthy() != nil
	})
	for range 10_000 {
		if _, _, err := c.Get(t.Context(), link.Key{Code: "a"}); !errors.Is(err, redis.ErrAway) {
			if err == nil {
				return // it is back already
			}
			t.Fatalf("with an open breaker: %v", err)
		}
	}
}

func TestAServerThatStallsCostsMilliseconds(t *testing.T) {
	r := testkit.StartRedis(t)
	c := impatient(t, r)
	wait(t, "an entry", func() bool { return c.Put(t.Context(), link.Key{Code: "a"}, entry(1)) == nil })
	signal(t, r, syscall.SIGSTOP)
	away(t, c)
	if got := c.Stats(); got.Timeouts < 5 || got.Failures > got.Timeouts {
		t.Errorf("%+v: want time-outs, counted apart from errors", got)
	}
	limiter := ratelimit.NewFallback(c.Limiter(), ratelimit.NewMemory())
	v, err := limiter.Spend(t.Context(), time.Now(), []ratelimit.Charge{{Bucket: "a", Limit: ratelimit.Per(1, time.Hour), Cost: 1}})
	if err != nil || !v[0].Allowed {
		t.Errorf("%+v, %v", v, err)
	}
	signal(t, r, syscall.SIGCONT)
	wait(t, "the server to be asked again", func() bool { return c.Healthy() == nil })
	wait(t, "what was put before", func() bool {
		_, found, err := c.Get(t.Context(), link.Key{Code: "a"})
		return err == nil && found
	})
}

func TestAServerThatDiesAndComesBackIsUsedAgain(t *testing.T) {
	r := testkit.StartRedis(t)
	c := impatient(t, r)
	signal(t, r, syscall.SIGKILL)
	away(t, c)
	r.Again(t)
	wait(t, "the server to be asked again", func() bool { return c.Healthy() == nil })
	wait(t, "an entry", func() bool { return c.Put(t.Context(), link.Key{Code: "a"}, entry(1)) == nil })
}

func TestAFullServerRefusesOneCallAtATime(t *testing.T) {
	r := testkit.StartRedis(t)
	c := openAs(t, r.URL(), "full", true)
	if err := c.Put(t.Context(), link.Key{Code: "a"}, entry(1)); err != nil {
		t.Fatal(err)
	}
	r.Do(t, "config", "set", "maxmemory-policy", "noeviction")
	r.Do(t, "config", "set", "maxmemory", "1")
	limiter := c.Limiter()
	charge := []ratelimit.Charge{{Bucket: "a", Limit: ratelimit.Per(1, time.Hour), Cost: 1}}
	for range 20 {
		if err := c.Put(t.Context(), link.Key{Code: "b"}, entry(1)); err == nil {
			t.Fatal("a full server took an entry")
		}
		if _, err := limiter.Spend(t.Context(), time.Now(), charge); err == nil {
			t.Fatal("a full server counted")
		}
		if _, found, err := c.Get(t.Context(), link.Key{Code: "a"}); err != nil || !found {
			t.Fatalf("what it holds is not read: %v, %v", found, err)
		}
	}
	if err := c.Publish(t.Context(), cache.Note{Head: link.Heads{1}}); err != nil {
		t.Errorf("a full server does not pass notes on: %v", err)
	}
}

func TestWhatOthersWroteIsAMiss(t *testing.T) {
	r := testkit.StartRedis(t)
	c := openAs(t, r.URL(), "other", true)
	k := link.Key{Domain: "a.example", Code: "a"}
	for i, text := range []string{"something else", "\x01cut", "\x02 a later format"} {
		r.Do(t, "set", "curt:other:l:a.example/a", text)
		if _, found, err := c.Get(t.Context(), k); found || err != nil {
			t.Errorf("%q: %v, %v", text, found, err)
		}
		if got := c.Stats().Unreadable; got != uint64(i+1) {
			t.Errorf("%d entries were unreadable, want %d", got, i+1)
		}
		if err := c.Put(t.Context(), k, entry(1)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if _, found, err := c.Get(t.Context(), k); !found || err != nil {
			t.Errorf("%q cannot be replaced: %v, %v", text, found, err)
		}
	}
	r.Do(t, "del", "curt:other:l:a.example/a")
	r.Do(t, "lpush", "curt:other:l:a.example/a", "a list")
	if _, found, err := c.Get(t.Context(), k); found || err == nil {
		t.Errorf("a list: %v, %v", found, err)
	}
}

// TestAnEntryEndsByOurClock has the server forget the end of an entry, as one whose clock is
// behind does: what has ended here is not there.
func TestAnEntryEndsByOurClock(t *testing.T) {
	r := testkit.StartRedis(t)
	c := openAs(t, r.URL(), "ends", true)
	k, e := link.Key{Domain: "a.example", Code: "a"}, entry(1)
	put := func() {
		if err := c.Put(t.Context(), k, e); err != nil {
			t.Fatal(err)
		}
	}
	put()
	if left, err := strconv.Atoi(r.Do(t, "pttl", "curt:ends:l:a.example/a")); err != nil || left <= 0 || left > 3_600_000 {
		t.Errorf("the server keeps an entry of an hour for %d ms, %v", left, err)
	}
	for d := 50 * time.Millisecond; ; d *= 2 { // on a busy machine one may have ended before it is there
		r.Do(t, "flushall")
		e.Until = time.Now().Add(d).UTC().Truncate(time.Millisecond)
		put()
		if r.Do(t, "persist", "curt:ends:l:a.example/a") == "1" {
			break
		}
	}
	time.Sleep(time.Until(e.Until))
	if got, found, err := c.Get(t.Context(), k); found || err != nil {
		t.Errorf("%+v, %v, %v at %v", got, found, err, time.Now())
	}
	if r.Do(t, "exists", "curt:ends:l:a.example/a") != "1" {
		t.Error("the server has forgotten it: the test proves nothing")
	}
}

func TestNotesOfOthersArePassedOver(t *testing.T) {
	r := testkit.StartRedis(t)
	c := openAs(t, r.URL(), "other", true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun, heard := make(chan struct{}), make(chan cache.Note, 16)
	go func() { _ = c.Subscribe(ctx, func() { close(begun) }, func(n cache.Note) { heard <- n }) }()
	<-begun
	for _, text := range []string{"", "{", "[]", `{"changes":[{"code":"../../etc","version":1},{"code":"a","version":0},{"code":"b","version":18446744073709551615}],"head":4}`, `{"new":{"field":1},"head":5}`} {
		r.Do(t, "publish", "curt:other:bus", text)
	}
	for _, want := range []link.Sequence{4, 5} {
		if n := <-heard; n.Head.At(0) != want || len(n.Changes) != 0 {
			t.Errorf("heard %+v, want the head %d and no changes", n, want)
		}
	}
}

func TestAKickedSubscriberIsTold(t *testing.T) {
	r := testkit.StartRedis(t)
	c := openAs(t, r.URL(), "kick", true)
	begun, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- c.Subscribe(t.Context(), func() { close(begun) }, func(cache.Note) {}) }()
	<-begun
	r.Do(t, "client", "kill", "type", "pubsub")
	select {
	case err := <-done:
		if err == nil {
			t.Error("it ended without an error")
		}
	case <-time.After(3 * time.Minute):
		t.Fatal("it was not told")
	}
}

func TestNoNameOfABucketIsReadable(t *testing.T) {
	r := testkit.StartRedis(t)
	c := openAs(t, r.URL(), "names", true)
	for _, bucket := range []string{"create:a:203.0.113.77/1m0s", "create:a:2001:db8:7777::/64/1h0m0s"} {
		if _, err := c.Limiter().Spend(t.Context(), time.Now(), []ratelimit.Charge{{Bucket: bucket, Limit: ratelimit.Per(10, time.Hour), Cost: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if all := r.Do(t, "keys", "*"); strings.Count(all, "curt:names:r:") != 2 || strings.Contains(all, "203.0") || strings.Contains(all, "2001") {
		t.Errorf("keys:\n%s", all)
	}
}

// TestTheServersClockCounts: processes whose clocks are hours apart share one bucket.
func TestTheServersClockCounts(t *testing.T) {
	r := testkit.StartRedis(t)
	c := openAs(t, r.URL(), "clock", true)
	allowed := 0
	for i := range 40 {
		v, err := c.Limiter().Spend(t.Context(), time.Now().Add(time.Duration(i%5-2)*24*time.Hour), []ratelimit.Charge{
			{Bucket: "a", Limit: ratelimit.Per(10, time.Hour), Cost: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		if v[0].Allowed {
			allowed++
		}
	}
	if allowed != 10 {
		t.Errorf("%d of 10 were allowed", allowed)
	}
}

// TestTheScriptCountsAsTakeDoes compares both on whole milliseconds.
func TestTheScriptCountsAsTakeDoes(t *testing.T) {
	r := testkit.StartRedis(t)
	limiter := openAs(t, r.URL(), "take", true).Limiter().TheirClock()
	memory := ratelimit.NewMemory()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	limits := []ratelimit.Limit{ratelimit.Per(10, time.Second), {Count: 5, Period: 10 * time.Second, Burst: 3}}
	for i := range 500 {
		now = now.Add(time.Duration(i*7919%400) * time.Millisecond)
		charges := []ratelimit.Charge{
			{Bucket: fmt.Sprint("a/", i%3), Limit: limits[0], Cost: i % 5},
			{Bucket: "a/x", Limit: limits[1], Cost: i % 2},
		}[:1+i%2]
		want, err := memory.Spend(t.Context(), now, charges)
		if err != nil {
			t.Fatal(err)
		}
		got, err := limiter.Spend(t.Context(), now, charges)
		if err != nil {
			t.Fatal(err)
		}
		for j := range want {
			if got[j] != want[j] {
				t.Fatalf("step %d, charge %d: %+v, want %+v", i, j, got[j], want[j])
			}
		}
	}
}

// TestAClockThatGoesBackGivesNothing: after a fail-over the clock is another server's.
func TestAClockThatGoesBackGivesNothing(t *testing.T) {
	r := testkit.StartRedis(t)
	limiter := openAs(t, r.URL(), "back", true).Limiter().TheirClock()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	spend := func(at time.Time, cost int) ratelimit.Verdict {
		v, err := limiter.Spend(t.Context(), at, []ratelimit.Charge{{Bucket: "a", Limit: ratelimit.Per(10, time.Minute), Cost: cost}})
		if err != nil {
			t.Fatal(err)
		}
		return v[0]
	}
	if v := spend(now, 10); !v.Allowed {
		t.Fatalf("%+v", v)
	}
	for _, back := range []time.Duration{time.Millisecond, time.Hour, 1000 * time.Hour} {
		if v := spend(now.Add(-back), 1); v.Allowed || v.RetryAfter > time.Minute {
			t.Errorf("%v in the past: %+v", back, v)
		}
	}
	if v := spend(now.Add(6*time.Second), 1); !v.Allowed {
		t.Errorf("when a cell came back: %+v", v)
	}
}

func signal(t *testing.T, r *testkit.Redis, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(r.Pid, s); err != nil {
		t.Fatal(err)
	}
}

func TestProbeSaysWhatIsThere(t *testing.T) {
	r := testkit.StartRedis(t)
	what, err := redis.Probe(t.Context(), r.URL())
	if err != nil || !strings.HasPrefix(what, "Redis 7.") || !strings.Contains(what, "noeviction") {
		t.Errorf("%q, %v", what, err)
	}
	if left := r.Do(t, "dbsize"); left != "0" {
		t.Errorf("%s keys are left", left)
	}
	if what, err := redis.Probe(t.Context(), "redis://user:hunter2@127.0.0.1:1"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("nobody there: %q, %v", what, err)
	}
	r.Do(t, "config", "set", "requirepass", "hunter2")
	if what, err := redis.Probe(t.Context(), r.URL()); err == nil {
		t.Errorf("without the password: %q", what)
	}
	if _, err := redis.Probe(t.Context(), strings.Replace(r.URL(), "://", "://:hunter2@", 1)); err != nil {
		t.Errorf("with the password: %v", err)
	}
}

func TestWrongURLsShowNoPassword(t *testing.T) {
	for _, url := range []string{
		"", "redis", "http://user:hunter2@host", "redis://user:hunter2@host:port:port/", "redis://user:hunter2@host/zero", "redis://user:hunter2@host/0/1",
		"redis://user:hunter2@host/?masterset=a", "redis://user:hunter2@host/?max_retries=7", "redis://%zz:hunter2@host",
	} {
		if _, err := redis.New(redis.Config{URL: url}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
