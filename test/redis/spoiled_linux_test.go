package redis_test

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/internal/testkit/relay"
	"curt/test/internal/curttest"
)

// spoiled is a fleet whose way to Redis leads through a relay and Toxiproxy.
type spoiled struct {
	*fleet
	relay *relay.Relay
	proxy *testkit.SpoiledRedis
}

// TestASpoiledWay lets one fleet go through what connections do on bad days.
func TestASpoiledWay(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	proxy := testkit.SpoilRedis(t, testkit.StartRedis(t))
	r, err := relay.Start(proxy.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	f := spoiled{gather(t, 3, "redis://"+r.Addr(), "CURT_CACHE_WARM=true"), r, proxy}
	for _, part := range []struct {
		name string
		run  func(*testing.T, spoiled)
	}{
		{"subscribers hear nothing", deaf},
		{"50 ms slow", func(t *testing.T, f spoiled) { f.endures(t, f.slow(50*time.Millisecond)) }},
		{"2 s slow", func(t *testing.T, f spoiled) { f.endures(t, f.slow(2*time.Second)) }},
		{"half open", func(t *testing.T, f spoiled) { f.endures(t, f.halfOpen()) }},
		{"a server that slept serves nothing dead", func(t *testing.T, f spoiled) { slept(t, f.fleet) }},
		{"new links are in Redis", func(t *testing.T, f spoiled) { warmed(t, f.fleet) }},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(t, f) }) {
			return // what comes next would begin with what is broken
		}
	}
}

// deaf cuts Pub/Sub without a word, while Redis answers everything else, and kills links
// from then on: each has to be dead everywhere soon. That the cut is one is seen in the time
// that the kills take.
func deaf(t *testing.T, f spoiled) {
	f.killAll(t, 1)
	f.relay.Mute(true)
	defer f.relay.Mute(false)
	links, every := 50, 100*time.Millisecond // over 5 s: until the silence is noticed, and behind it
	if curttest.Long() {
		links, every = 1000, 10*time.Millisecond
	}
	took := f.killSteadily(t, links, every)
	t.Logf("%d kills: p50 %v, longest %v", links, took[links/2], took[links-1])
	if longest := took[links-1]; longest < 500*time.Millisecond {
		t.Errorf("all were heard within %v: the subscriptions may not have been silent", longest)
	}
	within(t, "use of Redis by all: more than subscriptions was silent", func() bool {
		return f.sum(t, "curt_redis_up") == float64(len(f.servers))
	})
}

// killSteadily kills links one after the other and returns how long each was alive
// anywhere after its kill was answered, sorted. None may be so for three minutes.
func (f *fleet) killSteadily(t *testing.T, n int, every time.Duration) (took []time.Duration) {
	t.Helper()
	codes, visitors := f.make(t, n), f.visitors(t)
	for _, v := range visitors {
		for _, code := range codes {
			v.asks(code)
		}
	}
	type dying struct {
		code   string
		killed time.Time
		alive  []visitor
	}
	var open []*dying
	begun := time.Now()
	for killed := 0; killed < n || len(open) > 0; {
		if killed < n && time.Since(begun) >= time.Duration(killed)*every {
			f.kill(t, codes[killed])
			open = append(open, &dying{codes[killed], time.Now(), slices.Clone(visitors)})
			killed++
		}
		for _, d := range open {
			d.alive = slices.DeleteFunc(d.alive, func(v visitor) bool {
				asked := time.Now()
				dead := v.asks(d.code) == http.StatusGone
				if !dead && asked.Sub(d.killed) > 3*time.Minute {
					t.Fatalf("a link is alive %v after it was killed", asked.Sub(d.killed))
				}
				return dead
			})
			if len(d.alive) == 0 {
				took = append(took, time.Since(d.killed))
			}
		}
		open = slices.DeleteFunc(open, func(d *dying) bool { return len(d.alive) == 0 })
		time.Sleep(time.Millisecond)
	}
	slices.Sort(took)
	return took
}

// fault is something that befalls the way to Redis.
type fault struct {
	name       string
	begin, end func(*testing.T)
	least      time.Duration // that a question takes meanwhile
}

func (f spoiled) slow(d time.Duration) fault {
	return fault{
		name:  d.String() + " slow",
		begin: func(t *testing.T) { f.proxy.Slow(t, d) }, end: func(t *testing.T) { f.proxy.Slow(t, 0) }, least: d,
	}
}

