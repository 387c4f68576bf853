package codegen_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
)

// A code that was burned says nothing about ranges that it did not come from: those
// before and after the one at hand, and codes of another length.
func TestABurnedCodeDropsItsOwnRangeOnly(t *testing.T) {
	l := codegentest.NewLeaser()
	before, r, after := newRange(l, 7, 100), newRange(l, 7, 100), newRange(l, 7, 100)
	early := next(t, before)
	next(t, r)
	late := next(t, after)
	longer := newRange(l, 8, 1000)
	for range 150 { // past id 100, where the range at hand of the shorter ones begins
		r.Burned(next(t, longer))
	}
	r.Burned(early)
	r.Burned(late)
	if s := r.Stats(); s.Left != 99 {
		t.Errorf("%d codes are left of a range of 100 after one was used and others burned, want 99", s.Left)
	}
	newRange(l, 7, 100).Burned(early) // with no range at hand there is nothing to drop
}

// The mark that is found is not 0 in earnest, and a fault skips nothing.
func TestStaleLeasesAreSkippedFromTheirMark(t *testing.T) {
	l := codegentest.NewLeaser()
	counter := codegen.Counter(codegen.DefaultPrefix, 7)
	if err := l.Skip(t.Context(), counter, 5000); err != nil {
		t.Fatal(err)
	}
	const highest = 7000
	if skipped, err := codegen.SkipIfStale(t.Context(), l, codegen.DefaultPrefix, 7, highest); err != nil || !skipped {
		t.Fatalf("SkipIfStale: %v, %v; want true", skipped, err)
	}
	if got, want := mark(t, l, 7), (bounds{highest + 1 + 10_000_000, highest + 1 + 20_000_000}); !want.hold(got) {
		t.Errorf("mark is %d, want %v", got, want)
	}
	for _, failing := range []codegentest.Op{codegentest.OpLeased, codegentest.OpSkip} {
		broken := codegentest.WithFaults(l, func(_ context.Context, op codegentest.Op) (bool, error) {
			if op == failing {
				return false, errors.New("disk I/O error")
			}
			return false, nil
		})
		if skipped, err := codegen.SkipIfStale(t.Context(), broken, codegen.DefaultPrefix, 7, 1<<40); skipped || err == nil {
			t.Errorf("while %s fails: skipped %t, %v", failing, skipped, err)
		}
	}
}

// Run leases no spare while most of the range at hand is there, wherever it begins.
func TestRunWaitsUntilARangeIsHalfUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := codegentest.NewLeaser()
		if err := l.Skip(t.Context(), codegen.Counter(codegen.DefaultPrefix, 7), 5000); err != nil {
			t.Fatal(err)
		}
		r := newRange(l, 7, 100)
		next(t, r)
		stop := run(t, r)
		defer stop()
		synctest.Wait()
		if s := r.Stats(); s.Leases != 1 {
			t.Errorf("%d leases after one code of a range of 100, want 1", s.Leases)
		}
	})
}

// A caller whose lease hangs holds the token. Run comes back for it by itself.
func TestRunGoesOnAfterACallerHeldTheLeaser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := true
		l := codegentest.WithFaults(codegentest.NewLeaser(), func(context.Context, codegentest.Op) (bool, error) {
			if hanging {
				time.Sleep(7 * time.Second) // of the bubble's clock: longer than Run waits
				hanging = false
				return false, errors.New("connection reset by peer")
			}
			return false, nil
		})
		r := newRange(l, 7, 100)
		failed := make(chan error)
		go func() {
			_, err := r.Next(t.Context(), codegen.Need{})
			failed <- err
		}()
		synctest.Wait() // the caller is inside the leaser
		stop := run(t, r)
		defer stop()
		if err := <-failed; err == nil {
			t.Error("the caller has a code from a lease that failed")
		}
		time.Sleep(5 * time.Second)
		if s := r.Stats(); s.Leases != 1 || s.Inline != 0 {
			t.Errorf("after the leaser came back: %+v; want a spare by Run", s)
		}
	})
}

func TestGrownCountsEachLongerCodeOnce(t *testing.T) {
	g := codegen.NewRandom(rand.Reader, 7)
	for attempt := range 8 { // from the sixth on they are longer
		if _, err := g.Next(t.Context(), codegen.Need{Attempt: attempt}); err != nil {
			t.Fatal(err)
		}
	}
	if g.Grown() != 3 {
		t.Errorf("%d codes were longer, want 3", g.Grown())
	}
}
