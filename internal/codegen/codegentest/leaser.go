package codegentest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"curt/internal/codegen"
	"curt/internal/link"
)

// RunLeaser proves a driver. open returns a Leaser whose counters nobody used;
// again returns another handle on the data of l, as a second process or the next
// start would have it, while l stays usable.
func RunLeaser(t *testing.T, open func(t *testing.T) codegen.Leaser, again func(t *testing.T, l codegen.Leaser) codegen.Leaser) {
	t.Run("a fresh counter starts at its mark", func(t *testing.T) { freshCounter(t, open(t)) })
	t.Run("counters do not touch each other", func(t *testing.T) { apart(t, open(t)) })
	t.Run("ranges never overlap", func(t *testing.T) { l := open(t); noOverlap(t, l, again(t, l)) })
	t.Run("the mark lies above every lease", func(t *testing.T) { l := open(t); marks(t, l, again(t, l)) })
	t.Run("skipped ids belong to nobody", func(t *testing.T) { l := open(t); skips(t, l, again(t, l)) })
	t.Run("a counter is raised from its mark only", func(t *testing.T) { l := open(t); raises(t, l, again(t, l)) })
	t.Run("leases survive a restart", func(t *testing.T) { reopened(t, open(t), again) })
	t.Run("ids reach the end of the largest space", func(t *testing.T) { largest(t, open(t)) })
	t.Run("a cancelled caller gets an error", func(t *testing.T) { cancelled(t, open(t)) })
}

func mustLease(t *testing.T, l codegen.Leaser, counter string, n uint64) uint64 {
	t.Helper()
	first, err := l.Lease(t.Context(), counter, n)
	if err != nil {
		t.Fatalf("Lease(%s, %d): %v", counter, n, err)
	}
	return first
}

func mustMark(t *testing.T, l codegen.Leaser, counter string) uint64 {
	t.Helper()
	mark, err := l.Leased(t.Context(), counter)
	if err != nil {
		t.Fatalf("Leased(%s): %v", counter, err)
	}
	return mark
}

func mustSkip(t *testing.T, l codegen.Leaser, counter string, n uint64) {
	t.Helper()
	if err := l.Skip(t.Context(), counter, n); err != nil {
		t.Fatalf("Skip(%s, %d): %v", counter, n, err)
	}
}

func freshCounter(t *testing.T, l codegen.Leaser) {
	mark := mustMark(t, l, "codes-7")
	if first := mustLease(t, l, "codes-7", 3); first < mark {
		t.Errorf("first lease begins at %d, below the mark %d of a fresh counter", first, mark)
	}
	if mark > 1 {
		t.Errorf("a fresh counter starts at %d; want 0 or 1", mark)
	}
}

func apart(t *testing.T, l codegen.Leaser) {
	before := mustMark(t, l, "codes-6")
	mustLease(t, l, "codes-7", 10_000)
	mustSkip(t, l, "codes-8", 10_000)
	if after := mustMark(t, l, "codes-6"); after != before {
		t.Errorf("mark of codes-6 went from %d to %d by leases of other counters", before, after)
	}
}

