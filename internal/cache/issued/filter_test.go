package issued_test

import (
	"fmt"
	"testing"

	"curt/internal/cache/issued"
	"curt/internal/testkit"
)

func TestFilterNeverForgets(t *testing.T) {
	testkit.Unraced(t)
	const n = 300_000
	f := issued.NewFilter()
	for i := range n {
		f.Put(fmt.Sprint("alias-", i))
	}
	for i := range n {
		if !f.Has(fmt.Sprint("alias-", i)) {
			t.Fatalf("alias-%d is gone", i)
		}
	}
	wrong := 0
	for i := range n {
		if f.Has(fmt.Sprint("other-", i)) {
			wrong++
		}
	}
	// 300,000 look-ups at 300,000 / 64 / 2^32 each: 0.3 are expected.
	if wrong > 10 {
		t.Errorf("%d of %d codes were found that nobody added", wrong, n)
	}
	if per := float64(f.Bytes()) / n; per > 12 {
		t.Errorf("%.1f bytes a code, want at most 12 (twice 4 at three quarters full)", per)
	}
}