func (f spoiled) halfOpen() fault {
	return fault{
		name:  "half open",
		begin: func(t *testing.T) { f.proxy.Silent(t, true) }, end: func(t *testing.T) { f.proxy.Silent(t, false) }, least: 3 * time.Second,
	}
}

// fewWaits is how many questions of a server to Redis may end too late before it asks no
// more: those of 25 ms that open the breaker, what was on its way then, and for each of them
// a link that is put into Redis with nobody waiting. On a busy machine more is on its way at a
// time, up to a third of the answers; if nothing stopped the asking, it would be nearly all.
const fewWaits = 20

// endures presses the fleet while it is healthy and while the way is spoiled. Only a few
// visitors may have waited for Redis, so that the slowest of a hundred answers was not among
// them: that holds on a busy machine, too, where times say little.
func (f spoiled) endures(t *testing.T, bad fault) {
	fresh, known := f.make(t, 200), f.make(t, 200)
	l := f.press(t, known)
	l.more(t, someLoad)
	healthy := l.end(t, "healthy")
	loads, timeouts := f.sum(t, "curt_cache_loads_total"), f.sum(t, "curt_redis_timeouts_total")
	within(t, "quick answer before the fault", func() bool { return f.question(t, bad.least) < bad.least })
	bad.begin(t)
	l = f.press(t, append(fresh, known...))
	if took := f.question(t, bad.least); took < bad.least {
		t.Errorf("a question took %v: the fault was none", took)
	}
	f.killAll(t, 1) // of a link that is made meanwhile
	l.more(t, someLoad)
	p99 := l.end(t, bad.name)
	waited := f.sum(t, "curt_redis_timeouts_total") - timeouts
	if waited == 0 || waited > float64(max(fewWaits*len(f.servers), len(l.took)/3)) {
		t.Errorf("%v questions took too long, with %d answers", waited, len(l.took))
	}
	// Each link once for each server, and the one that was killed twice.
	if got, links := f.sum(t, "curt_cache_loads_total")-loads, len(fresh)+len(known)+2; got > float64(len(f.servers)*links) {
		t.Errorf("%v reads of %d links by %d servers", got, links, len(f.servers))
	}
	if curttest.Long() && p99 > max(healthy*6/5, 10*time.Millisecond) {
		t.Errorf("p99 %v, and %v without the fault", p99, healthy)
	}
	bad.end(t)
	for i, s := range f.servers {
		within(t, "Redis in use again by server "+strconv.Itoa(i), func() bool { return metric(t, s, "curt_redis_up") == 1 })
	}
	f.killAll(t, 1)
}

// question asks Redis for a PONG on a connection of its own, and returns how long that
// took, or the bound.
func (f spoiled) question(t *testing.T, bound time.Duration) time.Duration {
	t.Helper()
	begun := time.Now()
	c, err := (&net.Dialer{Timeout: bound}).DialContext(t.Context(), "tcp", f.proxy.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(begun.Add(bound))
	_, _ = c.Write([]byte("PING\r\n"))
	_, _ = c.Read(make([]byte, 16)) // or the deadline
	return time.Since(begun)
}

// slept: a server hears on waking what was said meanwhile.
func slept(t *testing.T, f *fleet) {
	codes, visitors := f.make(t, 5), f.visitors(t)
	for _, v := range visitors {
		for _, code := range codes {
			v.asks(code)
		}
	}
	signal(t, f.servers[1].PID, syscall.SIGSTOP)
	for _, code := range codes {
		f.kill(t, code)
	}
	time.Sleep(3 * time.Second) // asleep: longer than a bus may be silent for
	signal(t, f.servers[1].PID, syscall.SIGCONT)
	if got := visitors[1].asks(codes[0]); got == http.StatusFound {
		t.Log("the first answer was of before")
	}
	for _, code := range codes {
		within(t, "dead link on the server that woke", func() bool { return visitors[1].asks(code) == http.StatusGone })
	}
}

// warmed: links that were put into Redis when they were made are read by nobody.
func warmed(t *testing.T, f *fleet) {
	within(t, "new link that is read by nobody", func() bool { // the first ones come too early
		codes := f.make(t, 20)
		time.Sleep(200 * time.Millisecond) // they are put behind the answer
		before := f.sum(t, "curt_cache_loads_total")
		for _, v := range f.visitors(t) {
			for _, code := range codes {
				if got := v.asks(code); got != http.StatusFound {
					t.Fatalf("a new link is answered %d", got)
				}
			}
		}
		return f.sum(t, "curt_cache_loads_total") == before
	})
}
