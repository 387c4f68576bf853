package fold_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"runtime"
	"sort"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"curt/internal/backend/sqlite/counts"
	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/capture/capturetest"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/fold"
	"curt/internal/link"
)

// traffic makes clicks as they come from browsers: links by Zipf(1.0), user agents
// and referrers by a flatter law, addresses from a million people.
type traffic struct {
	links     []float64 // cumulative weights
	codes     [][]byte
	agents    [][]byte
	referrers [][]byte
	languages [][]byte
	random    *rand.Rand
}

func newTraffic(links int, seed uint64) *traffic {
	t := &traffic{random: rand.New(rand.NewPCG(seed, 1))}
	sum := 0.0
	for i := range links {
		sum += 1 / float64(i+1)
		t.links = append(t.links, sum)
		t.codes = append(t.codes, fmt.Appendf(nil, "c%06x", uint32(i)*2654435761>>8))
	}
	t.agents = userAgents()
	for i := range 400 {
		t.referrers = append(t.referrers, fmt.Appendf(nil, "https://www.site%d.example/posts/%d?page=%d", i, i*i, i))
	}
	t.referrers = append(t.referrers, nil, []byte("https://t.co/abc"), []byte("https://www.google.com/"))
	for _, l := range []string{"en-US,en;q=0.9", "de-DE,de;q=0.9,en;q=0.8", "fr", "pt-BR,pt;q=0.9", "hi-IN,hi", "ja", ""} {
		t.languages = append(t.languages, []byte(l))
	}
	return t
}

func userAgents() (all [][]byte) {
	platforms := []string{
		"Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64",
		"Linux; Android 10; K", "Linux; Android 13; SM-S901B", "Linux; Android 14; Pixel 8",
	}
	for major := 90; major < 150; major++ {
		for i, p := range platforms {
			mobile := ""
			if i > 2 {
				mobile = " Mobile"
			}
			chrome := fmt.Sprintf("Mozilla/5.0 (%s) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0%s Safari/537.36", p, major, mobile)
			all = append(all, []byte(chrome), []byte(chrome+fmt.Sprintf(" Edg/%d.0.0.0", major)), []byte(chrome+fmt.Sprintf(" OPR/%d.0.0.0", major-14)),
				fmt.Appendf(nil, "Mozilla/5.0 (%s; rv:%d.0) Gecko/20100101 Firefox/%d.0", p, major, major))
		}
		all = append(all, fmt.Appendf(nil, "Mozilla/5.0 (iPhone; CPU iPhone OS %d_%d like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/%d.%d Mobile/15E148 Safari/604.1", major/8, major%7, major/8, major%7))
	}
	return append(all,
		[]byte("Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"),
		[]byte("Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"),
		[]byte("facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)"),
		[]byte("curl/8.5.0"))
}

// skewed returns an index below n; small ones are likelier.
func (t *traffic) skewed(n int) int { return int(float64(n) * math.Pow(t.random.Float64(), 3)) }

func (t *traffic) next(c *clicks.Raw) {
	n := sort.SearchFloat64s(t.links, t.random.Float64()*t.links[len(t.links)-1])
	var addr [4]byte
	binary.BigEndian.PutUint32(addr[:], 0x50000000+t.random.Uint32N(1_000_000))
	*c = clicks.Raw{
		Code: t.codes[min(n, len(t.codes)-1)], Outcome: clicks.Redirected, Addr: netip.AddrFrom4(addr),
		UserAgent: t.agents[t.skewed(len(t.agents))], Referrer: t.referrers[t.skewed(len(t.referrers))],
		Language: t.languages[t.skewed(len(t.languages))],
	}
	if t.random.IntN(50) == 0 {
		c.Query = []byte("utm_source=newsletter&utm_medium=email&utm_campaign=spring")
	}
}

// pipeline is everything from the ring to clicks.db.
type pipeline struct {
	ring   *capture.Ring
	log    *clicklog.Log
	fold   *fold.Fold
	store  *counts.Rollups
	stops  []func() error // in the order of shutdown
	closed bool
}

