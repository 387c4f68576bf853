package capture_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"curt/internal/clicks/capture"
	"curt/internal/clicks/capture/capturetest"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
)

// counted is one process that counts clicks in a data folder.
type counted struct {
	ring    *capture.Ring
	log     *clicklog.Log
	capture *capture.Capture
	tally   *capture.Tally
	taken   capture.Loss
}

func startCounted(t *testing.T, data string) counted {
	t.Helper()
	c := counted{log: clicklogtest.Open(t, clicklog.Config{Dir: filepath.Join(data, "clicks")}), ring: capture.NewRing(capture.RingConfig{Shards: 3})}
	c.capture = capture.New(capture.Config{Ring: c.ring, Log: c.log, Keys: capturetest.Keys{}})
	var err error
	if c.tally, c.taken, err = capture.OpenTally(capture.TallyConfig{State: capture.TallyFile(data), Capture: c.capture}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // what a test has left as a kill does
		if page := pageOf(t, data); page != "" {
			_ = os.Remove(page)
		}
	})
	return c
}

func (c counted) record(t *testing.T, n int) {
	t.Helper()
	for range n {
		if !c.ring.Record(clicklogtest.UsualClick()) {
			t.Fatal("full")
		}
	}
}

func (c counted) drain(t *testing.T) {
	t.Helper()
	if err := c.capture.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// pageOf returns the page that a data folder names; "" = none.
func pageOf(t testing.TB, data string) string {
	t.Helper()
	b, err := os.ReadFile(capture.TallyFile(data))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(b), `"page":"`)
	page, _, _ = strings.Cut(page, `"`)
	return page
}

func TestWhatAKillTookIsKnown(t *testing.T) {
	data := t.TempDir()
	c := startCounted(t, data)
	if c.taken != (capture.Loss{}) {
		t.Errorf("a first start: %+v", c.taken)
	}
	c.record(t, 300)
	c.drain(t)
	c.record(t, 200)
	page := pageOf(t, data)
	c = startCounted(t, data) // the one before never ended
	if c.taken != (capture.Loss{Killed: true, Clicks: 200}) {
		t.Errorf("after a kill: %+v", c.taken)
	}
	if _, err := os.Stat(page); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the page of the process before: %v", err)
	}
	c.record(t, 50)
	c.drain(t)
	c = startCounted(t, data)
	if c.taken != (capture.Loss{Killed: true}) {
		t.Errorf("after a kill that took nothing: %+v", c.taken)
	}
	c.record(t, 70)
	c.drain(t)
	c.tally.Late(20)
	c = startCounted(t, data)
	if c.taken != (capture.Loss{Killed: true}) {
		t.Errorf("after a kill between write and note: %+v", c.taken)
	}
}

func TestACleanEndTakesNothing(t *testing.T) {
	data := t.TempDir()
	c := startCounted(t, data)
	c.record(t, 300)
	c.drain(t)
	page := pageOf(t, data)
	if err := errors.Join(c.tally.Close(), c.tally.Close()); err != nil {
		t.Fatal(err)
	}
	if c.ring.Recorded() != 300 || pageOf(t, data) != "" {
		t.Errorf("%d recorded, page %q", c.ring.Recorded(), pageOf(t, data))
	}
	if _, err := os.Stat(page); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the page: %v", err)
	}
	if c = startCounted(t, data); c.taken != (capture.Loss{}) {
		t.Errorf("after a clean end: %+v", c.taken)
	}
	c.record(t, 9) // which a full disk does not take
	if err := c.tally.Close(); err != nil {
		t.Fatal(err)
	}
	if got := capture.LossOf(capture.TallyFile(data), filepath.Join(data, "clicks")); got.Clicks != 9 {
		t.Errorf("looked at from outside: %+v", got)
	}
	if c = startCounted(t, data); c.taken.Clicks != 9 {
		t.Errorf("after an end with clicks that no disk took: %+v", c.taken)
	}
}

