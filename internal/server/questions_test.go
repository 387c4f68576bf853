package server

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// runQuestions runs questions until the test ends.
func runQuestions(t *testing.T) *questions {
	t.Helper()
	q := newQuestions()
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

func TestQuestionsAreAnsweredAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := runQuestions(t)
		var now, most atomic.Int32
		release := make(chan struct{})
		var asked sync.WaitGroup
		for range 50 {
			asked.Go(func() {
				err := q.answer(t.Context(), func(context.Context) error {
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
		want := int32(questionThreads(runtime.GOMAXPROCS(0)))
		if got := now.Load(); got != want {
			t.Errorf("%d are answered at once, want %d", got, want)
		}
		close(release)
		asked.Wait()
		if got := most.Load(); got > want {
			t.Errorf("%d were answered at once, want %d at most", got, want)
		}
	})
}

func TestAQuestionWithinAQuestionHasItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := runQuestions(t)
		var asked sync.WaitGroup
		for range 20 {
			asked.Go(func() {
				inner := false
				err := q.answer(t.Context(), func(ctx context.Context) error {
					return q.answer(ctx, func(context.Context) error { inner = true; return nil })
				})
				if err != nil || !inner {
					t.Errorf("inner %t, error %v", inner, err)
				}
			})
		}
		asked.Wait() // synctest fails where all are blocked
	})
}

func TestWhoGoesAwayLosesHisTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := runQuestions(t)
		release := make(chan struct{})
		for range questionThreads(runtime.GOMAXPROCS(0)) {
			go func() {
				_ = q.answer(t.Context(), func(context.Context) error { <-release; return nil })
			}()
		}
		synctest.Wait()
		gone := errors.New("gone")
		ctx, leave := context.WithCancelCause(t.Context())
		leave(gone)
		ran := false
		err := q.answer(ctx, func(context.Context) error { ran = true; return nil })
		if !errors.Is(err, gone) || ran {
			t.Errorf("error %v, ran %t; want %v, false", err, ran, gone)
		}
		close(release)
	})
}

func TestAPanicReachesWhoAsked(t *testing.T) {
	q := runQuestions(t)
	defer func() {
		if p := recover(); p != "broken" {
			t.Errorf("recovered %v, want what was thrown", p)
		}
		if err := q.answer(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Errorf("the next: %v", err)
		}
	}()
	_ = q.answer(t.Context(), func(context.Context) error { panic("broken") })
	t.Error("no panic")
}

func TestQuestionsBeforeAndAfterRun(t *testing.T) {
	q := newQuestions()
	failed := errors.New("failed")
	ask := func() {
		t.Helper()
		if err := q.answer(t.Context(), func(context.Context) error { return failed }); !errors.Is(err, failed) {
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
