package codegentest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/codegen"
	"curt/internal/link"
)

// NewGenerator returns a generator with codes of the length over the ranges that
// it leases from l, size ids at a time, as a fresh process would hold it. All that
// it returns make codes from the same permutation.
type NewGenerator func(l codegen.Leaser, length int, size uint64) codegen.Generator

// RunGenerator proves a strategy that leases its ids and promises Unique.
func RunGenerator(t *testing.T, fresh NewGenerator) {
	t.Run("codes have their shape", func(t *testing.T) { shapes(t, fresh) })
	t.Run("two processes never make the same code", func(t *testing.T) { twoProcesses(t, fresh) })
	t.Run("a space is used to its end", func(t *testing.T) { exhausts(t, fresh) })
	t.Run("a burned code drops the rest of its range", func(t *testing.T) { burns(t, fresh) })
	t.Run("a leaser that fails is unavailable", func(t *testing.T) { unavailable(t, fresh) })
	t.Run("a lost acknowledgement loses ids only", func(t *testing.T) { lostLeases(t, fresh) })
	t.Run("a caller does not wait longer than it wants", func(t *testing.T) { stuck(t, fresh) })
}

func mustNext(t *testing.T, g codegen.Generator) link.Code {
	t.Helper()
	code, err := g.Next(t.Context(), codegen.Need{})
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return code
}

func shapes(t *testing.T, fresh NewGenerator) {
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		g := fresh(NewLeaser(), length, 10)
		if g.Guarantee() != codegen.Unique {
			t.Errorf("promise is %d, want Unique", g.Guarantee())
		}
		for range 25 {
			if code := mustNext(t, g); len(code) != length || !link.ValidCode(code) {
				t.Errorf("code %q does not have %d valid characters", code, length)
			}
		}
	}
}

