package redis

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCallsThatBeginTogetherEndTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeadlines(5*time.Millisecond, func() {})
		made := map[context.Context]bool{}
		for range 100 {
			begun := time.Now()
			ctx := d.next()
			made[ctx] = true
			if at, ok := ctx.Deadline(); !ok || at.Sub(begun) > 5*time.Millisecond || at.Sub(begun) < 4*time.Millisecond {
				t.Fatalf("a call may take %v", at.Sub(begun))
			}
			if err := ctx.Err(); err != nil {
				t.Fatalf("a call ends before it begins: %v", err)
			}
			time.Sleep(100 * time.Microsecond)
		}
		if len(made) < 10 || len(made) > 11 {
			t.Errorf("%d deadlines in 10 ms", len(made))
		}
		for range 3 {
			begun := time.Now()
			ctx := d.next()
			<-ctx.Done()
			if took := time.Since(begun); took > 5*time.Millisecond || took < 4*time.Millisecond || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("ended after %v with %v", took, ctx.Err())
			}
		}
	})
}
