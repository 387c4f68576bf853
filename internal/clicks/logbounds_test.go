package clicks_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/clicks"
)

func TestBoundTakesFoldedSegmentsFirstAndCountsTheRest(t *testing.T) {
	dir := t.TempDir()
	log := openLog(t, clicks.LogConfig{Dir: dir, SegmentBytes: 700, MaxBytes: 1000}) // two blocks each
	var ends []clicks.Position
	for i := range uint64(10) {
		ends = append(ends, appendOne(t, log, i, someDay()))
	}
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	log.SetFolded(ends[3]) // two segments are folded
	log.Trim(t.Context(), someDay())
	stats := log.Stats()
	if stats.Bytes > 1000 {
		t.Errorf("%d bytes are left of at most 1000", stats.Bytes)
	}
	events := readAll(t, log)
	first := events[0].ID.Sequence
	if lost := first - 4; stats.LostClicks != lost || first <= 4 {
		t.Errorf("first left is %d, lost %d: want the clicks from 4 on counted", first, stats.LostClicks)
	}
	if last := events[len(events)-1].ID.Sequence; last != 9 {
		t.Errorf("last left is %d, want 9", last)
	}
}

func TestRetentionUnlinksFoldedSegmentsOnly(t *testing.T) {
	dir := t.TempDir()
	log := openLog(t, clicks.LogConfig{Dir: dir, Retention: 30 * 24 * time.Hour})
	old := appendOne(t, log, 0, someDay())
	appendOne(t, log, 1, someDay().Add(25*time.Hour)) // a new segment: the first is a day old
	late := someDay().Add(31 * 24 * time.Hour)
	log.Trim(t.Context(), late)
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	log.Trim(t.Context(), late)
	if got := sequences(readAll(t, log)); fmt.Sprint(got) != "[0 1]" {
		t.Fatalf("unfolded clicks went with retention: %v are left", got)
	}
	log.SetFolded(old)
	log.Trim(t.Context(), late)
	if got := sequences(readAll(t, log)); fmt.Sprint(got) != "[1]" {
		t.Errorf("after folding %v are left, want [1]", got)
	}
}

func TestRunSyncsWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := openLog(t, clicks.LogConfig{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- log.Run(ctx) }()
		end := appendOne(t, log, 0, time.Now())
		if log.Synced() == end {
			t.Error("synced before Run")
		}
		time.Sleep(time.Second) // of the bubble's clock
		synctest.Wait()
		if log.Synced() != end {
			t.Errorf("synced %v a second later, want %v", log.Synced(), end)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestFailedSyncEndsTheSegmentForGood(t *testing.T) {
	failing, syncs := true, 0
	config := clicks.LogConfig{Dir: t.TempDir()}.WithFiles(func(path string) (clicks.SegmentFile, error) {
		f, err := clicks.CreateSegment(path)
		return brokenSync{f, &failing, &syncs}, err
	})
	log := openLog(t, config)
	first := appendOne(t, log, 0, someDay())
	if err := log.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Sync = %v", err)
	}
	if log.Synced() != first || log.Stats().SyncErrors != 1 {
		t.Errorf("synced %v, %d errors; want %v and one: what cannot be synced is counted from memory", log.Synced(), log.Stats().SyncErrors, first)
	}
	failing = false
	second := appendOne(t, log, 1, someDay())
	if second.Segment == first.Segment {
		t.Error("more was appended behind pages that may be lost")
	}
	if err := log.Sync(); err != nil || log.Synced() != second {
		t.Errorf("Sync = %v, synced %v", err, log.Synced())
	}
	if syncs != 2 {
		t.Errorf("%d fsyncs of segments, want 2: the failed one is not repeated", syncs)
	}
}

// durableSize knows how much of a segment an fsync has seen, and lets others write during it.
type durableSize struct {
	clicks.SegmentFile
	size, durable int64
	closed        bool
	during        func() // of the next fsync
}

func (f *durableSize) WriteAt(b []byte, at int64) (int, error) {
	f.size = max(f.size, at+int64(len(b)))
	return f.SegmentFile.WriteAt(b, at)
}

func (f *durableSize) Sync() error {
	seen := f.size
	if during := f.during; during != nil {
		f.during = nil
		during()
	}
	f.durable = seen
	return nil
}

func (f *durableSize) Close() error { f.closed = true; return f.SegmentFile.Close() }

// TestWhatIsWrittenDuringAnFsyncWaitsForTheNext fills a segment and begins the next one while
// the first is being synced: it is not done with that, because its last block came too late.
func TestWhatIsWrittenDuringAnFsyncWaitsForTheNext(t *testing.T) {
	var files []*durableSize
	log := openLog(t, clicks.LogConfig{SegmentBytes: 700, Dir: t.TempDir()}.WithFiles(func(path string) (clicks.SegmentFile, error) {
		f, err := clicks.CreateSegment(path)
		files = append(files, &durableSize{SegmentFile: f})
		return files[len(files)-1], err
	}))
	first := appendOne(t, log, 0, someDay())
	files[0].during = func() {
		appendOne(t, log, 1, someDay()) // into the same segment
		appendOne(t, log, 2, someDay()) // into the next
	}
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 || files[0].size != 2*first.Offset || log.Synced() != first {
		t.Fatalf("%d segments, the first of %d bytes, synced up to %v, want %v", len(files), files[0].size, log.Synced(), first)
	}
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	if log.Synced() != log.End() {
		t.Errorf("synced up to %v of %v", log.Synced(), log.End())
	}
	for i, f := range files {
		if f.durable != f.size {
			t.Errorf("segment %d: %d bytes of %d are on the disk, and the log says that all are", i, f.durable, f.size)
		}
	}
	if !files[0].closed || files[1].closed {
		t.Errorf("closed %v and %v, want the full segment alone", files[0].closed, files[1].closed)
	}
}

type brokenSync struct {
	clicks.SegmentFile
	failing *bool
	syncs   *int
}

func (f brokenSync) Sync() error {
	*f.syncs++
	if *f.failing {
		return syscall.EIO
	}
	return f.SegmentFile.Sync()
}
