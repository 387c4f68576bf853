package recount_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/clicks/capture"
	"curt/internal/clicks/capture/capturetest"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/recount"
)

// TestRecountTellsTornFromDamaged looks at folders without opening their logs.
func TestRecountTellsTornFromDamaged(t *testing.T) {
	length := int64(len(clicklogtest.Three()[0]))
	for name, c := range map[string]struct {
		change  func(b []byte) []byte
		counted int64 // blocks
		torn    bool
		damages int
	}{
		"whole":              {func(b []byte) []byte { return b }, 0, false, 0},
		"cut short":          {func(b []byte) []byte { return b[:len(b)-1] }, 2, true, 0},
		"cut short, counted": {func(b []byte) []byte { return b[:len(b)-1] }, 3, false, 1},
		"checksum":           {func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, 0, false, 1},
		"strange end":        {func(b []byte) []byte { return append(b, bytes.Repeat([]byte("x"), 100)...) }, 0, false, 1},
	} {
		dir := t.TempDir()
		log := clicklogtest.Open(t, clicklog.Config{Dir: dir})
		for _, b := range clicklogtest.Three() {
			if _, err := log.Append(b, clicklogtest.SomeDay()); err != nil {
				t.Fatal(err)
			}
		}
		number := log.End().Segment
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		path := clicklogtest.SegmentFiles(t, dir)[0]
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, c.change(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		counted := clicklog.Position{Segment: number, Offset: c.counted * length}
		r, err := recount.Dir(t.Context(), dir, 0, counted, func(int64, int64) {})
		if err != nil || r.Torn != c.torn || len(r.Damages) != c.damages {
			t.Errorf("%s: torn %v, damages %v, %v", name, r.Torn, r.Damages, err)
		}
	}
}

// visits are clicks of one block: addresses by their last number, 0 = unknown.
type visits []byte

// captured puts each block into a log, as one life of a server or as several. The time of the bubble stands still while
// anything is done: no click has to go on without the key of its day.
func captured(t *testing.T, blocks []visits, lives bool) (r recount.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r = counted(t, blocks, lives) })
	return r
}

func counted(t *testing.T, blocks []visits, lives bool) recount.Result {
	t.Helper()
	dir := t.TempDir()
	log, ring := clicklogtest.Open(t, clicklog.Config{Dir: dir}), capture.NewRing(capture.RingConfig{Shards: 1})
	life := func() *capture.Capture {
		return capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}})
	}
	c, at := life(), clicklogtest.SomeDay()
	for i, block := range blocks {
		if lives {
			c = life()
		}
		for j, last := range block {
			raw := clicklogtest.UsualClick()
			at = at.Add(time.Second)
			raw.Time, raw.Addr, raw.UserAgent = at.UnixMilli(), netip.Addr{}, fmt.Appendf(nil, "agent %d.%d", i, j)
			if last > 0 {
				raw.Addr = netip.AddrFrom4([4]byte{192, 0, 2, last})
			}
			ring.Record(raw)
		}
		if err := c.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r, err := recount.Dir(t.Context(), dir, 0, clicklog.Position{}, func(int64, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestClicksOfOneAddressAreNoticed(t *testing.T) {
	for _, c := range []struct {
		blocks []visits
		clicks uint64
		agents int
		since  time.Duration // of the first of them, in seconds after someDay
	}{
		{nil, 0, 0, 0},
		{[]visits{{1, 1}, {1}, {1, 1, 1}}, 6, 6, 1},
		{[]visits{{1, 1}, {2, 2}}, 2, 2, 3},
		{[]visits{{1, 2}, {1}, {1}}, 2, 2, 3},
		{[]visits{{1}, {1, 2, 1}}, 0, 0, 0},
		{[]visits{{1}, {1}, {0}}, 0, 0, 0},
		{[]visits{{0, 0}}, 0, 0, 0},
		{[]visits{{1}, {2, 3}, {1}, {1}}, 2, 2, 4},
		{[]visits{make(visits, 3), {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}}, 25, recount.MaxAgents, 4},
	} {
		got := captured(t, c.blocks, false).OneAddress
		if got.Clicks != c.clicks || got.Agents != c.agents || c.clicks > 0 && !got.Since.Equal(clicklogtest.SomeDay().Add(c.since*time.Second).Truncate(time.Millisecond)) {
			t.Errorf("%v: %+v", c.blocks, got)
		}
	}
	// Nobody knows whether the addresses of two lives are one; that they are several is known.
	if got := captured(t, []visits{{1, 1}, {1}}, true).OneAddress; got.Clicks != 3 {
		t.Errorf("over a restart: %+v", got)
	}
	if got := captured(t, []visits{{1, 1}, {1, 2}, {1}}, true).OneAddress; got.Clicks != 1 {
		t.Errorf("several before a restart: %+v", got)
	}
}

// TestABlockThatWaitedIsOfItsOwnAddress: a block that the disk did not take is made again.
func TestABlockThatWaitedIsOfItsOwnAddress(t *testing.T) {
	synctest.Test(t, waitForRoom) // whose time stands still while anything is done, as of captured
}

func waitForRoom(t *testing.T) {
	dir, full := t.TempDir(), true
	log := clicklogtest.Open(t, clicklog.Config{Dir: dir, Create: func(path string) (clicklog.File, error) {
		if full {
			return nil, fmt.Errorf("no room")
		}
		return clicklogtest.CreateFile(path)
	}})
	ring := capture.NewRing(capture.RingConfig{Shards: 1})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}})
	for range 2 {
		ring.Record(clicklogtest.UsualClick())
		if err := capturer.Drain(t.Context()); err == nil {
			t.Fatal("a full disk took a block")
		}
	}
	full = false
	for range 2 {
		if err := capturer.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		ring.Record(clicklogtest.UsualClick())
	}
	r, err := recount.Dir(t.Context(), dir, 0, clicklog.Position{}, func(int64, int64) {})
	if err != nil || r.OneAddress.Clicks != 3 || r.Events != 3 || r.OneAddress.Agents != 1 {
		t.Errorf("%+v: %v", r.OneAddress, err)
	}
}

// A recount tells how far it is, up to the end.
func TestARecountTellsHowFarItIs(t *testing.T) {
	dir := t.TempDir()
	log := clicklogtest.Open(t, clicklog.Config{Dir: dir, SegmentBytes: 700})
	for i := range uint64(7) {
		clicklogtest.AppendOne(t, log, i, clicklogtest.SomeDay())
	}
	size := log.Stats().Bytes
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	var last, of int64
	if _, err := recount.Dir(t.Context(), dir, 0, clicklog.Position{}, func(done, total int64) {
		if done < last || done > total {
			t.Errorf("%d of %d after %d", done, total, last)
		}
		last, of = done, total
	}); err != nil {
		t.Fatal(err)
	}
	if of != size || last == 0 {
		t.Errorf("told of %d of %d bytes at the end, want all %d", last, of, size)
	}
}
