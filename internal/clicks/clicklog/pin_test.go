package clicklog_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
)

// What was pinned can be read to its end although it is trimmed meanwhile, what came
// later is pinned too, and a block that is being written is not.
func TestPinsHoldWhatIsTrimmed(t *testing.T) {
	dir := t.TempDir()
	log := clicklogtest.Open(t, clicklog.Config{Dir: dir, SegmentBytes: 1, MaxBytes: 1})
	now := clicklogtest.SomeDay()
	for n := range uint64(3) {
		clicklogtest.AppendOne(t, log, n, now.Add(time.Duration(n)*time.Second))
	}
	pins, err := clicklog.PinDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := pins.Close(); err != nil {
			t.Error(err)
		}
	}()
	end := clicklogtest.AppendOne(t, log, 3, now.Add(3*time.Second))
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	log.Commit(end)
	log.Trim(t.Context(), now.Add(time.Minute))
	left := clicklogtest.SegmentFiles(t, dir)
	if len(left) > 1 {
		t.Fatalf("%d segments are left: this test trims nothing", len(left))
	}
	if err := clicklogtest.AppendFile(left[0], []byte("CURTCLK2 half of a block")); err != nil {
		t.Fatal(err)
	}
	if err := pins.Extend(); err != nil {
		t.Fatal(err)
	}
	if pins.End() != end {
		t.Errorf("the pinned log ends at %s, want %s", pins.End(), end)
	}
	to := t.TempDir()
	for _, p := range pins.Segments() {
		text, err := io.ReadAll(io.NewSectionReader(p.File, 0, p.Size))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, p.Name), text, 0o600)
		}
		if err != nil || !clicklog.IsSegment(p.Name) {
			t.Fatalf("%s: %v", p.Name, err)
		}
	}
	r, err := clicklog.ReadDir(to, clicklog.Position{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	events, err := clicklogtest.ReadOn(r)
	if got := clicklogtest.Sequences(events); len(got) != 4 || err != nil {
		t.Errorf("the pinned log holds %v: %v", got, err)
	}
}

func TestPinsOfNoLog(t *testing.T) {
	pins, err := clicklog.PinDir(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pins.Extend(); err != nil || pins.End() != (clicklog.Position{}) {
		t.Errorf("%s %v", pins.End(), err)
	}
}