func noOverlap(t *testing.T, handles ...codegen.Leaser) {
	const callers, leases = 8, 25
	type interval struct{ first, end uint64 }
	var (
		mu  sync.Mutex
		got []interval
		wg  sync.WaitGroup
	)
	for i := range callers {
		for _, l := range handles {
			wg.Go(func() {
				for j := range leases {
					n := uint64(1 + (i*leases+j)%17)
					first, err := l.Lease(t.Context(), "codes-7", n)
					if err != nil {
						t.Errorf("Lease: %v", err)
						return
					}
					mu.Lock()
					got = append(got, interval{first, first + n})
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	slices.SortFunc(got, func(a, b interval) int { return int(int64(a.first) - int64(b.first)) })
	for i := 1; i < len(got); i++ {
		if got[i].first < got[i-1].end {
			t.Errorf("[%d, %d) and [%d, %d) overlap", got[i-1].first, got[i-1].end, got[i].first, got[i].end)
		}
	}
	if want := callers * leases * len(handles); len(got) != want {
		t.Errorf("%d leases, want %d", len(got), want)
	}
}

func marks(t *testing.T, l, other codegen.Leaser) {
	for _, n := range []uint64{1, 10_000, 7} {
		first := mustLease(t, l, "codes-7", n)
		for _, h := range []codegen.Leaser{l, other} {
			if mark := mustMark(t, h, "codes-7"); mark != first+n {
				t.Errorf("after the lease [%d, %d) the mark is %d", first, first+n, mark)
			}
		}
	}
}

func skips(t *testing.T, l, other codegen.Leaser) {
	mustLease(t, l, "codes-7", 5)
	mark := mustMark(t, l, "codes-7")
	mustSkip(t, other, "codes-7", 10_000_000)
	if got, want := mustMark(t, l, "codes-7"), mark+10_000_000; got != want {
		t.Errorf("mark after Skip is %d, want %d", got, want)
	}
	if first := mustLease(t, l, "codes-7", 1); first < mark+10_000_000 {
		t.Errorf("id %d was skipped and then leased", first)
	}
	mustSkip(t, l, "never-leased", 42)
	if first := mustLease(t, l, "never-leased", 1); first < 42 {
		t.Errorf("id %d of a counter that began with Skip(42) was leased", first)
	}
}

// raises has many callers raise one counter from the same mark: one succeeds.
func raises(t *testing.T, handles ...codegen.Leaser) {
	const counter, callers = "snowflake-7", 8
	mark := mustMark(t, handles[0], counter)
	for round := range uint64(5) {
		to := mark + 1 + round*1_000_000
		var won, lost atomic.Int32
		var wg sync.WaitGroup
		for range callers {
			for _, l := range handles {
				wg.Go(func() {
					switch err := l.Raise(t.Context(), counter, mark, to); {
					case err == nil:
						won.Add(1)
					case errors.Is(err, link.ErrConflict):
						lost.Add(1)
					default:
						t.Errorf("Raise(%d, %d): %v", mark, to, err)
					}
				})
			}
		}
		wg.Wait()
		if won.Load() != 1 || int(lost.Load()) != callers*len(handles)-1 {
			t.Errorf("of %d callers %d raised the counter from %d", callers*len(handles), won.Load(), mark)
		}
		for _, l := range handles {
			if got := mustMark(t, l, counter); got != to {
				t.Errorf("after it was raised to %d the mark is %d", to, got)
			}
		}
		mark = to
	}
	for _, to := range []uint64{mark, mark - 1, 1 << 63} {
		if err := handles[0].Raise(t.Context(), counter, mark, to); !errors.Is(err, link.ErrInvalid) {
			t.Errorf("Raise(%d, %d): %v, want ErrInvalid", mark, to, err)
		}
	}
	if first := mustLease(t, handles[1], counter, 5); first != mark {
		t.Errorf("leased %d of a counter at %d", first, mark)
	}
}

func reopened(t *testing.T, l codegen.Leaser, again func(t *testing.T, l codegen.Leaser) codegen.Leaser) {
	end := uint64(0)
	for range 4 {
		first := mustLease(t, l, "codes-7", 100)
		if first < end {
			t.Fatalf("the lease at %d was handed out before the restart", first)
		}
		end = first + 100
		l = again(t, l)
	}
}

func largest(t *testing.T, l codegen.Leaser) {
	end := codegen.Space(codegen.MaxLength)
	mustSkip(t, l, "codes-10", end-mustMark(t, l, "codes-10")-5)
	if first := mustLease(t, l, "codes-10", 10); first != end-5 {
		t.Errorf("leased %d near the end of the space, want %d", first, end-5)
	}
	if mark := mustMark(t, l, "codes-10"); mark != end+5 {
		t.Errorf("mark beyond the space is %d, want %d", mark, end+5)
	}
}

func cancelled(t *testing.T, l codegen.Leaser) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Lease(ctx, "codes-7", 1); !errors.Is(err, context.Canceled) && !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("Lease of a cancelled caller: %v; want context.Canceled or ErrUnavailable", err)
	}
}
