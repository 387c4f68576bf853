package clicks_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"curt/internal/clicks"
)

// visits are clicks of one block: addresses by their last number, 0 = unknown.
type visits []byte

// captured puts each block into a log, as one life of a server or as several.
func captured(t *testing.T, blocks []visits, lives bool) clicks.Recount {
	t.Helper()
	dir := t.TempDir()
	log, ring := openLog(t, clicks.LogConfig{Dir: dir}), clicks.NewRing(clicks.RingConfig{Shards: 1})
	life := func() *clicks.Capture {
		return clicks.NewCapture(clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}})
	}
	c, at := life(), someDay()
	for i, block := range blocks {
		if lives {
			c = life()
		}
		for j, last := range block {
			raw := usualClick()
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
	r, err := clicks.RecountDir(t.Context(), dir, 0, clicks.Position{}, func(int64, int64) {})
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
		{[]visits{make(visits, 3), {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}}, 25, clicks.MostAgents, 4},
	} {
		got := captured(t, c.blocks, false).Alone
		if got.Clicks != c.clicks || got.Agents != c.agents || c.clicks > 0 && !got.Since.Equal(someDay().Add(c.since*time.Second).Truncate(time.Millisecond)) {
			t.Errorf("%v: %+v", c.blocks, got)
		}
	}
	// Nobody knows whether the addresses of two lives are one; that they are several is known.
	if got := captured(t, []visits{{1, 1}, {1}}, true).Alone; got.Clicks != 3 {
		t.Errorf("over a restart: %+v", got)
	}
	if got := captured(t, []visits{{1, 1}, {1, 2}, {1}}, true).Alone; got.Clicks != 1 {
		t.Errorf("several before a restart: %+v", got)
	}
}

// TestABlockThatWaitedIsOfItsOwnAddress: a block that the disk did not take is made again.
func TestABlockThatWaitedIsOfItsOwnAddress(t *testing.T) {
	dir, full := t.TempDir(), true
	log := openLog(t, clicks.LogConfig{Dir: dir}.WithFiles(func(path string) (clicks.SegmentFile, error) {
		if full {
			return nil, fmt.Errorf("no room")
		}
		return clicks.CreateSegment(path)
	}))
	ring := clicks.NewRing(clicks.RingConfig{Shards: 1})
	capture := clicks.NewCapture(clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}})
	for range 2 {
		ring.Record(usualClick())
		if err := capture.Drain(t.Context()); err == nil {
			t.Fatal("a full disk took a block")
		}
	}
	full = false
	for range 2 {
		if err := capture.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		ring.Record(usualClick())
	}
	r, err := clicks.RecountDir(t.Context(), dir, 0, clicks.Position{}, func(int64, int64) {})
	if err != nil || r.Alone.Clicks != 3 || r.Events != 3 || r.Alone.Agents != 1 {
		t.Errorf("%+v: %v", r.Alone, err)
	}
}
