package background

import (
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// single runs the test on one processor.
func single(t *testing.T) {
	t.Helper()
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func TestOnlyASingleProcessorPauses(t *testing.T) {
	single(t)
	if newPauser() == nil {
		t.Error("one processor has none")
	}
	runtime.GOMAXPROCS(2)
	if newPauser() != nil {
		t.Error("two processors have some")
	}
}

// TestYieldsLetTheNetworkIn sends bytes back and forth while two goroutines compute on the only
// processor. With runtime.Gosched, as the control, Go looks at the network every 10 ms. A busy
// machine may hold either up: one of several rounds has to show it.
func TestYieldsLetTheNetworkIn(t *testing.T) {
	single(t)
	p := newPauser()
	defer p.timers.close() //nolint:errcheck // the end of a test
	until(t, "trips with yields take a quarter of the time", func() bool {
		gosched, yielding := trips(t, runtime.Gosched), trips(t, p.yield)
		t.Logf("50 trips take %v with Gosched and %v with yields", gosched, yielding)
		return yielding <= gosched/4
	})
}

// trips measures 50 trips of a byte to a peer and back beside two goroutines that compute.
func trips(t *testing.T, between func()) time.Duration {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the end of a test
	var stop atomic.Bool
	var others sync.WaitGroup
	defer others.Wait()
	defer stop.Store(true)
	others.Go(func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	})
	for range 2 {
		others.Go(func() {
			for !stop.Load() {
				for begin := time.Now(); time.Since(begin) < slice/4; {
				}
				between()
			}
		})
	}
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // the end of a test
	begin := time.Now()
	for range 50 {
		if _, err := c.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(begin)
}

// TestAYieldEnds: it lasts while many redirects are answered, and not for ever.
func TestAYieldEnds(t *testing.T) {
	single(t)
	p := newPauser()
	defer p.timers.close() //nolint:errcheck // the end of a test
	asked := 0
	p.redirects = func() uint64 { asked++; return uint64(backlog * min(asked, 6)) }
	// A machine that is busy elsewhere may end a yield early, or leave a slice between two.
	until(t, "it is looked 7 times for redirects, as in 5 pauses some had waited, and no yield follows on a yield", func() bool {
		asked = 0
		time.Sleep(slice)
		p.yield()
		first := asked
		p.yield()
		if first > 7 {
			t.Fatalf("it was looked %d times for redirects, want 7", first)
		}
		return first == 7 && asked == 7
	})
	p.redirects = func() uint64 { asked++; return uint64(backlog * asked) }
	time.Sleep(slice)
	begin := time.Now()
	if p.yield(); time.Since(begin) < maxPauses*slice {
		t.Errorf("after %v background work goes on, though redirects wait", time.Since(begin))
	}
}

func TestYieldsAreHeld(t *testing.T) {
	single(t)
	p := newPauser()
	defer p.timers.close() //nolint:errcheck // the end of a test
	first, second := p.hold(), p.hold()
	yielded := make(chan struct{})
	go func() { p.yield(); close(yielded) }()
	first()
	select {
	case <-yielded:
		t.Error("a yield ended while one still holds")
	case <-time.After(20 * slice): // that nothing happens has no event
	}
	second()
	<-yielded
}

func TestTimersWaitForEachOfMany(t *testing.T) {
	var c timers
	defer func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 20 {
				begin := time.Now()
				if c.wait(time.Millisecond); time.Since(begin) < time.Millisecond {
					t.Errorf("a millisecond took %v", time.Since(begin))
				}
			}
		})
	}
	all.Wait()
}

// TestGarbageIsCollectedBeforeTheRuntimeWould: on a single processor, with a second P.
func TestGarbageIsCollectedBeforeTheRuntimeWould(t *testing.T) {
	before := percent()
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "")
	b := boosting(t, 1)
	p := newPauser()
	defer p.timers.close() //nolint:errcheck // the end of a test
	c := newCollector(p, b)
	if percent() != 2*gcPercent || c.percent != gcPercent {
		t.Errorf("the runtime collects at %d %%, this at %d, want 100 and 50", percent(), c.percent)
	}
	most := 0
	for most < boostedToCollect { // Run may not listen yet
		b.doCollect(func() { most = max(most, runtime.GOMAXPROCS(0)) })
		runtime.Gosched()
	}
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	cycles := s.NumGC
	c.collect()
	if runtime.ReadMemStats(&s); s.NumGC == cycles {
		t.Error("nothing was collected")
	}
	if n := p.held.Load(); n != 0 {
		t.Errorf("%d still hold", n)
	}
	await(t, 1)
}

// until waits for what other goroutines are about to do.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s", what)
		}
	}
}
