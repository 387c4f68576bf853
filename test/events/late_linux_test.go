package events_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/clicklog"
)

// noKeys gives every day the same key: nobody asks who the visitors were.
type noKeys struct{}

func (noKeys) DayKey(context.Context, time.Time) ([16]byte, error) { return [16]byte{}, nil }

// lateEach is how many clicks come late of each time.
const lateEach = 1000

// sendLate starts a server on a click log that lay somewhere for days: its clicks are of three
// other days, and of the seconds around midnight, and come after it.
func (p *plant) sendLate(t *testing.T, midnight time.Time) {
	t.Helper()
	t.Log("clicks of other days come")
	data := t.TempDir()
	log, err := clicklog.Open(clicklog.Config{Dir: filepath.Join(data, "clicks")})
	if err != nil {
		t.Fatal(err)
	}
	ring := capture.NewRing(capture.RingConfig{})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: noKeys{}})
	for i := range lateEach {
		for _, late := range []time.Duration{0, 27 * time.Hour, 36 * time.Hour, 5 * 24 * time.Hour} {
			at := midnight.Add(-late + time.Duration(i-lateEach/2)*time.Millisecond)
			taken := ring.Record(&clicks.Raw{
				Time: at.UnixMilli(), Code: []byte(p.codes[i%len(p.codes)]), Outcome: clicks.Redirected,
				UserAgent: []byte("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
			})
			if !taken {
				t.Fatal("the ring is full")
			}
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := capturer.Run(stopped); err != nil { // drains once
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	p.late += int64(capturer.Stats().Clicks)
	p.site(t, data)
}
