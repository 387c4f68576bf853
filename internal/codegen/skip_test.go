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

// bounds are the least and the most that may be skipped of a length.
type bounds struct{ least, most uint64 }

func (b bounds) hold(n uint64) bool { return b.least <= n && n <= b.most }

func usual() map[int]bounds {
	return map[int]bounds{
		4: {115_440, 230_880}, 5: {10_000_000, 14_314_575}, 6: {10_000_000, 20_000_000},
		7: {10_000_000, 20_000_000}, 10: {10_000_000, 20_000_000},
	}
}

func TestRestoreSkipsTenToTwentyMillionIDs(t *testing.T) {
	for age, skipped := range map[time.Duration]map[int]bounds{
		0:           usual(),
		-time.Hour:  usual(),
		time.Minute: usual(),
		24 * time.Hour: {
			4: {230_880, 230_880}, 5: {14_314_575, 14_314_575},
			7: {864_000_000, 874_000_000}, 10: {864_000_000, 874_000_000},
		},
	} {
		l := codegentest.NewLeaser()
		for length, want := range skipped {
			if err := codegen.SkipAfterRestore(t.Context(), l, codegen.DefaultPrefix, length, age); err != nil {
				t.Fatal(err)
			}
			if got := mark(t, l, length); !want.hold(got) {
				t.Errorf("restore of a backup of age %s skipped %d ids of %d digits, want %v", age, got, length, want)
			}
		}
	}
}

// Two who start from the same place part: of 20 none goes on where another does.
func TestCopiesPart(t *testing.T) {
	for length, want := range usual() {
		met := map[uint64]bool{}
		for range 20 {
			l := codegentest.NewLeaser()
			ids, err := codegen.SkipApart(t.Context(), l, codegen.DefaultPrefix, length)
			if err != nil || ids != mark(t, l, length) || !want.hold(ids) {
				t.Fatalf("SkipApart of %d digits: %d, %v; want %v", length, ids, err, want)
			}
			met[ids] = true
		}
		if len(met) < 15 { // of four digits there are 115,440 places
			t.Errorf("20 copies go on from %d places of %d digits", len(met), length)
		}
	}
}

func TestLeasesOfBeforeArePassed(t *testing.T) {
	l := codegentest.NewLeaser()
	ids, err := codegen.SkipPast(t.Context(), l, codegen.DefaultPrefix, 7, 30_000)
	if want := (bounds{10_030_000, 20_030_000}); err != nil || !want.hold(ids) || mark(t, l, 7) != ids {
		t.Errorf("SkipPast: %d, %v; want %v", ids, err, want)
	}
	before := mark(t, l, 7)
	if ids, err := codegen.SkipPast(t.Context(), l, codegen.DefaultPrefix, 7, before); ids != 0 || err != nil || mark(t, l, 7) != before {
		t.Errorf("SkipPast of what is leased already: %d, %v; want 0", ids, err)
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
	if got, want := mark(t, stale, 7), (bounds{highest + 1 + 10_000_000, highest + 1 + 20_000_000}); !want.hold(got) {
		t.Errorf("mark is %d, want %v", got, want)
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
		_, err := codegen.SkipApart(t.Context(), l, codegen.DefaultPrefix, 7)
		if failing == codegentest.OpSkip && !errors.Is(err, down) {
			t.Errorf("SkipApart while Skip fails: %v", err)
		}
		err = codegen.SkipAfterRestore(t.Context(), l, codegen.DefaultPrefix, 7, 0)
		if failing == codegentest.OpSkip && !errors.Is(err, down) {
			t.Errorf("SkipAfterRestore while Skip fails: %v", err)
		}
	}
}
