package clicks_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/clickstest"
)

// A clock that was 40 days ahead and came back leaves no promise about days to come, and
// what is complete goes on from the next drain.
func TestAClockThatCameBackPromisesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, t.TempDir(), new(clickstest.Memory), clicks.FoldConfig{})
		defer l.end(t)
		synctest.Wait()
		l.log.SetMark(time.Now().Add(40 * 24 * time.Hour).UTC())
		time.Sleep(3 * time.Second) // Fold looks each second
		synctest.Wait()
		if f := l.fold.Freshness(); f.Complete.After(time.Now()) {
			t.Errorf("ahead: complete until %v at %v", f.Complete, time.Now())
		}
		l.drain(t)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if f := l.fold.Freshness(); f.Complete.After(time.Now()) || time.Since(f.Complete) > 3*time.Second {
			t.Errorf("back: complete until %v at %v", f.Complete, time.Now())
		}
	})
}

// A promise that was true when Fold heard it may be ahead when somebody asks.
func TestAPromiseIsComparedWithTheClockOfWhoAsks(t *testing.T) {
	now := someDay()
	for ahead, known := range map[time.Duration]bool{-time.Hour: true, 0: true, time.Millisecond: false, time.Hour: false} {
		if got := clicks.NotAhead(now.Add(ahead), now); got.IsZero() == known {
			t.Errorf("%v ahead: %v", ahead, got)
		}
	}
}

func TestAClockThatIsSetIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w clicks.WallClock
		var lines bytes.Buffer
		log := slog.New(slog.NewTextHandler(&lines, nil))
		for _, by := range []time.Duration{0, time.Millisecond, -4 * time.Second, 40 * 24 * time.Hour, 0, -40 * 24 * time.Hour, 0} {
			w.Set(t.Context(), time.Now(), by, log)
			time.Sleep(time.Second)
		}
		if all := lines.String(); strings.Count(all, "\n") != 1 || !strings.Contains(all, "level=WARN") || !strings.Contains(all, "by=960h0m0s") {
			t.Error(all)
		}
		time.Sleep(time.Hour)
		w.Set(t.Context(), time.Now(), 0, log)
		if w.Set(t.Context(), time.Now(), -time.Minute, log); strings.Count(lines.String(), "\n") != 2 {
			t.Errorf("another hour: %s", lines.String())
		}
	})
}
