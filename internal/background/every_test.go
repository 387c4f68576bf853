package background_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/background"
)

// Every begins at once, Ticks after a turn; both end with ctx, and with their loop.
func TestTurnsEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
		defer cancel()
		every, ticks := 0, 0
		for now := range background.Every(ctx, 10*time.Second) {
			if want := began.Add(time.Duration(every) * 10 * time.Second); !now.Equal(want) {
				t.Errorf("turn %d at %s", every, now.Sub(began))
			}
			every++
		}
		if every != 4 || time.Since(began) != 35*time.Second {
			t.Errorf("%d turns in %s", every, time.Since(began))
		}
		for range background.Ticks(t.Context(), time.Second) {
			if ticks++; ticks == 3 {
				break
			}
		}
		for range background.Every(ctx, time.Second) { // at once, although ctx has ended
			ticks++
		}
		if ticks != 4 || time.Since(began) != 38*time.Second {
			t.Errorf("%d turns in %s", ticks, time.Since(began))
		}
	})
}
