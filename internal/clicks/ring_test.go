package clicks_test

import (
	"bytes"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"curt/internal/clicks"
)

func usualClick() *clicks.Raw {
	return &clicks.Raw{
		Time: 1_800_000_000_000, Code: []byte("abc1234"), Outcome: clicks.Redirected,
		Addr:      netip.MustParseAddr("203.0.113.9"),
		UserAgent: []byte("Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"),
		Referrer:  []byte("https://news.example/"), Language: []byte("en-US,en;q=0.9"), Query: []byte("utm_source=x"),
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	ring := clicks.NewRing(clicks.RingConfig{})
	c := usualClick()
	if n := testing.AllocsPerRun(1000, func() { ring.Record(c) }); n != 0 {
		t.Errorf("Record allocates %v times", n)
	}
}

func TestFullRingDropsAndCounts(t *testing.T) {
	ring := clicks.NewRing(clicks.RingConfig{Bytes: 16 << 10, Shards: 1})
	kept, dropped := 0, 0
	for range 100 {
		if ring.Record(usualClick()) {
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
	ring := clicks.NewRing(clicks.RingConfig{Bytes: 64 << 10, Shards: 1})
	ring.Record(usualClick())
	select {
	case <-ring.Wake():
		t.Fatal("one click woke Capture")
	default:
	}
	for range 100 { // 230 bytes each: past a half of one 32-KiB half
		ring.Record(usualClick())
	}
	select {
	case <-ring.Wake():
	default:
		t.Fatal("a half-full ring did not wake Capture")
	}
}

func TestRecordFromManyGoroutinesKeepsEveryClick(t *testing.T) {
	log := openLog(t, clicks.LogConfig{})
	ring := clicks.NewRing(clicks.RingConfig{Bytes: 4 << 20, Shards: 4})
	capture := clicks.NewCapture(clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}})
	var kept atomic.Int64
	var recorders sync.WaitGroup
	for range 8 {
		recorders.Go(func() {
			for range 5000 {
				if ring.Record(usualClick()) {
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
		if err := capture.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	events := readAll(t, log)
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
	log := openLog(t, clicks.LogConfig{})
	ring := clicks.NewRing(clicks.RingConfig{Shards: 1})
	capture := clicks.NewCapture(clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}, Detail: clicks.DetailFull})
	long := bytes.Repeat([]byte("x"), 20000)
	c := usualClick()
	c.UserAgent, c.Referrer, c.Language, c.Query, c.Code, c.Domain = long, long, long, long, long, long
	if !ring.Record(c) {
		t.Fatal("a click with long headers was dropped")
	}
	if err := capture.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := readAll(t, log)[0]
	domain, code := clicks.DecodeKey(e.Key)
	got := [...]int{len(e.UserAgent), len(e.Referrer), len(e.Language), len(e.Query), len(domain), len(code)}
	want := [...]int{clicks.MaxUserAgent, clicks.MaxReferrer, clicks.MaxLanguage, clicks.MaxQuery, 259, 64}
	if got != want {
		t.Errorf("lengths %v, want %v", got, want)
	}
}

func BenchmarkRecord(b *testing.B) {
	ring := clicks.NewRing(clicks.RingConfig{Bytes: 1 << 30})
	c := usualClick()
	b.ReportAllocs()
	for range b.N {
		ring.Record(c)
	}
}
