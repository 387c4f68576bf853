package clicks_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"curt/internal/clicks"
)

// What was pinned can be read to its end although it is trimmed meanwhile, what came
// later is pinned too, and a block that is being written is not.
func TestPinsHoldWhatIsTrimmed(t *testing.T) {
	dir := t.TempDir()
	log := openLog(t, clicks.LogConfig{Dir: dir, SegmentBytes: 1, MaxBytes: 1})
	now := someDay()
	for n := range uint64(3) {
		appendOne(t, log, n, now.Add(time.Duration(n)*time.Second))
	}
	pins, err := clicks.PinLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := pins.Close(); err != nil {
			t.Error(err)
		}
	}()
	end := appendOne(t, log, 3, now.Add(3*time.Second))
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	log.SetFolded(end)
	log.Trim(t.Context(), now.Add(time.Minute))
	left := segmentFiles(t, dir)
	if len(left) > 1 {
		t.Fatalf("%d segments are left: this test trims nothing", len(left))
	}
	if err := appendFile(left[0], []byte("CURTCLK2 half of a block")); err != nil {
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
		if err != nil || !clicks.IsSegment(p.Name) {
			t.Fatalf("%s: %v", p.Name, err)
		}
	}
	r, err := clicks.ReadDir(to, clicks.Position{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	events, err := readOn(r)
	if got := sequences(events); len(got) != 4 || err != nil {
		t.Errorf("the pinned log holds %v: %v", got, err)
	}
}

func TestPinsOfNoLog(t *testing.T) {
	pins, err := clicks.PinLog(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pins.Extend(); err != nil || pins.End() != (clicks.Position{}) {
		t.Errorf("%s %v", pins.End(), err)
	}
}
