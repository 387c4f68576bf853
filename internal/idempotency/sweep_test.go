package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/idempotency"
	"curt/internal/idempotency/idempotencytest"
	"curt/internal/link"
)

func TestMemory(t *testing.T) {
	idempotencytest.Run(t, idempotencytest.Harness{
		Open: func(testing.TB) idempotency.Store { return idempotencytest.NewMemory() },
	})
}

// The sweeper removes what is older than a day, however much it is, and nothing else,
// and goes on after the store failed.
func TestSweeperForgetsAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := idempotencytest.NewMemory()
		claim := func(n int) idempotency.Name {
			name := idempotency.Name{Caller: "c", Key: fmt.Sprint(n)}
			if _, err := store.Claim(t.Context(), name, idempotencytest.Sample(n, time.Now()), time.Time{}); err != nil {
				t.Fatal(err)
			}
			return name
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		s := idempotency.NewSweeper(failing{store, time.Now().Add(time.Hour)}, time.Now, slog.New(slog.DiscardHandler))
		go func() { ended <- s.Run(ctx) }()
		for n := range 1200 {
			claim(n)
		}
		time.Sleep(idempotency.Retention - time.Minute)
		young := claim(9999)
		if n := store.Len(); n != 1201 {
			t.Errorf("%d records before their day is over, want 1,201", n)
		}
		time.Sleep(12 * time.Minute)
		if _, err := store.Find(t.Context(), young); err != nil || store.Len() != 1 {
			t.Errorf("%d records after their day, the youngest: %v", store.Len(), err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// failing cannot be asked until a time.
type failing struct {
	*idempotencytest.Memory

	until time.Time
}

func (f failing) Forget(ctx context.Context, before time.Time, limit int) (int, error) {
	if time.Now().Before(f.until) {
		return 0, link.ErrUnavailable
	}
	return f.Memory.Forget(ctx, before, limit)
}