// collect takes n codes in each of the goroutines and fails on a repeated one.
func collect(t *testing.T, goroutines, n int, gs ...codegen.Generator) map[link.Code]bool {
	t.Helper()
	var (
		mu   sync.Mutex
		seen = make(map[link.Code]bool, goroutines*n)
		wg   sync.WaitGroup
	)
	for i := range goroutines {
		wg.Go(func() {
			mine := make([]link.Code, 0, n)
			for range n {
				code, err := gs[i%len(gs)].Next(t.Context(), codegen.Need{})
				if err != nil {
					t.Errorf("Next: %v", err)
					return
				}
				mine = append(mine, code)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, code := range mine {
				if seen[code] {
					t.Errorf("code %q was made twice", code)
				}
				seen[code] = true
			}
		})
	}
	wg.Wait()
	return seen
}

func twoProcesses(t *testing.T, fresh NewGenerator) {
	l := NewLeaser()
	seen := collect(t, 64, 500, fresh(l, 7, 100), fresh(l, 7, 37))
	if len(seen) != 64*500 {
		t.Errorf("%d different codes, want %d", len(seen), 64*500)
	}
}

func exhausts(t *testing.T, fresh NewGenerator) {
	const left = 25
	l := NewLeaser()
	mustSkip(t, l, codegen.Counter(codegen.DefaultPrefix, 4), codegen.Space(4)-left)
	g := fresh(l, 4, 10)
	if seen := collect(t, 5, left/5, g); len(seen) != left {
		t.Errorf("the last %d ids made %d codes", left, len(seen))
	}
	for range 3 {
		if code, err := g.Next(t.Context(), codegen.Need{}); !errors.Is(err, codegen.ErrExhausted) {
			t.Errorf("Next in a used space: %q, %v; want ErrExhausted", code, err)
		}
	}
}

func burns(t *testing.T, fresh NewGenerator) {
	l := NewLeaser()
	g, twin := fresh(l, 7, 100), fresh(NewLeaser(), 7, 100)
	var burned link.Code
	for range 10 {
		burned = mustNext(t, g)
	}
	first := make(map[link.Code]bool) // the codes of the first range, from a twin
	for range 100 {
		first[mustNext(t, twin)] = true
	}
	if !first[burned] {
		t.Fatalf("%q is not of the first range: the generators do not share a permutation", burned)
	}
	g.Burned(burned)
	for range 100 {
		if code := mustNext(t, g); first[code] {
			t.Fatalf("code %q comes from the range that was burned", code)
		}
	}
	before := mustMark(t, l, codegen.Counter(codegen.DefaultPrefix, 7))
	for _, stranger := range []link.Code{burned, "alias", "not-base62!", "aaaaaaaaaa", ""} {
		g.Burned(stranger) // nothing to drop
	}
	for range 100 {
		mustNext(t, g)
	}
	if after := mustMark(t, l, codegen.Counter(codegen.DefaultPrefix, 7)); after > before+200 {
		t.Errorf("codes of other ranges cost %d ids", after-before)
	}
}

func unavailable(t *testing.T, fresh NewGenerator) {
	const size = 10
	var fault atomic.Pointer[error] // nil = the leaser answers; a generator may ask it from elsewhere
	g := fresh(WithFaults(NewLeaser(), func(context.Context, Op) (bool, error) {
		if err := fault.Load(); err != nil {
			return false, *err
		}
		return false, nil
	}), 7, size)
	seen, got := make(map[link.Code]bool), 0
	take := func() error {
		code, err := g.Next(t.Context(), codegen.Need{})
		if err == nil {
			seen[code] = true
			got++
		}
		return err
	}
	for _, down := range []error{errors.New("connection refused"), link.ErrUnavailable} {
		for range size {
			if err := take(); err != nil {
				t.Fatalf("Next while the leaser answers: %v", err)
			}
		}
		fault.Store(&down)
		var err error
		for range 2*size + 1 { // what was leased ahead may still be handed out
			if err = take(); err != nil {
				break
			}
		}
		if !errors.Is(err, link.ErrUnavailable) || !errors.Is(err, down) {
			t.Errorf("Next while the leaser says %q: %v; want ErrUnavailable and the cause", down, err)
		}
		fault.Store(nil)
	}
	for range size {
		if err := take(); err != nil {
			t.Fatalf("Next after the faults: %v", err)
		}
	}
	if len(seen) != got {
		t.Errorf("%d different codes around the faults of %d", len(seen), got)
	}
}

func lostLeases(t *testing.T, fresh NewGenerator) {
	calls := 0
	l := NewLeaser()
	g := fresh(WithFaults(l, func(context.Context, Op) (bool, error) {
		if calls++; calls%2 == 0 {
			return true, errors.New("connection lost after the lease")
		}
		return false, nil
	}), 7, 5)
	seen := make(map[link.Code]bool)
	for len(seen) < 50 {
		code, err := g.Next(t.Context(), codegen.Need{})
		if err != nil {
			continue
		}
		if seen[code] {
			t.Fatalf("code %q was made twice", code)
		}
		seen[code] = true
	}
	if mark := mustMark(t, l, codegen.Counter(codegen.DefaultPrefix, 7)); mark < 90 {
		t.Errorf("mark is %d: the lost leases were handed out again", mark)
	}
}

// stuck holds one caller inside the Leaser for good and lets another wait behind it.
func stuck(t *testing.T, fresh NewGenerator) {
	inside, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	g := fresh(WithFaults(NewLeaser(), func(context.Context, Op) (bool, error) {
		once.Do(func() { close(inside) })
		<-release
		return false, nil
	}), 7, 10)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := g.Next(t.Context(), codegen.Need{}); err != nil {
			t.Errorf("Next that waited for its lease: %v", err)
		}
	})
	<-inside
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := g.Next(ctx, codegen.Need{})
	if !errors.Is(err, link.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Next behind a stuck lease: %v; want ErrUnavailable and the deadline", err)
	}
	close(release)
	wg.Wait()
}
