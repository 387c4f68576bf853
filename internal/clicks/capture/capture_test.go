package capture_test

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
	"curt/internal/clicks/capture"
	"curt/internal/clicks/capture/capturetest"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
)

func startCapture(t *testing.T, c capture.Config) (capturer *capture.Capture, stop func() error) {
	t.Helper()
	capturer = capture.New(c)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- capturer.Run(ctx) }()
	return capturer, func() error { cancel(); return <-done }
}

func TestCaptureDrainsWithinAHundredMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, ring := clicklogtest.Open(t, clicklog.Config{}), capture.NewRing(capture.RingConfig{})
		_, stop := startCapture(t, capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}})
		ring.Record(clicklogtest.UsualClick())
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if n := len(clicklogtest.ReadAll(t, log)); n != 1 {
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
		log, ring := clicklogtest.Open(t, clicklog.Config{}), capture.NewRing(capture.RingConfig{})
		capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}, Detail: capture.DetailFull})
		record := func(at time.Time, n int) {
			c := clicklogtest.UsualClick()
			c.Time = at.UnixMilli()
			for range n {
				if !ring.Record(c) {
					t.Fatal("full")
				}
			}
		}
		drain := func() {
			if err := capturer.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var marks []clicklog.Watermark
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
func checkWatermarks(t *testing.T, log *clicklog.Log, marks []clicklog.Watermark) {
	t.Helper()
	var blocks []clicklog.Block
	r := log.Read(clicklog.Position{})
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
	behind := func(p clicklog.Position) (earliest int64) {
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
		log, ring := clicklogtest.Open(t, clicklog.Config{}), capture.NewRing(capture.RingConfig{})
		_, stop := startCapture(t, capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}})
		for range 500 {
			ring.Record(clicklogtest.UsualClick())
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if n := len(clicklogtest.ReadAll(t, log)); n != 500 || log.Synced() != log.End() {
			t.Errorf("%d clicks of 500, synced %v of %v", n, log.Synced(), log.End())
		}
	})
}

func TestClicksWaitInTheRingWhileTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var room atomic.Int64
		room.Store(0)
		log := clicklogtest.Open(t, clicklog.Config{Dir: t.TempDir(), Create: clicklogtest.OnFullDisk(&room, false)})
		ring := capture.NewRing(capture.RingConfig{Bytes: 64 << 10, Shards: 2})
		capturer, stop := startCapture(t, capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}})
		kept := 0
		for range 20 {
			for range 50 {
				if ring.Record(clicklogtest.UsualClick()) {
					kept++
				}
			}
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		if uint64(kept)+ring.Dropped() != 1000 || ring.Dropped() == 0 {
			t.Errorf("kept %d, dropped %d of 1000: want all accounted for, and some dropped", kept, ring.Dropped())
		}
		if n := len(clicklogtest.ReadAll(t, log)); n != 0 || capturer.Stats().Errors == 0 {
			t.Errorf("%d clicks on a full disk, %d errors", n, capturer.Stats().Errors)
		}
		room.Store(1 << 30)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(clicklogtest.ReadAll(t, log)); n != kept {
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
		log := clicklogtest.Open(t, clicklog.Config{Dir: t.TempDir(), Create: clicklogtest.OnFullDisk(&room, false)})
		ring := capture.NewRing(capture.RingConfig{})
		ring.Record(clicklogtest.UsualClick())
		_, stop := startCapture(t, capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}, Logger: logger})
		time.Sleep(150 * time.Second)
		synctest.Wait()
		if n := strings.Count(lines.String(), "writing the click log failed, clicks wait in memory"); n != 3 {
			t.Errorf("%d lines:\n%.2000s", n, lines.String())
		}
		room.Store(1 << 30)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if all := lines.String(); strings.Count(all, "\n") != 4 || strings.Count(all, "writing the click log recovered") != 1 {
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
	log := clicklogtest.Open(t, clicklog.Config{Dir: t.TempDir(), Create: clicklogtest.OnShrinkingDisk(&room)})
	ring := capture.NewRing(capture.RingConfig{Shards: 3})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}, Detail: capture.DetailFull})
	const n = 14000
	for i := range n {
		c := clicklogtest.UsualClick()
		c.Time += int64(i)
		if !ring.Record(c) {
			t.Fatal("full")
		}
	}
	if err := capturer.Drain(t.Context()); err == nil {
		t.Fatal("a drain of three blocks fit into one")
	}
	ring.Record(clicklogtest.UsualClick())
	room.Store(1 << 30)
	for range 2 { // the second takes what came while the first was pending
		if err := capturer.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[int64]int{}
	for i, e := range clicklogtest.ReadAll(t, log) {
		seen[e.Time-clicklogtest.UsualClick().Time]++
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

// brokenKeys has no keys.
type brokenKeys struct{ asked *int }

func (b brokenKeys) DayKey(context.Context, time.Time) ([16]byte, error) {
	*b.asked++
	return [16]byte{}, errors.New("the link store is away")
}

func TestClicksAreKeptWithoutADayKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no click has to go on before the answer is there
		log, ring := clicklogtest.Open(t, clicklog.Config{}), capture.NewRing(capture.RingConfig{})
		asked := 0
		capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: brokenKeys{&asked}})
		for range 100 {
			ring.Record(clicklogtest.UsualClick())
		}
		if err := capturer.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		events := clicklogtest.ReadAll(t, log)
		if len(events) != 100 || events[0].Visitor != 0 || capturer.Stats().Untagged != 100 || asked != 1 {
			t.Errorf("%d clicks, visitor %d, %d untagged, store asked %d times", len(events), events[0].Visitor, capturer.Stats().Untagged, asked)
		}
	})
}

func TestVisitorTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no click has to go on before the key is there
		log, ring := clicklogtest.Open(t, clicklog.Config{}), capture.NewRing(capture.RingConfig{Shards: 1})
		capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}})
		tag := func(addr, agent string, after time.Duration) uint64 {
			c := clicklogtest.UsualClick()
			c.Addr, c.UserAgent = netip.Addr{}, []byte(agent)
			if addr != "" {
				c.Addr = netip.MustParseAddr(addr)
			}
			c.Time += after.Milliseconds()
			ring.Record(c)
			if err := capturer.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			events := clicklogtest.ReadAll(t, log)
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
	log, ring := clicklogtest.Open(t, clicklog.Config{Dir: dir}), capture.NewRing(capture.RingConfig{})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}, Detail: capture.DetailFull})
	canaries := []string{"198.51.100.213", "2001:db8:feed:beef:dead:c0de:1234:5678"}
	for _, a := range canaries {
		c := clicklogtest.UsualClick()
		c.Addr = netip.MustParseAddr(a)
		ring.Record(c)
	}
	if err := capturer.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, file := range clicklogtest.SegmentFiles(t, dir) {
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
		if !bytes.Contains(b, clicklogtest.UsualClick().UserAgent) {
			t.Error("the log does not hold the clicks at all")
		}
	}
}

func TestPlacesAreLogged(t *testing.T) {
	log, ring := clicklogtest.Open(t, clicklog.Config{}), capture.NewRing(capture.RingConfig{})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}, Geo: capturetest.Atlas{}})
	c := clicklogtest.UsualClick()
	c.Addr = netip.MustParseAddr("::ffff:203.0.113.9")
	ring.Record(c)
	if err := capturer.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := log.Read(clicklog.Position{})
	defer r.Close()
	b, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	err = b.Events(func(e *clicklog.Event) error {
		if string(e.Country[:]) != "NO" || string(e.City) != "Bodø" || string(e.Network) != "AS64500" {
			t.Errorf("place %s %s %s", e.Country, e.City, e.Network)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A stop that cannot write says what it costs.
func TestAStopWithoutRoomSaysHowManyClicksAreLost(t *testing.T) {
	dir := t.TempDir()
	log := clicklogtest.Open(t, clicklog.Config{Dir: dir})
	ring := capture.NewRing(capture.RingConfig{Bytes: 1 << 20, Shards: 2})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}})
	if err := os.RemoveAll(dir); err != nil { // no segment can be made
		t.Fatal(err)
	}
	for range 200 {
		ring.Record(&clicks.Raw{Time: 1_780_000_000_000, Code: []byte("abc"), Outcome: clicks.Redirected})
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := capturer.Run(ctx); err == nil || !strings.Contains(err.Error(), "200 clicks in memory are lost") {
		t.Errorf("it ends with %v", err)
	}
}

func TestAClockThatIsSetIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w capture.WallClock
		var lines bytes.Buffer
		log := slog.New(slog.NewTextHandler(&lines, nil))
		for _, by := range []time.Duration{0, time.Millisecond, -4 * time.Second, 40 * 24 * time.Hour, 0, -40 * 24 * time.Hour, 0} {
			w.Set(t.Context(), time.Now(), by, log)
			time.Sleep(time.Second)
		}
		if all := lines.String(); strings.Count(all, "\n") != 1 || !strings.Contains(all, "level=WARN") || !strings.Contains(all, "by=960h0m0s") {
			t.Error(all)
		}
		time.Sleep(time.Hour)
		w.Set(t.Context(), time.Now(), 0, log)
		if w.Set(t.Context(), time.Now(), -time.Minute, log); strings.Count(lines.String(), "\n") != 2 {
			t.Errorf("another hour: %s", lines.String())
		}
	})
}
