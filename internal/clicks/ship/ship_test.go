package ship_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/capture/capturetest"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/ship"
)

// faultySink is a sink in memory that fails as networks do: it refuses, loses blocks or
// their acknowledgements, and acknowledges late and in any order.
type faultySink struct {
	t        *testing.T
	recorded func(instance uint64, before int64) int // how many events there were
	down     bool                                    // guarded by mu

	mu        sync.Mutex
	random    *rand.Rand
	events    map[clicks.EventID]clicklogtest.Event // guarded by mu: what survives
	acked     map[clicks.EventID]bool               // guarded by mu
	times     map[uint64]map[uint64]int             // guarded by mu: of each event, how often it came
	promises  map[uint64]int64                      // guarded by mu
	failures  int                                   // guarded by mu
	lateNow   sync.WaitGroup
	neverFail bool
}

func newFaultySink(t *testing.T, seed uint64) *faultySink {
	return &faultySink{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), events: map[clicks.EventID]clicklogtest.Event{}, acked: map[clicks.EventID]bool{},
		times: map[uint64]map[uint64]int{}, promises: map[uint64]int64{},
	}
}

func (f *faultySink) Send(_ context.Context, b *clicklog.Block, done func(error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.random.IntN(12)
	if f.neverFail {
		n = 11
	}
	if f.down || n == 0 {
		f.failures++
		return errors.New("there is no room")
	}
	var ids []clicks.EventID
	if err := b.Events(func(e *clicklog.Event) error {
		ids = append(ids, e.ID)
		if n != 1 { // the block is lost on its way
			f.events[e.ID] = clicklogtest.Keep(e)
			if f.times[e.ID.Instance] == nil {
				f.times[e.ID.Instance] = map[uint64]int{}
			}
			f.times[e.ID.Instance][e.ID.Sequence]++
		}
		return nil
	}); err != nil {
		return err
	}
	answer := func() {
		if n <= 2 { // with 2 only the acknowledgement is lost
			done(errors.New("no answer"))
			return
		}
		f.mu.Lock()
		for _, id := range ids {
			f.acked[id] = true
		}
		f.mu.Unlock()
		done(nil)
	}
	if n <= 2 {
		f.failures++
	}
	late := time.Duration(f.random.IntN(300)) * time.Millisecond
	f.lateNow.Go(func() { time.Sleep(late); answer() })
	return nil
}

func (f *faultySink) SendWatermark(_ context.Context, instance uint64, watermark int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down || !f.neverFail && f.random.IntN(10) == 0 {
		f.failures++
		return errors.New("not now")
	}
	if f.promises[instance] > watermark {
		f.t.Errorf("instance %d: promise %d after %d", instance, watermark, f.promises[instance])
	}
	f.promises[instance] = watermark
	have := 0
	for id := range f.acked {
		if id.Instance == instance && f.events[id].Time < watermark {
			have++
		}
	}
	if want := f.recorded(instance, watermark); have != want {
		f.t.Errorf("instance %d: a promise of %d with %d of %d events", instance, watermark, have, want)
	}
	return nil
}

// TestEveryClickIsShipped runs lives of a process over one log while the sink fails, and
// compares what it took with what was recorded.
func TestEveryClickIsShipped(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) { shipLives(t, seed) })
	}
}

// fullSink takes promises and no clicks.
type fullSink struct{ *faultySink }

func (fullSink) Send(context.Context, *clicklog.Block, func(error)) error {
	return errors.New("there is no room")
}

// TestWhoeverDiedHasEnded has an instance die with clicks that were not sent, the next one before
// it could send them, and the third, which sends them, end without a click of its own.
func TestWhoeverDiedHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, sink := t.TempDir(), newFaultySink(t, 1)
		var instances []uint64
		sink.neverFail, sink.recorded = true, func(instance uint64, _ int64) int {
			if instance == instances[0] {
				return 1
			}
			return 0
		}
		for life := range 3 {
			log, err := clicklog.Open(clicklog.Config{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			ring := capture.NewRing(capture.RingConfig{Bytes: 1 << 20, Shards: 2})
			capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}})
			instances = append(instances, capturer.Instance())
			if life == 0 {
				ring.Record(clicklogtest.RandomClick(rand.New(rand.NewPCG(1, 2))))
			}
			stopped, stop := context.WithCancel(t.Context())
			stop()
			if err := capturer.Run(stopped); err != nil { // drains once
				t.Fatal(err)
			}
			if life > 0 {
				into := ship.Sink(sink)
				if life == 1 {
					into = fullSink{sink}
				}
				shipper := ship.New(ship.Config{Log: log, Sink: into, State: filepath.Join(dir, "shipped"), Instance: capturer.Instance()})
				if err := shipper.Run(stopped); err != nil {
					t.Fatal(err)
				}
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
		}
		sink.lateNow.Wait()
		for _, instance := range instances {
			if sink.promises[instance] != clicks.Ended || len(sink.acked) != 1 {
				t.Errorf("instance %d is promised until %d, want its end; %d clicks arrived", instance, sink.promises[instance], len(sink.acked))
			}
		}
	})
}

