package redis_test

import (
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// rounds is n, or many times that in the long form.
func rounds(n int) int {
	if curttest.Long() {
		return 50 * n
	}
	return n
}

// TestTogether lets one fleet go through all of it, the gravest last.
func TestTogether(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	f := gather(t, 3, "", "CURT_UNKNOWN_LIMIT=off") // all visitors have one address
	for _, part := range []struct {
		name string
		run  func(*testing.T, *fleet)
	}{
		{"a kill is heard at once", killsAtOnce},
		{"the store is read once for all", readOnce},
		{"a silent bus is noticed", silentBus},
		{"a stampede is one read for each server", stampede},
		{"what Redis forgets is not read again", forgotten},
		{"a scan for codes is no read", scanned},
		{"Redis may fail", mayFail},
		{"limits hold together", limits},
		{"with neither Redis nor the database", neither},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(t, f) }) {
			return // what comes next would begin with what is broken
		}
	}
}

// killsAtOnce kills links that every server has in memory. The figure is in the log; that it
// is one of Redis' silentBus shows, which is its control.
func killsAtOnce(t *testing.T, f *fleet) {
	f.killAll(t, 1) // the subscriptions begin when Redis is connected
	took := f.killAll(t, rounds(20))
	f.heard = took[len(took)/2]
}

