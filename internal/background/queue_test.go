package background

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// runQueue runs a queue until the test ends.
func runQueue(t *testing.T) *queue {
	t.Helper()
	q := newQueue()
	ctx, stop := context.WithCancel(t.Context())
	var ran sync.WaitGroup
	ran.Go(func() {
		if err := q.run(ctx, func() {}); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(func() { stop(); ran.Wait() })
	<-q.begun
	return q
}

func TestAFewQueriesRunAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := runQueue(t)
		var now, most atomic.Int32
		release := make(chan struct{})
		var asked sync.WaitGroup
		for range 50 {
			asked.Go(func() {
				err := q.do(t.Context(), func(context.Context) error {
					most.Store(max(most.Load(), now.Add(1)))
					<-release
					now.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		want := int32(queueThreads(runtime.GOMAXPROCS(0)))
		if got := now.Load(); got != want {
			t.Errorf("%d run at once, want %d", got, want)
		}
		close(release)
		asked.Wait()
		if got := most.Load(); got > want {
			t.Errorf("%d ran at once, want %d at most", got, want)
		}
	})
}

func TestAQueryWithinAQueryBelongsToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := runQueue(t)
		var asked sync.WaitGroup
		for range 20 {
			asked.Go(func() {
				inner := false
				err := q.do(t.Context(), func(ctx context.Context) error {
					return q.do(ctx, func(context.Context) error { inner = true; return nil })
				})
				if err != nil || !inner {
					t.Errorf("inner %t, error %v", inner, err)
				}
			})
		}
		asked.Wait() // synctest fails where all are blocked
	})
}

func TestAQueryWithoutACallerIsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := runQueue(t)
		release := make(chan struct{})
		for range queueThreads(runtime.GOMAXPROCS(0)) {
			go func() {
				_ = q.do(t.Context(), func(context.Context) error { <-release; return nil })
			}()
		}
		synctest.Wait()
		gone := errors.New("gone")
		ctx, leave := context.WithCancelCause(t.Context())
		leave(gone)
		ran := false
		err := q.do(ctx, func(context.Context) error { ran = true; return nil })
		if !errors.Is(err, gone) || ran {
			t.Errorf("error %v, ran %t; want %v, false", err, ran, gone)
		}
		close(release)
	})
}

func TestAPanicReachesTheCaller(t *testing.T) {
	q := runQueue(t)
	defer func() {
		if p := recover(); p != "broken" {
			t.Errorf("recovered %v, want what was thrown", p)
		}
		if err := q.do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Errorf("the next: %v", err)
		}
	}()
	_ = q.do(t.Context(), func(context.Context) error { panic("broken") })
	t.Error("no panic")
}

func TestQueriesBeforeAndAfterRun(t *testing.T) {
	q := newQueue()
	failed := errors.New("failed")
	ask := func() {
		t.Helper()
		if err := q.do(t.Context(), func(context.Context) error { return failed }); !errors.Is(err, failed) {
			t.Errorf("error %v, want %v", err, failed)
		}
	}
	ask()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := q.run(ctx, func() {}); err != nil {
		t.Fatal(err)
	}
	ask()
}