func shipLives(t *testing.T, seed uint64) {
	dir, random := t.TempDir(), rand.New(rand.NewPCG(seed, 2))
	sink := newFaultySink(t, seed)
	type record struct {
		instance uint64
		time     int64
	}
	var mu sync.Mutex
	var records []record
	sink.recorded = func(instance uint64, before int64) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range records {
			if r.instance == instance && r.time < before {
				n++
			}
		}
		return n
	}
	var instances []uint64
	const lives = 4
	for life := range lives {
		sink.mu.Lock()
		sink.neverFail = life == lives-1
		sink.mu.Unlock()
		log, err := clicklog.Open(clicklog.Config{Dir: dir, SegmentBytes: 20 << 10})
		if err != nil {
			t.Fatal(err)
		}
		ring := capture.NewRing(capture.RingConfig{Bytes: 1 << 20, Shards: 2})
		capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}})
		instances = append(instances, capturer.Instance())
		shipper := ship.New(ship.Config{
			Log: log, Sink: sink, State: filepath.Join(dir, "shipped"), Instance: capturer.Instance(), Window: 4,
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- shipper.Run(ctx) }()
		for range 20 {
			for range random.IntN(200) {
				c := clicklogtest.RandomClick(random)
				c.Time = time.Now().UnixMilli()
				mu.Lock()
				records = append(records, record{capturer.Instance(), c.Time})
				mu.Unlock()
				ring.Record(c)
			}
			time.Sleep(10 * time.Millisecond)
			if err := capturer.Drain(ctx); err != nil {
				t.Fatal(err)
			}
			if err := log.Sync(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		sink.lateNow.Wait()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(sink.acked) != len(records) {
		t.Errorf("%d of %d events arrived", len(sink.acked), len(records))
	}
	for _, instance := range instances {
		if sink.promises[instance] != clicks.Ended {
			t.Errorf("instance %d is promised until %d, want its end", instance, sink.promises[instance])
		}
	}
	if sink.failures == 0 {
		t.Error("nothing failed")
	}
}

// namingSink acknowledges everything at once, and knows the order in which it came.
type namingSink struct {
	mu   sync.Mutex
	sent []uint64 // sequences; guarded by mu
}

func (s *namingSink) Send(_ context.Context, b *clicklog.Block, done func(error)) error {
	s.mu.Lock()
	s.sent = append(s.sent, b.First.Sequence)
	s.mu.Unlock()
	done(nil)
	return nil
}

func (*namingSink) SendWatermark(context.Context, uint64, int64) error { return nil }

func (s *namingSink) sequences() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// TestNothingIsShippedBeforeItsFsync leaves the last block of the log without an fsync, which
// a power cut may take: whoever has counted it elsewhere would have one click too many.
func TestNothingIsShippedBeforeItsFsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, sink := clicklogtest.Open(t, clicklog.Config{}), &namingSink{}
		shipper := ship.New(ship.Config{Log: log, Sink: sink, State: filepath.Join(t.TempDir(), "shipped"), Instance: 7})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- shipper.Run(ctx) }()
		var want []uint64
		for i := range uint64(3) {
			end := clicklogtest.AppendOne(t, log, i, time.Now())
			time.Sleep(time.Second)
			if got := sink.sequences(); !slices.Equal(got, want) {
				t.Errorf("%v were sent, and %v are on the disk", got, want)
			}
			if err := log.Sync(); err != nil {
				t.Fatal(err)
			}
			want = append(want, i)
			time.Sleep(time.Second)
			if got := sink.sequences(); !slices.Equal(got, want) || shipper.Stats().Acked != end {
				t.Errorf("%v were sent after the fsync of %v", got, want)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestABadPlaceInTheLogStopsTheShipper(t *testing.T) {
	state := filepath.Join(t.TempDir(), "shipped")
	if err := os.WriteFile(state, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := ship.New(ship.Config{Log: clicklogtest.Open(t, clicklog.Config{}), Sink: newFaultySink(t, 0), State: state})
	if err := s.Run(t.Context()); err == nil {
		t.Error("it runs")
	}
}
