package clicks_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/clicks"
)

func startCapture(t *testing.T, c clicks.CaptureConfig) (capture *clicks.Capture, stop func() error) {
	t.Helper()
	capture = clicks.NewCapture(c)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- capture.Run(ctx) }()
	return capture, func() error { cancel(); return <-done }
}

func TestCaptureDrainsWithinAHundredMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, ring := openLog(t, clicks.LogConfig{}), clicks.NewRing(clicks.RingConfig{})
		_, stop := startCapture(t, clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}})
		ring.Record(usualClick())
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if n := len(readAll(t, log)); n != 1 {
			t.Errorf("%d clicks in the log after 100 ms", n)
		}
		if mark := log.Mark(); mark.Position != log.End() || time.Since(mark.Time) > 200*time.Millisecond {
			t.Errorf("watermark %+v at %v", mark, log.End())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestNoWatermarkPassesAClickThatComesLate has clicks reach the ring 50 ms after the time of
// their request, between drains at any distance and of several blocks: no block and no mark of
// the log promises what a later block then breaks.
func TestNoWatermarkPassesAClickThatComesLate(t *testing.T) {
	const late = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		log, ring := openLog(t, clicks.LogConfig{}), clicks.NewRing(clicks.RingConfig{})
		capture := clicks.NewCapture(clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}, Detail: clicks.DetailFull})
		record := func(at time.Time, n int) {
			c := usualClick()
			c.Time = at.UnixMilli()
			for range n {
				if !ring.Record(c) {
					t.Fatal("full")
				}
			}
		}
		drain := func() {
			if err := capture.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var marks []clicks.Watermark
		for _, n := range []int{1, 14000, 1} { // 14000 are three blocks
			for gap := time.Duration(0); gap <= late; gap += 7 * time.Millisecond {
				asked := time.Now()
				record(asked, n) // of a request that was quick
				time.Sleep(gap)
				drain()
				marks = append(marks, log.Mark())
				time.Sleep(late - gap)
				record(asked, 1) // and of one that was not
			}
		}
		drain()
		checkWatermarks(t, log, marks)
	})
}

// checkWatermarks reads the log from its end on: what is behind a watermark is not of before it.
func checkWatermarks(t *testing.T, log *clicks.Log, marks []clicks.Watermark) {
	t.Helper()
	var blocks []clicks.Block
	r := log.Read(clicks.Position{})
	defer r.Close()
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, b)
	}
	if len(blocks) < 30 {
		t.Fatalf("%d blocks: the test proves nothing", len(blocks))
	}
	behind := func(p clicks.Position) (earliest int64) {
		earliest = math.MaxInt64
		for _, b := range blocks {
			if b.At.Compare(p) >= 0 {
				earliest = min(earliest, b.Earliest)
			}
		}
		return earliest
	}
	for _, b := range blocks {
		if earliest := behind(b.Next); earliest < b.Watermark {
			t.Errorf("block at %v promises all before %d, and a click of %d is behind it", b.At, b.Watermark, earliest)
		}
	}
	for _, m := range marks {
		if earliest := behind(m.Position); earliest < m.Time.UnixMilli() {
			t.Errorf("the log to %v promises all before %d, and a click of %d is behind it", m.Position, m.Time.UnixMilli(), earliest)
		}
	}
}

func TestCaptureDrainsAndSyncsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, ring := openLog(t, clicks.LogConfig{}), clicks.NewRing(clicks.RingConfig{})
		_, stop := startCapture(t, clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}})
		for range 500 {
			ring.Record(usualClick())
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if n := len(readAll(t, log)); n != 500 || log.Synced() != log.End() {
			t.Errorf("%d clicks of 500, synced %v of %v", n, log.Synced(), log.End())
		}
	})
}

func TestClicksWaitInTheRingWhileTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var room atomic.Int64
		room.Store(0)
		log := openLog(t, clicks.LogConfig{Dir: t.TempDir()}.WithFiles(func(path string) (clicks.SegmentFile, error) {
			f, err := clicks.CreateSegment(path)
			return fullDisk{f, &room, false}, err
		}))
		ring := clicks.NewRing(clicks.RingConfig{Bytes: 64 << 10, Shards: 2})
		capture, stop := startCapture(t, clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}})
		kept := 0
		for range 20 {
			for range 50 {
				if ring.Record(usualClick()) {
					kept++
				}
			}
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		if uint64(kept)+ring.Dropped() != 1000 || ring.Dropped() == 0 {
			t.Errorf("kept %d, dropped %d of 1000: want all accounted for, and some dropped", kept, ring.Dropped())
		}
		if n := len(readAll(t, log)); n != 0 || capture.Stats().Errors == 0 {
			t.Errorf("%d clicks on a full disk, %d errors", n, capture.Stats().Errors)
		}
		room.Store(1 << 30)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(readAll(t, log)); n != kept {
			t.Errorf("%d clicks after space returned, kept %d", n, kept)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A disk that is full for two minutes and a half is logged at first, each minute, and when
// there has been room for a minute: not at each drain.
func TestAFullDiskIsLoggedEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var room atomic.Int64
		var lines bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&lines, nil))
		log := openLog(t, clicks.LogConfig{Dir: t.TempDir()}.WithFiles(func(path string) (clicks.SegmentFile, error) {
			f, err := clicks.CreateSegment(path)
			return fullDisk{f, &room, false}, err
		}))
		ring := clicks.NewRing(clicks.RingConfig{})
		ring.Record(usualClick())
		_, stop := startCapture(t, clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}, Logger: logger})
		time.Sleep(150 * time.Second)
		synctest.Wait()
		if n := strings.Count(lines.String(), "clicks wait in memory"); n != 3 {
			t.Errorf("%d lines:\n%.2000s", n, lines.String())
		}
		room.Store(1 << 30)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if all := lines.String(); strings.Count(all, "\n") != 4 || strings.Count(all, "clicks no longer wait in memory") != 1 {
			t.Errorf("in all:\n%.2000s", all)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A drain of more than one block that fails in the middle must neither lose nor
// repeat a click.
func TestDrainThatFailsHalfwayGoesOn(t *testing.T) {
	var room atomic.Int64
	room.Store(1100 << 10) // one block of the three
	log := openLog(t, clicks.LogConfig{Dir: t.TempDir()}.WithFiles(func(path string) (clicks.SegmentFile, error) {
		f, err := clicks.CreateSegment(path)
		return shrinking{f, &room}, err
	}))
	ring := clicks.NewRing(clicks.RingConfig{Shards: 3})
	capture := clicks.NewCapture(clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}, Detail: clicks.DetailFull})
	const n = 14000
	for i := range n {
		c := usualClick()
		c.Time += int64(i)
		if !ring.Record(c) {
			t.Fatal("full")
		}
	}
	if err := capture.Drain(t.Context()); err == nil {
		t.Fatal("a drain of three blocks fit into one")
	}
	ring.Record(usualClick())
	room.Store(1 << 30)
	for range 2 { // the second takes what came while the first was pending
		if err := capture.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[int64]int{}
	for i, e := range readAll(t, log) {
		seen[e.Time-usualClick().Time]++
		if e.ID.Sequence != uint64(i) {
			t.Fatalf("event %d has sequence %d", i, e.ID.Sequence)
		}
	}
	for i := range int64(n) {
		want := 1
		if i == 0 {
			want = 2 // and the one recorded in between
		}
		if seen[i] != want {
			t.Fatalf("click %d is %d times in the log", i, seen[i])
		}
	}
}

// shrinking has room for so many bytes in all.
type shrinking struct {
	clicks.SegmentFile
	room *atomic.Int64
}

func (f shrinking) WriteAt(b []byte, at int64) (int, error) {
	n, err := fullDisk{f.SegmentFile, f.room, false}.WriteAt(b, at)
	f.room.Add(-int64(n))
	return n, err
}

// brokenKeys has no keys.
type brokenKeys struct{ asked *int }

func (b brokenKeys) DayKey(context.Context, time.Time) ([16]byte, error) {
	*b.asked++
	return [16]byte{}, errors.New("the link store is away")
}