func startPipeline(tb testing.TB, dir string) *pipeline {
	tb.Helper()
	p := &pipeline{ring: capture.NewRing(capture.RingConfig{})}
	var err error
	if p.log, err = clicklog.Open(clicklog.Config{Dir: filepath.Join(dir, "clicks")}); err != nil {
		tb.Fatal(err)
	}
	if p.store, err = counts.Open(tb.Context(), counts.Config{Path: filepath.Join(dir, "clicks.db")}); err != nil {
		tb.Fatal(err)
	}
	p.fold = fold.New(fold.Config{Log: p.log, Store: p.store})
	capturer := capture.New(capture.Config{Ring: p.ring, Log: p.log, Keys: capturetest.Keys{}})
	for _, run := range []func(context.Context) error{capturer.Run, p.fold.Run, p.store.Run, p.log.Run} {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- run(ctx) }()
		p.stops = append(p.stops, func() error { cancel(); return <-done })
	}
	tb.Cleanup(func() { p.stop(tb) })
	return p
}

// stop ends the loops in the order in which the server does.
func (p *pipeline) stop(tb testing.TB) {
	tb.Helper()
	if p.closed {
		return
	}
	p.closed = true
	for _, stop := range p.stops {
		if err := stop(); err != nil {
			tb.Error(err)
		}
	}
	if err := p.log.Close(); err != nil {
		tb.Error(err)
	}
	if err := p.store.Close(); err != nil {
		tb.Error(err)
	}
}

func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// maxResident returns the most memory that the process ever had, in bytes.
func maxResident(tb testing.TB) int64 {
	tb.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return u.Maxrss << 10
}

// BenchmarkPipeline measures all work of a click from Record to the committed
// roll-up, raw clicks kept, on one core: Zipf(1.0) over 100,000 links. Run it with
// -benchtime=3000000x. The work of making clicks is measured apart and subtracted.
func BenchmarkPipeline(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	t := newTraffic(100_000, 7)
	var raw clicks.Raw
	began := cpuTime(b)
	for range b.N {
		t.next(&raw)
	}
	making := cpuTime(b) - began
	dir := b.TempDir()
	p := startPipeline(b, dir)
	b.ReportAllocs()
	b.ResetTimer()
	began = cpuTime(b)
	for range b.N {
		now := time.Now().UnixMilli()
		t.next(&raw)
		raw.Time = now
		for !p.ring.Record(&raw) {
			time.Sleep(time.Millisecond) // a full ring: the pipeline is the bottleneck, which is the point
		}
	}
	for p.fold.Stats().Events < uint64(b.N) || p.fold.Stats().Written != p.log.End() {
		time.Sleep(time.Millisecond)
	}
	cpu := cpuTime(b) - began - making
	b.StopTimer()
	b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-µs/click")
	b.ReportMetric(float64(b.N)/cpu.Seconds(), "clicks/cpu-s")
	b.ReportMetric(float64(p.fold.Stats().Batches), "batches")
	b.ReportMetric(float64(maxResident(b))/(1<<20), "max-RSS-MiB")
	p.stop(b)
	if got := storedClicks(b, filepath.Join(dir, "clicks.db"), t.codes); got != uint64(b.N) {
		b.Fatalf("stored %d clicks of %d", got, b.N)
	}
}

// storedClicks sums up the totals of all codes.
func storedClicks(tb testing.TB, path string, codes [][]byte) (sum uint64) {
	tb.Helper()
	store, err := counts.Open(context.Background(), counts.Config{Path: path})
	if err != nil {
		tb.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	}()
	var keys []link.Key
	for _, c := range codes {
		keys = append(keys, link.Key{Code: link.Code(c)})
	}
	totals, _, err := store.Totals(context.Background(), keys)
	if err != nil {
		tb.Fatal(err)
	}
	for _, t := range totals {
		sum += t.Clicks
	}
	return sum
}
