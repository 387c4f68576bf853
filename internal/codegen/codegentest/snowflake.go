package codegentest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/codegen"
	"curt/internal/link"
)

// RunSnowflake proves codegen.Snowflake over a driver, with clocks that jump. open and again are
// those of RunLeaser.
func RunSnowflake(t *testing.T, open func(t *testing.T) codegen.Leaser, again func(t *testing.T, l codegen.Leaser) codegen.Leaser) {
	t.Run("codes have their shape", func(t *testing.T) { snowflakeShape(t, open(t)) })
	t.Run("no code repeats after kills and clock jumps", func(t *testing.T) { clockJumps(t, open(t), again) })
	t.Run("no code repeats while the clock jumps", func(t *testing.T) { l := open(t); jumpsBelow(t, l, again(t, l)) })
	t.Run("no code repeats after a restore", func(t *testing.T) { restored(t, open(t), open(t)) })
	t.Run("a machine id has one process", func(t *testing.T) { l := open(t); oneMachine(t, l, again(t, l)) })
}

// Clock is a wall clock that can be set.
type Clock struct {
	offset  atomic.Int64
	stopped atomic.Pointer[time.Time] // nil = it goes on
}

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	now := time.Now()
	if at := c.stopped.Load(); at != nil {
		now = *at
	}
	return now.Add(time.Duration(c.offset.Load()))
}

// Stop has the clock stand still until it is set.
func (c *Clock) Stop(at time.Time) { c.stopped.Store(&at) }

// Shift sets the clock.
func (c *Clock) Shift(d time.Duration) { c.offset.Add(int64(d)) }

// snowflake returns a generator of plain codes, as a fresh process would hold it.
func snowflake(l codegen.Leaser, c *Clock) *codegen.Snowflake {
	return codegen.NewSnowflake(codegen.SnowflakeConfig{Leases: l, Now: c.Now})
}

func snowflakeShape(t *testing.T, l codegen.Leaser) {
	for _, perm := range []*codegen.Permutation{nil, codegen.NewPermutation([32]byte{1, 2, 3})} {
		g := codegen.NewSnowflake(codegen.SnowflakeConfig{Leases: l, Now: time.Now, Permutation: perm})
		if g.Guarantee() != codegen.Unique || g.Kind() != link.Chosen {
			t.Errorf("guarantee %d, kind %d; want Unique and chosen codes", g.Guarantee(), g.Kind())
		}
		last, sorted := link.Code(""), true
		for range 1000 {
			code := mustNext(t, g)
			if len(code) != codegen.SnowflakeLength || !link.ValidCode(code) {
				t.Fatalf("code %q does not have 11 valid characters", code)
			}
			sorted = sorted && last < code
			last = code
			g.Burned(code)
		}
		if sorted != (perm == nil) {
			t.Errorf("permuted: %v; codes sort by time: %v", perm != nil, sorted)
		}
	}
}

// clockJumps kills a process 40 times, and sets its clock before each start.
func clockJumps(t *testing.T, l codegen.Leaser, again func(t *testing.T, l codegen.Leaser) codegen.Leaser) {
	clock, seen := new(Clock), make(map[link.Code]bool)
	for round := range 40 {
		if round%4 == 3 {
			l = again(t, l)
		}
		g := snowflake(l, clock)
		for range 100 {
			code := mustNext(t, g)
			if seen[code] {
				t.Fatalf("code %q was generated twice", code)
			}
			seen[code] = true
		}
		clock.Shift([]time.Duration{0, -time.Millisecond, -time.Hour, time.Hour, -time.Minute, time.Second}[round%6])
	}
}

// jumpsBelow sets the clocks of two processes while they generate codes.
func jumpsBelow(t *testing.T, handles ...codegen.Leaser) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var (
		mu   sync.Mutex
		seen = make(map[link.Code]bool)
		wg   sync.WaitGroup
		runs sync.WaitGroup
	)
	for _, l := range handles {
		clock := new(Clock)
		g := snowflake(l, clock)
		runs.Go(func() { _ = g.Run(ctx) })
		for range 4 {
			wg.Go(func() {
				for n := 0; n < 2000; {
					code, err := g.Next(ctx, codegen.Need{})
					if errors.Is(err, link.ErrUnavailable) {
						continue // the clock went backwards
					}
					mu.Lock()
					if err != nil || seen[code] {
						t.Errorf("code %q, %v; seen before: %v", code, err, seen[code])
					}
					seen[code] = true
					mu.Unlock()
					if n++; n%500 == 0 {
						clock.Shift(time.Duration(rand.Int64N(int64(4*time.Second))) - 2*time.Second)
					}
				}
			})
		}
	}
	wg.Wait()
	cancel()
	runs.Wait()
	if want := 8000 * len(handles); len(seen) != want {
		t.Errorf("%d different codes, want %d", len(seen), want)
	}
}

// restored generates codes from a store, and then from one that knows of none of its leases.
func restored(t *testing.T, before, after codegen.Leaser) {
	clock, seen := new(Clock), make(map[link.Code]bool)
	for _, l := range []codegen.Leaser{before, after} {
		for range 5 {
			g := snowflake(l, clock)
			for range 200 {
				seen[mustNext(t, g)] = true
			}
			clock.Shift(time.Millisecond) // what a restart takes
		}
	}
	if len(seen) != 2000 {
		t.Errorf("%d different codes of 2,000", len(seen))
	}
}

// oneMachine leaves one machine id to two processes.
func oneMachine(t *testing.T, l, other codegen.Leaser) {
	const free = 777
	var wg sync.WaitGroup
	for first := range 8 {
		wg.Go(func() {
			for m := first; m < 1024; m += 8 {
				if m != free {
					if err := l.Skip(t.Context(), fmt.Sprint("snowflake-", m), 1<<41); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	// A lease lasts a minute, which may pass on a busy machine: these clocks move when they are set.
	clock, late, now := new(Clock), new(Clock), time.Now()
	clock.Stop(now)
	late.Stop(now)
	a, b := snowflake(l, clock), snowflake(other, late)
	seen := make(map[link.Code]bool)
	take := func(g *codegen.Snowflake) {
		t.Helper()
		for range 100 {
			code := mustNext(t, g)
			if seen[code] {
				t.Fatalf("code %q was generated twice", code)
			}
			seen[code] = true
		}
	}
	refused := func(g *codegen.Snowflake) {
		t.Helper()
		code, err := g.Next(t.Context(), codegen.Need{})
		if !errors.Is(err, link.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "all 1024 machine ids are leased") {
			t.Fatalf("Next without a free machine id: %q, %v", code, err)
		}
	}
	take(a)
	refused(b)
	if a.Stats().Machine != free || b.Stats().Machine != -1 || b.Stats().Failures != 1 {
		t.Errorf("%+v and %+v; want machine %d and none", a.Stats(), b.Stats(), free)
	}
	late.Shift(61 * time.Second) // a was paused, or the clocks differ
	take(b)
	take(a) // milliseconds of its own
	clock.Shift(61 * time.Second)
	take(b)
	refused(a)
	take(b)
}