// TestNoNumberIsMadeUp: where the page is not that of the process before, nobody knows.
func TestNoNumberIsMadeUp(t *testing.T) {
	for name, harm := range map[string]func(state, page string) error{
		"another boot": func(state, _ string) error {
			return rewrite(state, func(b []byte) []byte {
				return regexp.MustCompile(`"boot":"[^"]+"`).ReplaceAll(b, []byte(`"boot":"another"`))
			})
		},
		"the page is gone":       func(_, page string) error { return os.Remove(page) },
		"the page is cut":        func(_, page string) error { return os.Truncate(page, 100) },
		"the page is another's":  func(_, page string) error { return rewrite(page, func(b []byte) []byte { b[9]++; return b }) },
		"the state is damaged":   func(state, _ string) error { return rewrite(state, func(b []byte) []byte { return b[:5] }) },
		"the page is a link":     func(_, page string) error { return errors.Join(os.Rename(page, page+"-"), os.Symlink(page+"-", page)) },
		"the page is not a file": func(_, page string) error { return errors.Join(os.Remove(page), os.Mkdir(page, 0o700)) },
	} {
		data := t.TempDir()
		c := startCounted(t, data)
		c.record(t, 10)
		state, page := capture.TallyFile(data), pageOf(t, data)
		if err := harm(state, page); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = errors.Join(os.Remove(page), os.Remove(page+"-")) })
		if c = startCounted(t, data); !c.taken.Killed || !c.taken.Unknown || c.taken.Clicks != 0 || c.taken.Why == "" {
			t.Errorf("%s: %+v", name, c.taken)
		}
	}
}

func rewrite(name string, f func([]byte) []byte) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, f(b), 0o600)
}

// TestACopyOfAFolderWasNotKilled: its page is that of a process that may run.
func TestACopyOfAFolderWasNotKilled(t *testing.T) {
	data, copied := t.TempDir(), t.TempDir()
	c := startCounted(t, data)
	c.record(t, 10)
	if err := os.CopyFS(copied, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	if other := startCounted(t, copied); other.taken != (capture.Loss{}) {
		t.Errorf("a copy: %+v", other.taken)
	}
	c.record(t, 10)
	if again := startCounted(t, data); again.taken.Clicks != 20 {
		t.Errorf("the folder itself: %+v", again.taken)
	}
}

// TestADiskCountsNothing: a redirect would wait for it.
func TestADiskCountsNothing(t *testing.T) {
	data := t.TempDir()
	log, ring := clicklogtest.Open(t, clicklog.Config{Dir: filepath.Join(data, "clicks")}), capture.NewRing(capture.RingConfig{})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}})
	for _, memory := range []string{"/proc", filepath.Join(data, "none")} {
		tally, taken, err := capture.OpenTally(capture.TallyConfig{State: capture.TallyFile(data), Memory: memory, Capture: capturer})
		if tally != nil || err == nil || taken.Killed {
			t.Errorf("%s: %v %+v %v", memory, tally, taken, err)
		}
		if err := tally.Close(); err != nil {
			t.Error(err)
		}
	}
	ring.Record(clicklogtest.UsualClick())
	if err := capturer.Drain(t.Context()); err != nil || ring.Recorded() != 1 {
		t.Errorf("%d recorded, %v", ring.Recorded(), err)
	}
}

// TestCountingForAKillAllocatesNothing, and names no visitor.
func TestCountingForAKillAllocatesNothing(t *testing.T) {
	data := t.TempDir()
	c := startCounted(t, data)
	click := clicklogtest.UsualClick()
	if n := testing.AllocsPerRun(1000, func() { c.ring.Record(click) }); n > 0 {
		t.Errorf("%g allocations a click", n)
	}
	b, err := os.ReadFile(pageOf(t, data))
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Trim(string(bytes.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, b[16:])), " "); len(text) > 16 {
		t.Errorf("the page has more than counters: %.100q", text)
	}
}

// BenchmarkRecordCounted is BenchmarkRecord with the counters where a kill leaves them.
func BenchmarkRecordCounted(b *testing.B) {
	data := b.TempDir()
	log, err := clicklog.Open(clicklog.Config{Dir: filepath.Join(data, "clicks")})
	if err != nil {
		b.Fatal(err)
	}
	ring := capture.NewRing(capture.RingConfig{Bytes: 1 << 30})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}})
	tally, _, err := capture.OpenTally(capture.TallyConfig{State: capture.TallyFile(data), Capture: capturer})
	if err != nil {
		b.Fatal(err)
	}
	c := clicklogtest.UsualClick()
	b.ReportAllocs()
	for range b.N {
		ring.Record(c)
	}
	b.StopTimer()
	for _, f := range []string{pageOf(b, data), capture.TallyFile(data)} { // clicks that nobody wrote are no clean end
		_ = os.Remove(f)
	}
	if err := errors.Join(tally.Close(), log.Close()); err != nil {
		b.Fatal(err)
	}
}
