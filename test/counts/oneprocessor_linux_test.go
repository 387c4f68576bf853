package counts_test

import (
	"testing"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestOneProcessorCountsEachClickOnce has a single processor for redirects, for what counts them
// each second, and for the collector of garbage.
func TestOneProcessorCountsEachClickOnce(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	o := curttest.Options{Data: t.TempDir(), Env: []string{"GOMAXPROCS=1", "CURT_FOLD_INTERVAL=1s"}}
	s := curttest.Start(t, o)
	links := s.MustCreate(t, 200)
	const rounds = 20
	for range rounds {
		for _, bad := range s.Follow(t, links, 8) {
			t.Error(bad)
		}
	}
	want := int64(rounds * len(links))
	if got := s.AwaitTotal(t, links, want, patience); got != want {
		t.Errorf("%d clicks are counted, want %d", got, want)
	}
	if code, _ := s.Terminate(t); code != 0 {
		t.Errorf("exit %d", code)
	}
	s = curttest.Start(t, o)
	if got := s.AwaitTotal(t, links, want, patience); got != want {
		t.Errorf("after a restart %d clicks are counted, want %d", got, want)
	}
}
