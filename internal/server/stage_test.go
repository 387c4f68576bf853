package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/compose"
)

func TestStageEndsItsLoopsAndReportsTheirErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 2)
		broken := errors.New("could not flush")
		s := begin(t.Context(), failed,
			compose.Loop{Name: "good", Run: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
			compose.Loop{Name: "bad", Run: func(ctx context.Context) error { <-ctx.Done(); return broken }})
		synctest.Wait()
		if err := s.end(); !errors.Is(err, broken) || !strings.Contains(err.Error(), "bad") {
			t.Errorf("end = %v", err)
		}
		if len(failed) != 0 {
			t.Errorf("a loop that was asked to end counts as failed: %v", <-failed)
		}
	})
}

// TestStagesEndInTheOrderOfAClicksWay has each stage take its time for the end: none begins
// with it before the one before is done.
func TestStagesEndInTheOrderOfAClicksWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed, said := make(chan error, 8), make(chan string, 8)
		named := func(name string) *stage {
			return begin(t.Context(), failed, compose.Loop{Name: name, Run: func(ctx context.Context) error {
				<-ctx.Done()
				said <- name + " ends"
				time.Sleep(time.Second)
				said <- name + " has ended"
				return nil
			}})
		}
		s := stages{named("support"), named("fold"), named("capture"), named("traffic")}
		if err := s.end(); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"traffic", "capture", "fold", "support"} {
			for _, want := range []string{name + " ends", name + " has ended"} {
				if got := <-said; got != want {
					t.Fatalf("%s, want: %s", got, want)
				}
			}
		}
	})
}

func TestLoopThatEndsByItselfIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 1)
		s := begin(t.Context(), failed, compose.Loop{Name: "gone", Run: func(context.Context) error { return nil }})
		if err := <-failed; !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "gone") {
			t.Errorf("failed with %v", err)
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}
