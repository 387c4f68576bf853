package clicks_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"curt/internal/clicks"
	"curt/internal/clicks/clickstest"
)

// waiting is the folder of a log of two segments of which nothing was counted.
func waiting(t *testing.T) (dir string, segments []string) {
	t.Helper()
	dir = t.TempDir()
	log := openLog(t, clicks.LogConfig{Dir: dir, SegmentBytes: 1})
	ring := clicks.NewRing(clicks.RingConfig{Bytes: 1 << 20, Shards: 1})
	capture := clicks.NewCapture(clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}})
	for range 2 {
		ring.Record(&clicks.Raw{Time: 1_780_000_000_000, Code: []byte("abc"), Outcome: clicks.Redirected})
		if err := capture.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "*.clicks"))
	if err != nil || len(segments) != 2 {
		t.Fatal(segments, err)
	}
	return dir, segments
}

// Clicks that went with a segment before they were counted are noticed by the next start, and
// by doctor's recount.
func TestALogThatLostASegmentSaysSo(t *testing.T) {
	for name, lose := range map[string]func(segment string) error{
		"emptied": func(segment string) error { return os.Truncate(segment, 0) },
		"deleted": func(segment string) error {
			index := strings.TrimSuffix(segment, ".clicks") + ".index"
			return errors.Join(os.WriteFile(index, nil, 0o600), os.Remove(segment))
		},
		"whole": func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir, segments := waiting(t)
			if err := lose(segments[0]); err != nil {
				t.Fatal(err)
			}
			want := 1
			if name == "whole" {
				want = 0
			}
			recount, err := clicks.RecountDir(t.Context(), dir, 0, clicks.Position{}, func(int64, int64) {})
			if err != nil || len(recount.Damages) != want {
				t.Errorf("doctor finds %v, %v", recount.Damages, err)
			}
			synctest.Test(t, func(t *testing.T) {
				var told strings.Builder
				log, err := clicks.OpenLog(clicks.LogConfig{Dir: dir, Logger: slog.New(slog.NewTextHandler(&told, nil))})
				if err != nil {
					t.Fatal(err)
				}
				fold := clicks.NewFold(clicks.FoldConfig{Log: log, Store: new(clickstest.Memory)})
				ctx, end := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- fold.Run(ctx) }()
				synctest.Wait()
				if n := log.Stats().Damages; n != uint64(want) || strings.Contains(told.String(), filepath.Base(segments[0])) != (want == 1) {
					t.Errorf("%d places are damaged; the log says %q", n, told.String())
				}
				if n := fold.Stats().Events; n != uint64(2-want) {
					t.Errorf("%d clicks are counted", n)
				}
				end()
				if err := errors.Join(<-done, log.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A stop that cannot write says what it costs.
func TestAStopWithoutRoomSaysHowManyClicksAreLost(t *testing.T) {
	dir := t.TempDir()
	log := openLog(t, clicks.LogConfig{Dir: dir})
	ring := clicks.NewRing(clicks.RingConfig{Bytes: 1 << 20, Shards: 2})
	capture := clicks.NewCapture(clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}})
	if err := os.RemoveAll(dir); err != nil { // no segment can be made
		t.Fatal(err)
	}
	for range 200 {
		ring.Record(&clicks.Raw{Time: 1_780_000_000_000, Code: []byte("abc"), Outcome: clicks.Redirected})
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := capture.Run(ctx); err == nil || !strings.Contains(err.Error(), "200 clicks that waited in memory are lost") {
		t.Errorf("it ends with %v", err)
	}
}
