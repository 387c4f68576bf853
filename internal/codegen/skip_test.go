package codegen_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
)

func mark(t *testing.T, l codegen.Leaser, length int) uint64 {
	t.Helper()
	m, err := l.Leased(t.Context(), codegen.Counter(codegen.DefaultPrefix, length))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRestoreSkipsTenMillionIDs(t *testing.T) {
	for age, skipped := range map[time.Duration]map[int]uint64{
		0:              {4: 230_880, 5: 10_000_000, 7: 10_000_000, 10: 10_000_000},
		-time.Hour:     {7: 10_000_000},
		time.Minute:    {7: 10_000_000},
		24 * time.Hour: {4: 230_880, 5: 14_314_575, 7: 864_000_000, 10: 864_000_000},
	} {
		l := codegentest.NewLeaser()
		for length, want := range skipped {
			if err := codegen.SkipAfterRestore(t.Context(), l, codegen.DefaultPrefix, length, age); err != nil {
				t.Fatal(err)
			}
			if got := mark(t, l, length); got != want {
				t.Errorf("restore of a backup of age %s skipped %d ids of %d digits, want %d", age, got, length, want)
			}
		}
	}
}

// TestStaleLeasesAreSkipped restores the counter of a backup under links that are
// younger: no id of theirs is made again.
func TestStaleLeasesAreSkipped(t *testing.T) {
	p := codegen.NewPermutation(testKey)
	old, stale := newRange(codegentest.NewLeaser(), 7, 1000), codegentest.NewLeaser()
	highest, living := uint64(0), make(map[string]bool)
	for range 5000 {
		code := next(t, old)
		id, ok := p.ID(code)
		if !ok {
			t.Fatalf("%q has no id", code)
		}
		highest, living[string(code)] = max(highest, id), true
	}
	skipped, err := codegen.SkipIfStale(t.Context(), stale, codegen.DefaultPrefix, 7, highest)
	if err != nil || !skipped {
		t.Fatalf("SkipIfStale: %v, %v; want true", skipped, err)
	}
	if got, want := mark(t, stale, 7), highest+1+10_000_000; got != want {
		t.Errorf("mark is %d, want %d", got, want)
	}
	again := newRange(stale, 7, 1000)
	for range 5000 {
		if code := next(t, again); living[string(code)] {
			t.Fatalf("living code %q was made again", code)
		}
	}
	if skipped, err := codegen.SkipIfStale(t.Context(), stale, codegen.DefaultPrefix, 7, mark(t, stale, 7)); !skipped || err != nil {
		t.Errorf("SkipIfStale of a counter whose next id lives: %v, %v; want true", skipped, err)
	}
	before := mark(t, stale, 7)
	if skipped, err := codegen.SkipIfStale(t.Context(), stale, codegen.DefaultPrefix, 7, before-1); skipped || err != nil {
		t.Errorf("SkipIfStale of a good counter: %v, %v; want false", skipped, err)
	}
	if after := mark(t, stale, 7); after != before {
		t.Errorf("a good counter moved from %d to %d", before, after)
	}
}

func TestSkippingReportsFaults(t *testing.T) {
	down := errors.New("disk I/O error")
	for _, failing := range []codegentest.Op{codegentest.OpLeased, codegentest.OpSkip} {
		l := codegentest.WithFaults(codegentest.NewLeaser(), func(_ context.Context, op codegentest.Op) (bool, error) {
			if op == failing {
				return false, down
			}
			return false, nil
		})
		if _, err := codegen.SkipIfStale(t.Context(), l, codegen.DefaultPrefix, 7, 10); !errors.Is(err, down) {
			t.Errorf("SkipIfStale while %s fails: %v", failing, err)
		}
		err := codegen.SkipAfterRestore(t.Context(), l, codegen.DefaultPrefix, 7, 0)
		if failing == codegentest.OpSkip && !errors.Is(err, down) {
			t.Errorf("SkipAfterRestore while Skip fails: %v", err)
		}
	}
}
