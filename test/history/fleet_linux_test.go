package history_test

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// servers is how many curt processes there are.
const servers = 3

// fleet is servers over one PostgreSQL, whose synchronous standby is also their replica, and
// over one Redis where there is one. A primary that died is gone: after it there is neither. Or it is
// servers over DynamoDB.
type fleet struct {
	t                *testing.T
	primary, standby *testkit.Postgres // nil over DynamoDB
	redis            *testkit.Redis    // nil = none
	tables           *tables           // nil over PostgreSQL
	env              []string
	running          [servers]atomic.Pointer[curttest.Server]
	began            time.Time

	mu           sync.Mutex
	faults       []porcupine.Annotation // guarded by mu
	disconnected []outage               // guarded by mu
	shaky        []outage               // guarded by mu: when what the bus says may be late
	stall        time.Duration          // the longest of the machine; guarded by mu
}

// gather starts a fleet.
func gather(t *testing.T, redis bool) *fleet {
	t.Helper()
	f := &fleet{t: t, primary: testkit.StartPostgres(t, testkit.PostgresConfig{Fsync: true})}
	f.standby = testkit.StartStandby(t, f.primary)
	f.env = []string{
		"CURT_LINKS=" + f.primary.URLs("curt", f.standby), "CURT_LINKS_REPLICAS=" + f.standby.URL("curt"), "CURT_LINKS_REPLICA_LAG=1s",
		"CURT_UNKNOWN_LIMIT=off",
	}
	if redis {
		f.redis = testkit.StartRedis(t)
		f.env = append(f.env, "CURT_CACHE="+f.redis.URL())
	}
	f.startAll()
	return f
}

// startAll starts all servers, on folders of their own.
func (f *fleet) startAll() {
	f.t.Helper()
	for i := range servers {
		f.start(i, f.t.TempDir())
	}
	f.began = time.Now()
	go f.watch()
}

// start starts a server on a folder.
func (f *fleet) start(server int, data string) {
	f.running[server].Store(curttest.Start(f.t, curttest.Options{Data: data, Env: f.env}))
}

func (f *fleet) server(i int) *curttest.Server { return f.running[i].Load() }

func (f *fleet) now() time.Duration { return time.Since(f.began) }

// watch notes how long the machine lets nobody run, until the test ends.
func (f *fleet) watch() {
	const beat = 10 * time.Millisecond
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for last := time.Now(); ; last = time.Now() {
		select {
		case <-f.t.Context().Done():
			return
		case <-tick.C:
		}
		f.mu.Lock()
		f.stall = max(f.stall, time.Since(last)-beat)
		f.mu.Unlock()
	}
}

// fault lets something happen, and notes that a server (-1 = all) is disconnected meanwhile and for
// so much longer.
func (f *fleet) fault(name string, server int, within time.Duration, happens func()) {
	f.t.Helper()
	from := f.now()
	happens()
	to := f.now()
	f.t.Logf("%6s to %6s: %s", from.Round(100*time.Millisecond), to.Round(100*time.Millisecond), name)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, porcupine.Annotation{Tag: "faults", Start: int64(from), End: int64(to), Description: name})
	f.disconnected = append(f.disconnected, outage{server, from, to, within})
}

// shake notes that others hear late of what is changed while something happens.
func (f *fleet) shake(name string, happens func()) {
	f.t.Helper()
	f.fault(name, servers, 0, func() { // no server is disconnected
		d := outage{server: -1, from: f.now(), within: lateByLog}
		happens()
		d.to = f.now()
		f.mu.Lock()
		f.shaky = append(f.shaky, d)
		f.mu.Unlock()
	})
}

// asleep stops a server for as long as f runs.
func (f *fleet) asleep(server int, happens func()) {
	f.t.Helper()
	pid := f.server(server).PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		f.t.Fatal(err)
	}
	defer func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			f.t.Error(err)
		}
	}()
	happens()
}

// slack is what a machine that has other work may add to a bound: a word passes some
// processes, each of which may be held up as long as this one was.
func (f *fleet) slack() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	slack := time.Second + 4*f.stall
	if f.tables != nil {
		slack += 3 * time.Second // its requests wait in DynamoDB Local, whose pauses this process does not see
	}
	return slack
}

// promised are the bounds of visitors: what they are, and those of a calm time, which with
// Redis are narrower.
func (f *fleet) promised() (always, calm *bounds) {
	slack := f.slack()
	f.mu.Lock()
	defer f.mu.Unlock()
	widened := func(all []outage) []outage {
		all = slices.Clone(all)
		slices.SortFunc(all, func(a, b outage) int { return int(a.from - b.from) })
		for i := range all {
			all[i].within += slack
		}
		return all
	}
	if f.redis == nil {
		return &bounds{heard + slack, widened(f.disconnected)}, nil
	}
	return &bounds{lateByLog + slack, widened(f.disconnected)}, &bounds{heard + slack, widened(slices.Concat(f.disconnected, f.shaky))}
}

const (
	// heard is how long a server may take to know what another was told.
	heard = 2 * time.Second
	// lateByLog is the same where servers that hear of each other by Redis miss a word: the
	// change log is read all the same, every fourth second or 2.5 s after the bus fell silent.
	lateByLog = 5 * time.Second
	// woken is how long one that slept may take.
	woken = time.Second
)
