package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/kafka"
	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/ship"
	"curt/internal/testkit"
	"curt/internal/worker"
)

// processor returns how long this process has computed.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// agents are user agents as a shortener meets them: some thousand, a few of which are most.
func agents() func() []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var all [][]byte
	for major := 90; major < 140; major++ {
		for _, format := range []string{
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36",
			"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36",
			"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Mobile Safari/537.36",
			"Mozilla/5.0 (X11; Linux x86_64; rv:%d.0) Gecko/20100101 Firefox/%[1]d.0",
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36 Edg/%[1]d.0.0.0",
			"Mozilla/5.0 (iPhone; CPU iPhone OS 17_%d like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
			"Mozilla/5.0 (Linux; Android 14; SM-S91%dB) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari/537.36",
			"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html) Chrome/%d.0.0.0 Safari/537.36",
		} {
			all = append(all, fmt.Appendf(nil, format, major))
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	often := rand.NewZipf(random, 1.2, 4, uint64(len(all)-1))
	return func() []byte { return all[often.Uint64()] }
}

// visits make clicks on links, of which some are clicked more often.
func visits(links int) func(i int) clicks.Raw {
	random, agent := rand.New(rand.NewPCG(3, 4)), agents()
	often := rand.NewZipf(random, 1.1, 10, uint64(links-1))
	referrers := []string{"", "", "https://www.google.com/", "https://t.co/abc", "https://news.example.com/2026/11/a", "android-app://com.slack/"}
	return func(i int) clicks.Raw {
		raw := clicks.Raw{
			Time: time.Now().UnixMilli(), Code: fmt.Appendf(nil, "c%06d", often.Uint64()), Outcome: clicks.Redirected, UserAgent: agent(),
			Referrer: []byte(referrers[random.IntN(len(referrers))]), Language: []byte("en-US,en;q=0.9"),
		}
		if i%5 == 0 {
			raw.Query = []byte("utm_source=newsletter&utm_medium=email")
		}
		return raw
	}
}

// pipeline is what a server has before its shipper.
type pipeline struct {
	dir     string
	log     *clicklog.Log
	ring    *capture.Ring
	capture *capture.Capture
	links   int
}

func newPipeline(b *testing.B, links int) *pipeline {
	b.Helper()
	p := &pipeline{dir: b.TempDir(), ring: capture.NewRing(capture.RingConfig{}), links: links}
	var err error
	if p.log, err = clicklog.Open(clicklog.Config{Dir: p.dir}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.log.Close() })
	p.capture = capture.New(capture.Config{Ring: p.ring, Log: p.log, Keys: noKeys{}})
	return p
}

// shipper brings the log to Kafka.
func (p *pipeline) shipper(to *kafka.Producer, paused bool) *ship.Shipper {
	return ship.New(ship.Config{
		Log: p.log, Sink: to, State: filepath.Join(p.dir, "shipped"), Instance: p.capture.Instance(), Began: time.Now(), Paused: paused,
	})
}

// fill makes n clicks, as fast as they are taken.
func (p *pipeline) fill(b *testing.B, n int) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = p.capture.Run(ctx) }) // what it could not write is missed below
	visit := visits(p.links)
	for i := range n {
		raw := visit(i)
		for !p.ring.Record(&raw) {
			time.Sleep(time.Millisecond)
		}
	}
	cancel()
	running.Wait()
	if got := p.capture.Stats().Clicks; got != uint64(n) {
		b.Fatalf("%d of %d clicks are in the log", got, n)
	}
}

// pace takes n clicks at a rate, each second's evenly, from the ring to the log and to Kafka
// unless paused, and returns what this process computed.
func (p *pipeline) pace(b *testing.B, to *kafka.Producer, n, rate int, paused bool) time.Duration {
	b.Helper()
	ship := p.shipper(to, paused)
	used := processor(b)
	ctx, cancel := context.WithCancel(b.Context())
	var capturing, running sync.WaitGroup
	capturing.Go(func() { _ = p.capture.Run(ctx) })
	running.Go(func() { _ = p.log.Run(ctx) })
	running.Go(func() { _ = ship.Run(ctx) })
	visit := visits(p.links)
	began := time.Now()
	for i := range n {
		if i%50 == 0 {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		}
		raw := visit(i)
		p.ring.Record(&raw)
	}
	for end := time.Now().Add(time.Minute); !paused && ship.Stats().Events < uint64(n); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("a minute later %+v", ship.Stats())
		}
	}
	used = processor(b) - used
	cancel()
	capturing.Wait()
	running.Wait()
	return used
}

