package clicklog_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
)

func TestBoundTakesFoldedSegmentsFirstAndCountsTheRest(t *testing.T) {
	dir := t.TempDir()
	log := clicklogtest.Open(t, clicklog.Config{Dir: dir, SegmentBytes: 700, MaxBytes: 1000}) // two blocks each
	var ends []clicklog.Position
	for i := range uint64(10) {
		ends = append(ends, clicklogtest.AppendOne(t, log, i, clicklogtest.SomeDay()))
	}
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	log.Commit(ends[3]) // two segments are folded
	log.Trim(t.Context(), clicklogtest.SomeDay())
	stats := log.Stats()
	if stats.Bytes > 1000 {
		t.Errorf("%d bytes are left of at most 1000", stats.Bytes)
	}
	events := clicklogtest.ReadAll(t, log)
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
	log := clicklogtest.Open(t, clicklog.Config{Dir: dir, Retention: 30 * 24 * time.Hour})
	old := clicklogtest.AppendOne(t, log, 0, clicklogtest.SomeDay())
	clicklogtest.AppendOne(t, log, 1, clicklogtest.SomeDay().Add(25*time.Hour)) // a new segment: the first is a day old
	late := clicklogtest.SomeDay().Add(31 * 24 * time.Hour)
	log.Trim(t.Context(), late)
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	log.Trim(t.Context(), late)
	if got := clicklogtest.Sequences(clicklogtest.ReadAll(t, log)); fmt.Sprint(got) != "[0 1]" {
		t.Fatalf("unfolded clicks went with retention: %v are left", got)
	}
	log.Commit(old)
	log.Trim(t.Context(), late)
	if got := clicklogtest.Sequences(clicklogtest.ReadAll(t, log)); fmt.Sprint(got) != "[1]" {
		t.Errorf("after folding %v are left, want [1]", got)
	}
}

func TestRunSyncsWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := clicklogtest.Open(t, clicklog.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- log.Run(ctx) }()
		end := clicklogtest.AppendOne(t, log, 0, time.Now())
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
	config := clicklog.Config{Dir: t.TempDir(), Create: func(path string) (clicklog.File, error) {
		f, err := clicklogtest.CreateFile(path)
		return brokenSync{f, &failing, &syncs}, err
	}}
	log := clicklogtest.Open(t, config)
	first := clicklogtest.AppendOne(t, log, 0, clicklogtest.SomeDay())
	if err := log.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Sync = %v", err)
	}
	if log.Synced() != first || log.Stats().SyncErrors != 1 {
		t.Errorf("synced %v, %d errors; want %v and one: what cannot be synced is counted from memory", log.Synced(), log.Stats().SyncErrors, first)
	}
	failing = false
	second := clicklogtest.AppendOne(t, log, 1, clicklogtest.SomeDay())
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
	clicklog.File
	size, durable int64
	closed        bool
	during        func() // of the next fsync
}

func (f *durableSize) WriteAt(b []byte, at int64) (int, error) {
	f.size = max(f.size, at+int64(len(b)))
	return f.File.WriteAt(b, at)
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

func (f *durableSize) Close() error { f.closed = true; return f.File.Close() }

// TestWhatIsWrittenDuringAnFsyncWaitsForTheNext fills a segment and begins the next one while
// the first is being synced: it is not done with that, because its last block came too late.
func TestWhatIsWrittenDuringAnFsyncWaitsForTheNext(t *testing.T) {
	var files []*durableSize
	log := clicklogtest.Open(t, clicklog.Config{SegmentBytes: 700, Dir: t.TempDir(), Create: func(path string) (clicklog.File, error) {
		f, err := clicklogtest.CreateFile(path)
		files = append(files, &durableSize{File: f})
		return files[len(files)-1], err
	}})
	first := clicklogtest.AppendOne(t, log, 0, clicklogtest.SomeDay())
	files[0].during = func() {
		clicklogtest.AppendOne(t, log, 1, clicklogtest.SomeDay()) // into the same segment
		clicklogtest.AppendOne(t, log, 2, clicklogtest.SomeDay()) // into the next
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
	clicklog.File
	failing *bool
	syncs   *int
}

func (f brokenSync) Sync() error {
	*f.syncs++
	if *f.failing {
		return syscall.EIO
	}
	return f.File.Sync()
}
