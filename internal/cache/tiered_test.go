package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/link"
)

func TestNewWantsASource(t *testing.T) {
	if _, err := cache.New(cache.Config{}, nil); err == nil {
		t.Fatal("a cache without a source was made")
	}
}

func TestOneLookupIsEnoughWhileFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), target("https://a.example/"))
		s.Put(link.Key{Domain: "b.example", Code: "a"}, target("https://b.example/"))
		c := newTiered(t, cache.Config{}, s)
		for range 3 {
			wantVersion(t, c, key("a"), 1)
			pass(time.Minute)
		}
		wantLookups(t, s, key("a"), 1)
		other, err := c.Lookup(t.Context(), link.Key{Domain: "b.example", Code: "a"})
		if err != nil || other.Destination != "https://b.example/" {
			t.Fatalf("the code of another domain is %q, %v", other.Destination, err)
		}
	})
}

func TestFreshnessIsJittered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		s := cachetest.NewSource()
		c := newTiered(t, cache.Config{}, s)
		for i := range n {
			s.Put(key(fmt.Sprint("k", i)), target("https://a.example/"))
			wantVersion(t, c, key(fmt.Sprint("k", i)), 1)
		}
		reloaded := func() (sum int) {
			for i := range n {
				wantVersion(t, c, key(fmt.Sprint("k", i)), 1)
				sum += s.Lookups(key(fmt.Sprint("k", i))) - 1
			}
			return sum
		}
		pass(269 * time.Second) // 5 min less 10 % is 270 s
		if got := reloaded(); got != 0 {
			t.Fatalf("%d of %d were due before 4.5 min", got, n)
		}
		time.Sleep(31 * time.Second)
		half := reloaded()
		if half < n*2/5 || half > n*3/5 {
			t.Fatalf("%d of %d were due by 5 min, want about half", half, n)
		}
		time.Sleep(30 * time.Second)
		if got := reloaded(); got != n {
			t.Fatalf("%d of %d were due by 5.5 min, want all", got, n)
		}
	})
}

func TestUnknownIsBelievedForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		c := newTiered(t, cache.Config{}, s)
		wantVersion(t, c, key("x"), 0)
		time.Sleep(time.Minute - time.Millisecond)
		wantVersion(t, c, key("x"), 0)
		wantLookups(t, s, key("x"), 1)
		time.Sleep(time.Millisecond)
		wantVersion(t, c, key("x"), 0)
		wantLookups(t, s, key("x"), 2)
	})
}

func TestAFailureIsNeverUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		c := newTiered(t, cache.Config{}, s)
		s.SetDown(errAway)
		for range 2 {
			if _, err := c.Lookup(t.Context(), key("x")); !errors.Is(err, errAway) || errors.Is(err, link.ErrNotFound) {
				t.Fatalf("got %v, want the store's error", err)
			}
		}
		wantLookups(t, s, key("x"), 2) // and it is not remembered
		s.SetDown(nil)
		wantVersion(t, c, key("x"), 0)

		// An "unknown" that is over must not come back when the store is away.
		pass(time.Minute)
		s.SetDown(errAway)
		if _, err := c.Lookup(t.Context(), key("x")); !errors.Is(err, errAway) {
			t.Fatalf("got %v, want the store's error", err)
		}
	})
}

func TestFreshnessEndsAtTheExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		expires := time.Now().Add(10 * time.Second).UnixMilli()
		s.Put(key("a"), link.Target{Destination: "https://a.example/", Expires: expires})
		c := newTiered(t, cache.Config{}, s)
		wantVersion(t, c, key("a"), 1)
		time.Sleep(10*time.Second - time.Millisecond)
		wantVersion(t, c, key("a"), 1)
		wantLookups(t, s, key("a"), 1)
		time.Sleep(time.Millisecond)
		wantVersion(t, c, key("a"), 1)
		wantLookups(t, s, key("a"), 2)
		pass(time.Minute) // once expired it is held like any other, not asked for each time
		wantVersion(t, c, key("a"), 1)
		wantLookups(t, s, key("a"), 2)

		s.SetDown(errAway) // and an expired link is told from an unknown one without the store
		pass(time.Hour)
		wantVersion(t, c, key("a"), 1)
	})
}

