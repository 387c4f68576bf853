package capture_test

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"

	"curt/internal/clicks/capture"
	"curt/internal/clicks/capture/capturetest"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/useragent"
)

func TestTheRingCountsWhatItTook(t *testing.T) {
	ring := capture.NewRing(capture.RingConfig{Bytes: 64 << 10, Shards: 4})
	var took, refused uint64
	for range 5000 {
		if ring.Record(clicklogtest.UsualClick()) {
			took++
		} else {
			refused++
		}
	}
	if ring.Recorded() != took || ring.Dropped() != refused || took == 0 || refused == 0 {
		t.Errorf("%d taken and %d refused, counted %d and %d", took, refused, ring.Recorded(), ring.Dropped())
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	ring := capture.NewRing(capture.RingConfig{})
	c := clicklogtest.UsualClick()
	if n := testing.AllocsPerRun(1000, func() { ring.Record(c) }); n != 0 {
		t.Errorf("Record allocates %v times", n)
	}
}

func TestFullRingDropsAndCounts(t *testing.T) {
	ring := capture.NewRing(capture.RingConfig{Bytes: 16 << 10, Shards: 1})
	kept, dropped := 0, 0
	for range 100 {
		if ring.Record(clicklogtest.UsualClick()) {
			kept++
		} else {
			dropped++
		}
	}
	if kept == 0 || dropped == 0 {
		t.Fatalf("kept %d, dropped %d: want both", kept, dropped)
	}
	if got := ring.Dropped(); got != uint64(dropped) {
		t.Errorf("Dropped = %d, want %d", got, dropped)
	}
}

func TestHalfFullRingWakesCapture(t *testing.T) {
	ring := capture.NewRing(capture.RingConfig{Bytes: 64 << 10, Shards: 1})
	ring.Record(clicklogtest.UsualClick())
	select {
	case <-ring.Wake():
		t.Fatal("one click woke Capture")
	default:
	}
	for range 100 { // 230 bytes each: past a half of one 32-KiB half
		ring.Record(clicklogtest.UsualClick())
	}
	select {
	case <-ring.Wake():
	default:
		t.Fatal("a half-full ring did not wake Capture")
	}
}

func TestRecordFromManyGoroutinesKeepsEveryClick(t *testing.T) {
	log := clicklogtest.Open(t, clicklog.Config{})
	ring := capture.NewRing(capture.RingConfig{Bytes: 4 << 20, Shards: 4})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}})
	var kept atomic.Int64
	var recorders sync.WaitGroup
	for range 8 {
		recorders.Go(func() {
			for range 5000 {
				if ring.Record(clicklogtest.UsualClick()) {
					kept.Add(1)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { recorders.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-ring.Wake():
		}
		if err := capturer.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	events := clicklogtest.ReadAll(t, log)
	if len(events) != int(kept.Load()) || uint64(40000-len(events)) != ring.Dropped() {
		t.Errorf("log has %d clicks, kept %d, dropped %d of 40000", len(events), kept.Load(), ring.Dropped())
	}
	for i, e := range events {
		if e.ID.Sequence != uint64(i) {
			t.Fatalf("event %d has sequence %d", i, e.ID.Sequence)
		}
	}
}

func TestLongHeadersAreCut(t *testing.T) {
	log := clicklogtest.Open(t, clicklog.Config{})
	ring := capture.NewRing(capture.RingConfig{Shards: 1})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}, Detail: capture.DetailFull})
	long := bytes.Repeat([]byte("x"), 20000)
	c := clicklogtest.UsualClick()
	c.UserAgent, c.Referrer, c.Language, c.Query, c.Code, c.Domain = long, long, long, long, long, long
	if !ring.Record(c) {
		t.Fatal("a click with long headers was dropped")
	}
	if err := capturer.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := clicklogtest.ReadAll(t, log)[0]
	domain, code := clicklog.SplitKey(e.Key)
	got := [...]int{len(e.UserAgent), len(e.Referrer), len(e.Language), len(e.Query), len(domain), len(code)}
	want := [...]int{useragent.MaxLength, capture.MaxReferrer, capture.MaxLanguage, capture.MaxQuery, 259, 64}
	if got != want {
		t.Errorf("lengths %v, want %v", got, want)
	}
}

func BenchmarkRecord(b *testing.B) {
	ring := capture.NewRing(capture.RingConfig{Bytes: 1 << 30})
	c := clicklogtest.UsualClick()
	b.ReportAllocs()
	for range b.N {
		ring.Record(c)
	}
}
