package fold_test

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
	"curt/internal/clicks/capture"
	"curt/internal/clicks/capture/capturetest"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/fold"
	"curt/internal/clicks/recount"
	"curt/internal/clicks/rollup/rolluptest"
)

// TestFoldGoesOnBehindADamageOfItsOwnTime damages the block that was written last, under a
// running Fold: what is captured afterwards counts.
func TestFoldGoesOnBehindADamageOfItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, store := t.TempDir(), new(rolluptest.Memory)
		l := begin(t, dir, store, fold.Config{Paused: true})
		for range 3 {
			l.ring.Record(clicklogtest.UsualClick())
			l.drain(t)
		}
		path := clicklogtest.SegmentFiles(t, dir)[0]
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-1] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		l.end(t)
		l = begin(t, dir, store, fold.Config{})
		synctest.Wait()
		l.ring.Record(clicklogtest.UsualClick())
		l.drain(t)
		synctest.Wait()
		if s, log := l.fold.Stats(), l.log.Stats(); s.Events != 3 || s.Damages != 1 || log.Damages != 1 {
			t.Errorf("%+v, %+v", s, log)
		}
		l.end(t)
	})
}

// TestFoldGoesOnBehindACountedEndThatIsGone: its place lies behind what is left, where no
// click is lost.
func TestFoldGoesOnBehindACountedEndThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, store := t.TempDir(), new(rolluptest.Memory)
		l := begin(t, dir, store, fold.Config{})
		for range 2 {
			l.ring.Record(clicklogtest.UsualClick())
			l.drain(t)
		}
		synctest.Wait()
		l.end(t)
		path := clicklogtest.SegmentFiles(t, dir)[0]
		info, err := os.Stat(path)
		if err == nil {
			err = os.Truncate(path, info.Size()-5)
		}
		if err != nil {
			t.Fatal(err)
		}
		l = begin(t, dir, store, fold.Config{})
		synctest.Wait()
		l.ring.Record(clicklogtest.UsualClick())
		l.drain(t)
		synctest.Wait()
		if s, log := l.fold.Stats(), l.log.Stats(); s.Events != 1 || s.Damages != 0 || log.Damages != 1 || log.TruncatedBytes == 0 {
			t.Errorf("%+v, %+v", s, log)
		}
		l.end(t)
	})
}

// waiting is the folder of a log of two segments of which nothing was counted.
func waiting(t *testing.T) (dir string, segments []string) {
	t.Helper()
	dir = t.TempDir()
	log := clicklogtest.Open(t, clicklog.Config{Dir: dir, SegmentBytes: 1})
	ring := capture.NewRing(capture.RingConfig{Bytes: 1 << 20, Shards: 1})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}})
	for range 2 {
		ring.Record(&clicks.Raw{Time: 1_780_000_000_000, Code: []byte("abc"), Outcome: clicks.Redirected})
		if err := capturer.Drain(t.Context()); err != nil {
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
			recount, err := recount.Dir(t.Context(), dir, 0, clicklog.Position{}, func(int64, int64) {})
			if err != nil || len(recount.Damages) != want {
				t.Errorf("doctor finds %v, %v", recount.Damages, err)
			}
			synctest.Test(t, func(t *testing.T) {
				var told strings.Builder
				log, err := clicklog.Open(clicklog.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(&told, nil))})
				if err != nil {
					t.Fatal(err)
				}
				fold := fold.New(fold.Config{Log: log, Store: new(rolluptest.Memory)})
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