// killAll kills links one after the other, and returns how long each was alive anywhere
// after its kill was answered, sorted.
func (f *fleet) killAll(t *testing.T, n int) []time.Duration {
	t.Helper()
	codes, visitors := f.make(t, n), f.visitors(t)
	var took []time.Duration
	for _, code := range codes {
		for i, v := range visitors {
			within(t, "link on server "+strconv.Itoa(i), func() bool { return v.asks(code) == http.StatusFound })
		}
		f.kill(t, code)
		begun := time.Now()
		for i, v := range visitors {
			within(t, "dead link on server "+strconv.Itoa(i), func() bool { return v.asks(code) == http.StatusGone })
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	t.Logf("%d kills: p50 %v, p99 %v, longest %v", n, took[n/2], took[n*99/100], took[n-1])
	return took
}

// TestWithoutABusAKillTakesUntilTheLogIsRead is the control of killsAtOnce.
func TestWithoutABusAKillTakesUntilTheLogIsRead(t *testing.T) {
	testkit.Faults(t)
	if !curttest.Long() {
		t.Skip("part of the long form")
	}
	took := gather(t, 2, "none").killAll(t, 3)
	if longest := took[len(took)-1]; longest < 30*time.Millisecond {
		t.Errorf("heard within %v without a bus: the other test may prove nothing", longest)
	}
}

// silentBus stalls Redis, so that connections stay and say nothing. By chance the log may be read at once after a kill: one of
// several is heard of late.
func silentBus(t *testing.T, f *fleet) {
	codes, visitors := f.make(t, 20), f.visitors(t)
	for _, v := range visitors {
		for _, code := range codes {
			v.asks(code)
		}
	}
	signal(t, f.redis.Pid, syscall.SIGSTOP)
	defer signal(t, f.redis.Pid, syscall.SIGCONT)
	var longest time.Duration
	for i, code := range codes {
		if i >= 3 && longest >= f.heard {
			break
		}
		f.kill(t, code)
		begun := time.Now()
		for _, v := range visitors {
			within(t, "dead link", func() bool { return v.asks(code) == http.StatusGone })
		}
		longest = max(longest, time.Since(begun))
	}
	if longest < f.heard {
		t.Errorf("kills were heard within %v of a silent bus, and half of them within %v of one that works", longest, f.heard)
	}
}

// someLoad is how many answers there are to a load on all servers, at a healthy time half a
// second's.
const someLoad = 1500

// mayFail lets Redis stall, die, come back empty, forget and fill up under load.
func mayFail(t *testing.T, f *fleet) {
	codes := f.make(t, 500)
	l := f.press(t, codes)
	l.more(t, someLoad)
	l.end(t, "healthy")
	create := func() {
		t.Helper()
		if _, err := f.api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/", CustomAlias: "x" + strconv.FormatInt(time.Now().UnixNano(), 36)}); err != nil {
			t.Errorf("create: %v", err)
		}
	}
	for _, fault := range []struct {
		name string
		do   func()
	}{
		{"forgets everything", func() { f.redis.Do(t, "flushall") }},
		{"subscribers are cut off", func() { f.redis.Do(t, "client", "kill", "type", "pubsub") }},
		{"sleeps for a second", func() { f.redis.Do(t, "debug", "sleep", "1") }},
		{"is full", func() {
			f.redis.Do(t, "config", "set", "maxmemory-policy", "noeviction")
			f.redis.Do(t, "config", "set", "maxmemory", "1")
		}},
		{"stalls", func() {
			signal(t, f.redis.Pid, syscall.SIGSTOP)
			within(t, "server that asks Redis no more", func() bool { return f.sum(t, "curt_redis_up") == 0 })
			create()
			signal(t, f.redis.Pid, syscall.SIGCONT)
		}},
		{"dies", func() { signal(t, f.redis.Pid, syscall.SIGKILL) }},
		{"comes back", func() { f.redis.Again(f.whole) }},
	} {
		fresh := f.make(t, 200) // nobody has them in memory
		l := f.press(t, append(fresh, codes...))
		fault.do()
		create()
		f.killAll(t, 1)
		l.more(t, someLoad) // on what the fault left
		l.end(t, fault.name)
	}
	for _, s := range f.servers {
		within(t, "Redis in use again", func() bool { return metric(t, s, "curt_redis_up") == 1 })
	}
	if f.sum(t, "curt_redis_timeouts_total") == 0 || f.sum(t, "curt_redis_failures_total") == 0 {
		t.Error("no time-out or no failure was counted: the faults may have been none")
	}
}

// readOnce: of links that all servers are asked for, each is read from
// the database once or twice, when two met; after FLUSHALL not at all, because what is in
// memory stays there. What a busy machine puts into Redis or reads there late is another read
// of the database: of several rounds one must do without.
func readOnce(t *testing.T, f *fleet) {
	var codes []string
	within(t, "links that were read about once", func() bool {
		codes = f.make(t, 300)
		before := f.sum(t, "curt_cache_loads_total")
		for _, v := range f.visitors(t) { // one server after the other
			for _, code := range codes {
				if got := v.asks(code); got != http.StatusFound {
					t.Fatalf("%d", got)
				}
			}
			time.Sleep(200 * time.Millisecond) // what was read is put into Redis behind the answer
		}
		got := f.sum(t, "curt_cache_loads_total") - before
		t.Logf("%v reads of %d links by 3 servers", got, len(codes))
		return got <= 1.2*float64(len(codes))
	})
	f.redis.Do(t, "flushall")
	before := f.sum(t, "curt_cache_loads_total")
	l := f.press(t, codes)
	l.more(t, someLoad)
	l.end(t, "after FLUSHALL")
	if got := f.sum(t, "curt_cache_loads_total") - before; got > float64(3*len(codes)) {
		t.Errorf("%v reads after FLUSHALL", got)
	}
}

// limits: an address gets as much of three servers as of one. Without Redis each server by
// itself allows no more than it would alone, and remembers what it allowed before.
func limits(t *testing.T, f *fleet) {
	begun, alone := time.Now(), f.sum(t, "curt_limits_alone_total")
	n := f.makeAnonymously(t, 45)
	// One comes back every six seconds. Where Redis is late, on a busy machine, a server decides by itself.
	most := 10 + int(time.Since(begun)/(6*time.Second)) + 1 + int(f.sum(t, "curt_limits_alone_total")-alone)
	if n < 10 || n > most {
		t.Errorf("%d links were made, want 10", n)
	}
	signal(t, f.redis.Pid, syscall.SIGKILL)
	n += f.makeAnonymously(t, 45)
	each := 10 + int(time.Since(begun)/(6*time.Second)) + 1
	if n < 20 || n > each*len(f.servers) {
		t.Errorf("%d links were made with and without Redis, want no more than %d by each server", n, each)
	}
	if got := f.sum(t, "curt_limits_alone_total"); got == 0 {
		t.Error("no server decided by itself")
	}
	f.redis.Again(f.whole)
	within(t, "Redis in use again", func() bool { return f.sum(t, "curt_redis_up") == float64(len(f.servers)) })
}

// makeAnonymously tries to make links without a key, on each server in turn, and returns
// how many were made.
func (f *fleet) makeAnonymously(t *testing.T, tries int) (n int) {
	t.Helper()
	visitors := f.visitors(t)
	for i := range tries {
		a, err := visitors[i%len(visitors)].c.Do("POST", "/api/v1/links", []string{"Content-Type: application/json"}, `{"long_url":"https://example.com/"}`)
		if err != nil {
			t.Fatal(err)
		}
		switch a.Status {
		case http.StatusCreated:
			n++
		case http.StatusTooManyRequests:
		default:
			t.Fatalf("answered %d", a.Status)
		}
	}
	return n
}

// neither: what is in memory is served, what is known to be dead
// is not, and the servers want no traffic any more.
func neither(t *testing.T, f *fleet) {
	codes, visitors := f.make(t, 20), f.visitors(t)
	f.kill(t, codes[0])
	for _, v := range visitors {
		within(t, "dead link", func() bool { return v.asks(codes[0]) == http.StatusGone })
		for _, code := range codes[1:] {
			within(t, "link", func() bool { return v.asks(code) == http.StatusFound })
		}
	}
	signal(t, f.redis.Pid, syscall.SIGSTOP)
	defer signal(t, f.redis.Pid, syscall.SIGCONT)
	signal(t, f.postgres.Pid, syscall.SIGQUIT) // all of its processes end at once
	for i, s := range f.servers {
		within(t, "unready server "+strconv.Itoa(i), func() bool {
			status, err := curttest.Probe(t.Context(), s.Admin, "/readyz")
			return err == nil && status == http.StatusServiceUnavailable
		})
	}
	for _, v := range visitors {
		if got := v.asks(codes[0]); got == http.StatusFound {
			t.Error("a link known to be dead is served")
		}
		for _, code := range codes[1:] {
			if got := v.asks(code); got != http.StatusFound {
				t.Fatalf("a link in memory is answered %d", got)
			}
		}
	}
}

// TestAFailOverCostsNoAnswer kills the primary under load, with Sentinel and in a Cluster.
func TestAFailOverCostsNoAnswer(t *testing.T) {
	testkit.Faults(t)
	if !curttest.Long() {
		t.Skip("part of the long form")
	}
	for name, start := range map[string]func(t *testing.T) (url string, pid int){
		"sentinel": func(t *testing.T) (string, int) {
			s := testkit.StartSentinel(t)
			s.Hasty(t)
			return s.URL(), s.Primary.Pid
		},
		"cluster": func(t *testing.T) (string, int) {
			c := testkit.StartCluster(t)
			c.Hasty(t)
			return c.URL(), c.Nodes[0].Pid
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, pid := start(t)
			f := gather(t, 2, url)
			codes := f.make(t, 300)
			f.killAll(t, 2)
			begun := time.Now()
			made := f.makeAnonymously(t, 30)
			l := f.press(t, codes)
			l.more(t, 500)
			signal(t, pid, syscall.SIGKILL)
			f.killAll(t, 2)
			made += f.makeAnonymously(t, 30)
			l.end(t, "while the primary is gone")
			for i, s := range f.servers {
				took := within(t, "server with Redis in use again", func() bool { return metric(t, s, "curt_redis_up") == 1 })
				t.Logf("server %d uses Redis again after another %v", i, took)
			}
			f.killAll(t, 2)
			made += f.makeAnonymously(t, 30)
			each := 10 + int(time.Since(begun)/(6*time.Second)) + 1
			if made < 10 || made > each*len(f.servers) {
				t.Errorf("%d links were made, want no more than %d by each of %d servers", made, each, len(f.servers))
			}
		})
	}
}
