package codegen_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
	"curt/internal/link"
)

func newRange(l codegen.Leaser, length int, size uint64) *codegen.Range {
	return codegen.NewRange(codegen.RangeConfig{
		Leaser: l, Permutation: codegen.NewPermutation(testKey), Length: length, Size: size,
	})
}

func TestRangeKeepsTheContract(t *testing.T) {
	codegentest.RunGenerator(t, func(l codegen.Leaser, length int, size uint64) codegen.Generator {
		return newRange(l, length, size)
	})
}

// TestRangeKeepsTheContractWhilePrefetching runs the suite again with Run beside
// each generator.
func TestRangeKeepsTheContractWhilePrefetching(t *testing.T) {
	codegentest.RunGenerator(t, func(l codegen.Leaser, length int, size uint64) codegen.Generator {
		r := newRange(l, length, size)
		run(t, r)
		return r
	})
}

// run keeps Run going until the test ends, and waits for its end.
func run(t *testing.T, r *codegen.Range) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	var stopped atomic.Bool
	stop = func() {
		if !stopped.CompareAndSwap(false, true) {
			return
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func next(t *testing.T, g codegen.Generator) link.Code {
	t.Helper()
	code, err := g.Next(t.Context(), codegen.Need{})
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return code
}

func TestRunLeasesBeforeCallersNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := codegentest.WithFaults(codegentest.NewLeaser(), func(context.Context, codegentest.Op) (bool, error) {
			time.Sleep(time.Second) // of the bubble's clock
			return false, nil
		})
		r := newRange(slow, 7, 100)
		stop := run(t, r)
		defer stop()
		time.Sleep(2 * time.Second)
		start := time.Now()
		for range 10 {
			for range 100 {
				next(t, r)
			}
			if waited := time.Since(start); waited != 0 {
				t.Fatalf("callers waited %v for leases", waited)
			}
			time.Sleep(2 * time.Second)
			start = time.Now()
		}
		if s := r.Stats(); s.Inline != 0 || s.Leases < 10 || s.Leases > 11 {
			t.Errorf("after 1,000 codes of ranges of 100: %+v", s)
		}
	})
}

func TestRunLeasesNothingThatNobodyNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRange(codegentest.NewLeaser(), 7, 100)
		stop := run(t, r)
		defer stop()
		for range 30 {
			next(t, r)
		}
		time.Sleep(time.Hour)
		if s := r.Stats(); s.Leases > 2 || s.Left != 70 {
			t.Errorf("after 30 codes and an idle hour: %+v", s)
		}
	})
}

func TestRunGoesOnAfterFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		down.Store(true)
		l := codegentest.WithFaults(codegentest.NewLeaser(), func(context.Context, codegentest.Op) (bool, error) {
			if down.Load() {
				return false, errors.New("connection refused")
			}
			return false, nil
		})
		r := codegen.NewRange(codegen.RangeConfig{
			Leaser: l, Permutation: codegen.NewPermutation(testKey), Length: 7, Size: 100,
			Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
		stop := run(t, r)
		defer stop()
		time.Sleep(10*time.Second + time.Millisecond)
		if s := r.Stats(); s.Failures != 11 || s.Leases != 0 {
			t.Errorf("after ten seconds without the leaser: %+v; want a try each second", s)
		}
		down.Store(false)
		time.Sleep(2 * time.Second)
		next(t, r)
		if s := r.Stats(); s.Inline != 0 || s.Leases != 1 {
			t.Errorf("after it came back: %+v", s)
		}
	})
}

// TestRunDoesNotHoldCallersBehindADeadLeaser shows the bound on Run's own lease.
func TestRunDoesNotHoldCallersBehindADeadLeaser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		dead.Store(true)
		l := codegentest.WithFaults(codegentest.NewLeaser(), func(ctx context.Context, _ codegentest.Op) (bool, error) {
			if dead.Load() {
				<-ctx.Done()
				return false, context.Cause(ctx)
			}
			return false, nil
		})
		r := newRange(l, 7, 100)
		stop := run(t, r)
		defer stop()
		synctest.Wait() // Run is inside the leaser
		dead.Store(false)
		start := time.Now()
		next(t, r)
		if waited := time.Since(start); waited > 5*time.Second {
			t.Errorf("a caller waited %v behind Run", waited)
		}
	})
}

func TestRunStopsLeasingAUsedSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := codegentest.NewLeaser()
		counter := codegen.Counter(codegen.DefaultPrefix, 4)
		if err := l.Skip(t.Context(), counter, codegen.Space(4)); err != nil {
			t.Fatal(err)
		}
		r := newRange(l, 4, 10)
		stop := run(t, r)
		defer stop()
		time.Sleep(time.Hour)
		for range 100 {
			if _, err := r.Next(t.Context(), codegen.Need{}); !errors.Is(err, codegen.ErrExhausted) {
				t.Fatalf("Next: %v; want ErrExhausted", err)
			}
		}
		mark, err := l.Leased(t.Context(), counter)
		if err != nil || mark > codegen.Space(4)+10 {
			t.Errorf("mark %d, %v: leases went on beyond the space", mark, err)
		}
	})
}

func TestManyCallersWaitForOneLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := codegentest.WithFaults(codegentest.NewLeaser(), func(context.Context, codegentest.Op) (bool, error) {
			time.Sleep(time.Second) // of the bubble's clock
			return false, nil
		})
		r := newRange(slow, 7, 100)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() { next(t, r) })
		}
		wg.Wait()
		if s := r.Stats(); s.Leases != 1 || s.Left != 36 {
			t.Errorf("after 64 callers at once: %+v", s)
		}
	})
}

func TestStatsCountBurnedCodes(t *testing.T) {
	r := newRange(codegentest.NewLeaser(), 7, 100)
	code := next(t, r)
	r.Burned(code)
	r.Burned("alias")
	if s := r.Stats(); s.Burned != 2 || s.Left != 0 {
		t.Errorf("after a burned code and a burned alias: %+v", s)
	}
	next(t, r)
	if s := r.Stats(); s.Leases != 2 || s.Inline != 2 || s.Left != 99 {
		t.Errorf("after the next code: %+v", s)
	}
}

func BenchmarkNext(b *testing.B) {
	r := newRange(codegentest.NewLeaser(), 7, 0)
	b.ReportAllocs()
	b.SetParallelism(32) // 64 callers on two cores
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := r.Next(b.Context(), codegen.Need{}); err != nil {
				b.Error(err)
			}
		}
	})
}
