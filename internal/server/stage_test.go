package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

func TestStageEndsItsLoopsAndReportsTheirErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 2)
		broken := errors.New("could not flush")
		s := begin(t.Context(), failed,
			loop{"good", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
			loop{"bad", func(ctx context.Context) error { <-ctx.Done(); return broken }})
		synctest.Wait()
		if err := s.end(); !errors.Is(err, broken) || !strings.Contains(err.Error(), "bad") {
			t.Errorf("end = %v", err)
		}
		if len(failed) != 0 {
			t.Errorf("a loop that was asked to end counts as failed: %v", <-failed)
		}
	})
}

func TestLoopThatEndsByItselfIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 1)
		s := begin(t.Context(), failed, loop{"gone", func(context.Context) error { return nil }})
		if err := <-failed; !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "gone") {
			t.Errorf("failed with %v", err)
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}