// BenchmarkEvents takes clicks from the click log to Kafka, and from Kafka to ClickHouse, and
// says what this process computes for each, beside servers that are its own.
func BenchmarkEvents(b *testing.B) {
	k := testkit.StartKafka(b, 1)
	b.Run("sender", func(b *testing.B) { send(b, k) })
	b.Run("paced", func(b *testing.B) { sendPaced(b, k) })
	b.Run("worker", func(b *testing.B) { work(b, k) })
}

// topic makes one, with whom to send to it.
func topic(b *testing.B, k *testkit.Kafka, name string) (kafka.Config, *kafka.Producer) {
	b.Helper()
	c, err := kafka.Parse(k.URL(name))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := kafka.Migrate(b.Context(), c, kafka.Topic{}); err != nil {
		b.Fatal(err)
	}
	producer, err := kafka.NewProducer(c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(producer.Close)
	return c, producer
}

// send empties a log as fast as that goes.
func send(b *testing.B, k *testkit.Kafka) {
	const n = 600_000
	for b.Loop() {
		_, producer := topic(b, k, "sender")
		p := newPipeline(b, 20_000)
		p.fill(b, n)
		ship := p.shipper(producer, false)
		used := processor(b)
		took := during(b, ship.Run, func() bool { return ship.Stats().Events >= n })
		used = processor(b) - used
		b.ReportMetric(float64(used.Microseconds())/n, "sender-µs/click")
		b.ReportMetric(n/took.Seconds(), "sent/s")
	}
}

// sendPaced sends clicks as they come, and subtracts what a server computes that sends none.
func sendPaced(b *testing.B, k *testkit.Kafka) {
	const n, rate = 50_000, 5_000
	for b.Loop() {
		_, producer := topic(b, k, "paced")
		without := newPipeline(b, 20_000).pace(b, producer, n, rate, true)
		with := newPipeline(b, 20_000).pace(b, producer, n, rate, false)
		b.ReportMetric(float64((with-without).Microseconds())/n, "at-5000/s-µs/click")
	}
}

// work has a worker take what was sent.
func work(b *testing.B, k *testkit.Kafka) {
	const cold, n = 100_000, 600_000
	c, producer := topic(b, k, "worker")
	ch := testkit.StartClickHouse(b)
	store, err := clickhouse.Open(b.Context(), clickhouse.Config{URL: ch.URL(ch.Database(b))})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	for b.Loop() {
		p := newPipeline(b, 20_000)
		p.fill(b, n)
		ship := p.shipper(producer, false)
		during(b, ship.Run, func() bool { return ship.Stats().Events >= n })
		w := worker.New(worker.Config{Kafka: c, Store: store, Workspaces: spaces})
		var atCold time.Duration
		used := processor(b)
		took := during(b, w.Run, func() bool {
			rows := w.Stats().Rows
			if rows >= cold && atCold == 0 {
				atCold = processor(b) - used
				b.ReportMetric(float64(rows)/atCold.Seconds(), "worker-cold/s")
				used, atCold = processor(b), time.Duration(rows)
			}
			return rows >= n
		})
		warm := (n - float64(atCold)) / (processor(b) - used).Seconds()
		b.ReportMetric(warm, "worker-warm/s")
		b.ReportMetric(n/took.Seconds(), "inserted/s")
	}
}

// during runs something until it has come to what is wanted, and returns how long that took.
func during(b *testing.B, run func(context.Context) error, wanted func() bool) time.Duration {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	began, done := time.Now(), make(chan error, 1)
	go func() { done <- run(ctx) }()
	for end := time.Now().Add(5 * time.Minute); !wanted(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatal("five minutes passed")
		}
	}
	took := time.Since(began)
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return took
}
