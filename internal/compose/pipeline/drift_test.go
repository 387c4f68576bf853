package pipeline

import (
	"testing"
	"time"

	"curt/internal/backend/clickhouse/reconcile"
)

// TestEveryHourIsWatched looks for a day: every hour has its turn, the newest first, and one
// that is off has each second.
func TestEveryHourIsWatched(t *testing.T) {
	var w watched
	now := time.Date(2026, 3, 14, 12, 9, 0, 0, time.UTC)
	newest := time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC) // 11 o'clock has ended 9 minutes ago
	for back := range watchHours {
		hour := w.next(now)
		if want := newest.Add(-time.Duration(back) * time.Hour); !hour.Equal(want) {
			t.Fatalf("%d. is %v, want %v", back, hour, want)
		}
		w.keep(hour, look{now, nil})
		now = now.Add(time.Second)
	}
	off := newest.Add(-3 * time.Hour)
	w.keep(off, look{now, []reconcile.Drift{{Table: "days", Off: 5}}})
	if w.off("days") != 5 || w.off("minutes") != 0 {
		t.Errorf("days are off by %d, minutes by %d", w.off("days"), w.off("minutes"))
	}
	times := map[time.Time]int{}
	for range 8 {
		now = now.Add(time.Second)
		hour := w.next(now)
		times[hour]++
		w.keep(hour, look{now, w.hours[hour].drifts})
	}
	if times[off] != 4 || len(times) != 5 {
		t.Errorf("looked at: %v", times)
	}
	w.keep(off, look{now, nil})
	if now = now.Add(time.Minute); w.off("days") != 0 || !w.next(now).Equal(newest.Add(time.Hour)) {
		t.Error("the hour that has ended ten minutes ago is not looked at first")
	}
	w.forget()
	if w.next(now); len(w.hours) != 0 {
		t.Errorf("%d hours are known that others look at", len(w.hours))
	}
}