func TestClicksAreKeptWithoutADayKey(t *testing.T) {
	log, ring := openLog(t, clicks.LogConfig{}), clicks.NewRing(clicks.RingConfig{})
	asked := 0
	capture := clicks.NewCapture(clicks.CaptureConfig{Ring: ring, Log: log, Keys: brokenKeys{&asked}})
	for range 100 {
		ring.Record(usualClick())
	}
	if err := capture.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	events := readAll(t, log)
	if len(events) != 100 || events[0].Visitor != 0 || capture.Stats().Untagged != 100 || asked != 1 {
		t.Errorf("%d clicks, visitor %d, %d untagged, store asked %d times", len(events), events[0].Visitor, capture.Stats().Untagged, asked)
	}
}

func TestVisitorTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no click has to go on before the key is there
		log, ring := openLog(t, clicks.LogConfig{}), clicks.NewRing(clicks.RingConfig{Shards: 1})
		capture := clicks.NewCapture(clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}})
		tag := func(addr, agent string, after time.Duration) uint64 {
			c := usualClick()
			c.Addr, c.UserAgent = netip.Addr{}, []byte(agent)
			if addr != "" {
				c.Addr = netip.MustParseAddr(addr)
			}
			c.Time += after.Milliseconds()
			ring.Record(c)
			if err := capture.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			events := readAll(t, log)
			return events[len(events)-1].Visitor
		}
		one := tag("203.0.113.9", "a", 0)
		for name, test := range map[string]struct {
			tag  uint64
			same bool
		}{
			"again":                       {tag("203.0.113.9", "a", time.Hour), true},
			"as IPv4 in IPv6":             {tag("::ffff:203.0.113.9", "a", 0), true},
			"another address":             {tag("203.0.113.10", "a", 0), false},
			"another user agent":          {tag("203.0.113.9", "b", 0), false},
			"the next day":                {tag("203.0.113.9", "a", 24*time.Hour), false},
			"the same day after midnight": {tag("203.0.113.9", "a", 0), true},
		} {
			if got := test.tag == one; got != test.same {
				t.Errorf("%s: same tag = %v", name, got)
			}
		}
		six := tag("2001:db8:1:2:3:4:5:6", "a", 0)
		if tag("2001:db8:1:2:ffff::1", "a", 0) != six || tag("2001:db8:1:3::1", "a", 0) == six {
			t.Error("IPv6 addresses are not told apart by /64")
		}
		if tag("", "a", 0) != 0 {
			t.Error("a click without address has a visitor")
		}
	})
}

func TestAddressesReachNoDisk(t *testing.T) {
	dir := t.TempDir()
	log, ring := openLog(t, clicks.LogConfig{Dir: dir}), clicks.NewRing(clicks.RingConfig{})
	capture := clicks.NewCapture(clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}, Detail: clicks.DetailFull})
	canaries := []string{"198.51.100.213", "2001:db8:feed:beef:dead:c0de:1234:5678"}
	for _, a := range canaries {
		c := usualClick()
		c.Addr = netip.MustParseAddr(a)
		ring.Record(c)
	}
	if err := capture.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, file := range segmentFiles(t, dir) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range canaries {
			addr := netip.MustParseAddr(a)
			sixteen := addr.As16()
			if strings.Contains(string(b), a) || bytes.Contains(b, addr.AsSlice()) || bytes.Contains(b, sixteen[:]) {
				t.Errorf("%s holds %s", file, a)
			}
		}
		if !bytes.Contains(b, usualClick().UserAgent) {
			t.Error("the log does not hold the clicks at all")
		}
	}
}

// atlas knows one place.
type atlas struct{}

func (atlas) Locate(a netip.Addr) clicks.Place {
	if a == netip.MustParseAddr("203.0.113.9") {
		return clicks.Place{Country: [2]byte{'N', 'O'}, City: "Bodø", Network: "AS64500"}
	}
	return clicks.Place{}
}

func TestPlacesAreLogged(t *testing.T) {
	log, ring := openLog(t, clicks.LogConfig{}), clicks.NewRing(clicks.RingConfig{})
	capture := clicks.NewCapture(clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}, Geo: atlas{}})
	c := usualClick()
	c.Addr = netip.MustParseAddr("::ffff:203.0.113.9")
	ring.Record(c)
	if err := capture.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := log.Read(clicks.Position{})
	defer r.Close()
	b, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	err = b.Events(func(e *clicks.Event) error {
		if string(e.Country[:]) != "NO" || string(e.City) != "Bodø" || string(e.Network) != "AS64500" {
			t.Errorf("place %s %s %s", e.Country, e.City, e.Network)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