// A link with a bound of clicks is never served from memory while the store is slow or down: its last
// click may be spent. One that is exhausted is.
func TestABoundedLinkIsNotServedStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		bounded := link.Target{Destination: "https://a.example/", Limited: true}
		s.Put(key("a"), bounded)
		bounded.Exhausted = true
		s.Put(key("spent"), bounded)
		c := newTiered(t, cache.Config{}, s)
		for _, k := range []link.Key{key("a"), key("spent")} {
			if _, err := c.Lookup(t.Context(), k); err != nil {
				t.Fatal(err)
			}
		}
		s.Put(key("a"), bounded)
		s.OnLookup(func(context.Context, link.Key) error { time.Sleep(200 * time.Millisecond); return nil })
		if got, err := c.Lookup(t.Context(), key("a")); err != nil || !got.Exhausted {
			t.Errorf("from a slow store: %+v, %v", got, err)
		}
		s.OnLookup(hang)
		s.Put(key("b"), link.Target{Destination: "https://b.example/", Limited: true})
		if got, err := c.Lookup(t.Context(), key("spent")); err != nil || !got.Exhausted {
			t.Errorf("what is exhausted, from a store that hangs: %+v, %v", got, err)
		}
		s.OnLookup(nil)
		if _, err := c.Lookup(t.Context(), key("b")); err != nil {
			t.Fatal(err)
		}
		s.OnLookup(hang)
		if got, err := c.Lookup(t.Context(), key("b")); err == nil {
			t.Errorf("from a store that hangs: %+v, %v", got, err)
		}
	})
}

// A link with a bound of clicks is asked for each time: nobody is shown where it led
// after the last click is spent, also when the source is away.
func TestBoundedLinksAreNeverFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("a"), link.Target{Destination: "https://a.example/", Limited: true})
		c := newTiered(t, cache.Config{}, s)
		wantVersion(t, c, key("a"), 1)
		wantVersion(t, c, key("a"), 1)
		wantLookups(t, s, key("a"), 2)
		s.SetDown(errAway)
		pass(time.Second)
		if got, err := c.Lookup(t.Context(), key("a")); !errors.Is(err, errAway) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestATargetIsAdmittedOncePerLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		asked := 0
		c := newTiered(t, cache.Config{
			Admit: func(tg link.Target) link.Target {
				asked++
				tg.Loops, tg.Fallback = true, ""
				return tg
			},
			Prepare: func(_ link.Key, tg link.Target) cache.Prepared {
				return cache.Prepared{Tail: strconv.FormatBool(tg.Loops)}
			},
		}, s)
		s.Put(key("abc"), target("https://a.example/"))
		for range 3 {
			if got, err := c.Lookup(t.Context(), key("abc")); err != nil || !got.Loops || got.Fallback != "" {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		if e := c.Hit("", []byte("abc")); e == nil || !e.Target.Loops || e.Prepared.Tail != "true" {
			t.Fatalf("a hit is not what was admitted: %+v", e)
		}
		wantVersion(t, c, key("none"), 0)
		if asked != 1 {
			t.Fatalf("asked %d times, want once", asked)
		}
	})
}

func TestHitTakesBytesAndHoldsThePreparedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		made := 0
		c := newTiered(t, cache.Config{Prepare: func(k link.Key, tg link.Target) cache.Prepared {
			made++
			return cache.Prepared{Head: k.String(), Tail: tg.Destination}
		}}, s)
		s.Put(key("abc"), target("https://a.example/"))
		if e := c.Hit("", []byte("abc")); e != nil {
			t.Fatal("a hit before anything was loaded")
		}
		wantVersion(t, c, key("abc"), 1)
		for range 2 {
			e := c.Hit("", []byte("abc"))
			if e == nil || e.Prepared.Head != "/abc" || e.Prepared.Tail != "https://a.example/" {
				t.Fatalf("got %+v", e)
			}
		}
		if made != 1 {
			t.Fatalf("prepared %d times, want once", made)
		}
		if e := c.Hit("other.example", []byte("abc")); e != nil {
			t.Fatal("another domain's code was hit")
		}
		wantVersion(t, c, key("none"), 0)
		if e := c.Hit("", []byte("none")); e == nil || !e.Missing {
			t.Fatalf("got %+v, want the held \"unknown\"", e)
		}
		c.Changed(s.Put(key("abc"), target("https://b.example/")))
		if e := c.Hit("", []byte("abc")); e != nil {
			t.Fatal("a changed link was hit")
		}
	})
}

func TestManyReadersOneLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const readers = 20_000
		s := cachetest.NewSource()
		s.Put(key("hot"), target("https://a.example/"))
		release := make(chan struct{})
		s.OnLookup(func(context.Context, link.Key) error { <-release; return nil })
		c := newTiered(t, cache.Config{}, s)
		results := make(chan error, readers)
		for range readers {
			go func() {
				_, err := c.Lookup(context.Background(), key("hot"))
				results <- err
			}()
		}
		synctest.Wait() // every reader waits
		close(release)
		for range readers {
			if err := <-results; err != nil {
				t.Fatal(err)
			}
		}
		wantLookups(t, s, key("hot"), 1)
	})
}

func TestAReaderThatMissedJustBeforeTheLoadEndedAsksNobody(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("hot"), target("https://a.example/"))
	c := newTiered(t, cache.Config{}, s)
	for range 2 {
		if err := c.LoadAfterMiss(t.Context(), key("hot")); err != nil {
			t.Fatal(err)
		}
	}
	wantLookups(t, s, key("hot"), 1)
}

func TestACancelledReaderFailsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.Put(key("hot"), target("https://a.example/"))
		release := make(chan struct{})
		s.OnLookup(func(ctx context.Context, _ link.Key) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		c := newTiered(t, cache.Config{}, s)
		look := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() {
				_, err := c.Lookup(ctx, key("hot"))
				done <- err
			}()
			synctest.Wait()
			return done
		}
		leaderCtx, cancelLeader := context.WithCancel(t.Context())
		followerCtx, cancelFollower := context.WithCancel(t.Context())
		leader, impatient, patient := look(leaderCtx), look(followerCtx), look(t.Context())

		cancelLeader()
		cancelFollower()
		if err := <-impatient; !errors.Is(err, context.Canceled) {
			t.Fatalf("the cancelled reader got %v", err)
		}
		close(release)
		if err := <-patient; err != nil {
			t.Fatalf("the patient reader got %v", err)
		}
		if err := <-leader; err != nil {
			t.Fatalf("the leader got %v", err)
		}
		wantLookups(t, s, key("hot"), 1)
	})
}

func TestALoadHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		s.OnLookup(func(ctx context.Context, _ link.Key) error { <-ctx.Done(); return context.Cause(ctx) })
		c := newTiered(t, cache.Config{LoadTimeout: 300 * time.Millisecond}, s)
		began := time.Now()
		_, err := c.Lookup(t.Context(), key("x"))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 300*time.Millisecond {
			t.Fatalf("got %v after %v, want the deadline after 300 ms", err, time.Since(began))
		}
	})
}

func TestAPanickingSourceLeavesNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachetest.NewSource()
		release := make(chan struct{})
		s.OnLookup(func(context.Context, link.Key) error { <-release; panic("bug") })
		c := newTiered(t, cache.Config{}, s)
		leader, follower := make(chan any, 1), make(chan error, 1)
		go func() {
			defer func() { leader <- recover() }()
			_, _ = c.Lookup(context.Background(), key("x"))
		}()
		synctest.Wait()
		go func() {
			_, err := c.Lookup(context.Background(), key("x"))
			follower <- err
		}()
		synctest.Wait()
		close(release)
		if got := <-leader; got != "bug" {
			t.Fatalf("the leader's panic is %v", got)
		}
		if err := <-follower; !errors.Is(err, link.ErrUnavailable) {
			t.Fatalf("the follower got %v", err)
		}
	})
}
