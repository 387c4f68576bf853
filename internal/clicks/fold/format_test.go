package fold_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/fold"
	"curt/internal/clicks/rollup/rolluptest"
	"curt/internal/clicks/useragent"
)

// TestTheFirstFormatIsRead: clicks of segments that a release before wrote are counted and
// shown as it did.
func TestTheFirstFormatIsRead(t *testing.T) {
	raws := clicklogtest.OddClicks(rand.New(rand.NewPCG(1, 2)), 200)
	log := clicklogtest.Open(t, clicklog.Config{Dir: t.TempDir()})
	if _, err := log.Append(clicklogtest.SealFirst(0, raws), time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(clicklogtest.SealMany(200, raws), time.Now()); err != nil {
		t.Fatal(err)
	}
	read, bots := clicklogtest.Events(t, log), useragent.NewClassifier()
	if len(read) != 400 {
		t.Fatalf("%d of 400 clicks are read", len(read))
	}
	for i := range raws {
		if read[i].Agent.Parsed() || !bytes.Equal(read[i].UserAgent, raws[i].UserAgent) {
			t.Fatalf("click %d of format 1: %+v", i, read[i])
		}
		was, is := read[i].Click(bots), read[200+i].Click(bots)
		was.Visitor, is.Visitor = 0, 0
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("click %d: -format 1 +format 2\n%s", i, diff)
		}
	}
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	if f := foldAll(t, log, 400); f.Events != 400 || f.Damages != 0 {
		t.Errorf("counted: %+v", f)
	}
}

// foldAll counts n clicks of a log.
func foldAll(t *testing.T, log *clicklog.Log, n uint64) fold.Stats {
	t.Helper()
	f := fold.New(fold.Config{Log: log, Store: new(rolluptest.Memory)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	for end := time.Now().Add(3 * time.Minute); f.Stats().Events < n && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return f.Stats()
}
