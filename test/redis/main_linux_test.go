package redis_test

import (
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// fleet is several servers over one database and one Redis.
type fleet struct {
	whole    *testing.T // what the servers live as long as
	postgres *testkit.Postgres
	redis    *testkit.Redis
	heard    time.Duration // until half of the kills were heard of, while all was well
	servers  []*curttest.Server
	api      *client.Client // of the first
}

// gather starts n servers. url = "" is the address of a Redis of their own; "none" means
// that they share nothing but the database.
func gather(t *testing.T, n int, url string, env ...string) *fleet {
	t.Helper()
	f := &fleet{whole: t, postgres: testkit.StartPostgres(t, testkit.PostgresConfig{})}
	switch url {
	case "":
		f.redis = testkit.StartRedis(t)
		env = append(env, "CURT_CACHE="+f.redis.URL())
	case "none":
	default:
		env = append(env, "CURT_CACHE="+url)
	}
	database := f.postgres.Database(t)
	for range n {
		f.servers = append(f.servers, curttest.Start(t, curttest.Options{Data: t.TempDir(), Env: append([]string{"CURT_LINKS=" + database}, env...)}))
	}
	var err error
	if f.api, err = client.New("http://"+f.servers[0].Addr, client.WithKey(curttest.Key)); err != nil {
		t.Fatal(err)
	}
	if url != "none" {
		for _, s := range f.servers {
			within(t, "Redis in use", func() bool { return metric(t, s, "curt_redis_up") == 1 })
		}
	}
	return f
}

// make makes links on the first server and returns their codes.
func (f *fleet) make(t *testing.T, n int) []string {
	t.Helper()
	wanted := make([]client.NewLink, n)
	for i := range wanted {
		wanted[i] = client.NewLink{LongURL: "https://example.com/a"}
	}
	made, err := f.api.CreateMany(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	codes := make([]string, n)
	for i, r := range made {
		if r.Link == nil {
			t.Fatalf("entry %d: %+v", i, r)
		}
		codes[i] = r.Link.ShortCode
	}
	return codes
}

// kill switches a link off on the first server.
func (f *fleet) kill(t *testing.T, code string) {
	t.Helper()
	if _, err := f.api.Update(t.Context(), code, map[string]any{"status": "disabled"}); err != nil {
		t.Fatal(err)
	}
}

// visitor is a connection to one server.
type visitor struct {
	t *testing.T
	c *curttest.Conn
}

func (f *fleet) visitors(t *testing.T) []visitor {
	t.Helper()
	all := make([]visitor, len(f.servers))
	for i, s := range f.servers {
		c := s.MustDial(t)
		t.Cleanup(c.Close)
		all[i] = visitor{t, c}
	}
	return all
}

// lookUp is what a look-up has for an answer of the database.
const lookUp = time.Second

// asks returns what a code is answered with. A look-up that a busy machine did not finish in time is a 503, and asked for again.
func (v visitor) asks(code string) int {
	v.t.Helper()
	for tries := 1; ; tries++ {
		began := time.Now()
		a, err := v.c.Do("GET", "/"+code, nil, "")
		if err != nil {
			v.t.Fatal(err)
		}
		if a.Status != http.StatusServiceUnavailable || time.Since(began) < lookUp || tries == 10 {
			return a.Status
		}
	}
}

// load asks every server for codes in turn, steadily, until it is ended.
type load struct {
	stop chan struct{}
	wg   sync.WaitGroup

	mu    sync.Mutex
	took  []time.Duration // guarded by mu, as the rest
	late  int             // look-ups that were not finished in time
	other map[int]int     // other answers that are no redirects, by status; 0 = none
}

// press begins a load of a request a millisecond on each server.
func (f *fleet) press(t *testing.T, codes []string) *load {
	t.Helper()
	l := &load{stop: make(chan struct{}), other: map[int]int{}}
	for _, s := range f.servers {
		c := s.MustDial(t)
		l.wg.Go(func() {
			defer c.Close()
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-l.stop:
					return
				case <-tick.C:
				}
				begun := time.Now()
				a, err := c.Do("GET", "/"+codes[i%len(codes)], nil, "")
				l.note(time.Since(begun), a.Status, err)
				if err != nil {
					return
				}
			}
		})
	}
	return l
}

func (l *load) note(took time.Duration, status int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = append(l.took, took)
	if err != nil {
		status = 0
	}
	switch {
	case status == http.StatusServiceUnavailable && took >= lookUp:
		l.late++
	case status != http.StatusFound:
		l.other[status]++
	}
}

// more waits until so many further questions were answered.
func (l *load) more(t *testing.T, n int) {
	t.Helper()
	answers := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.took)
	}
	begun := answers()
	within(t, "answer to all that ask", func() bool { return answers()-begun >= n })
}

// end stops the load and fails the test unless every answer was a redirect, but for a few look-ups that a busy
// machine did not finish in time. It returns the p99.
func (l *load) end(t *testing.T, what string) time.Duration {
	t.Helper()
	close(l.stop)
	l.wg.Wait()
	if len(l.other) > 0 || l.late > len(l.took)/50 {
		t.Errorf("%s: %v of %d answers were no redirects, %d were late", what, l.other, len(l.took), l.late)
	}
	if len(l.took) == 0 {
		t.Fatalf("%s: nobody asked", what)
	}
	slices.Sort(l.took)
	p99 := l.took[len(l.took)*99/100]
	t.Logf("%s: %d answers, p50 %v, p99 %v, longest %v", what, len(l.took), l.took[len(l.took)/2], p99, l.took[len(l.took)-1])
	return p99
}

func metric(t *testing.T, s *curttest.Server, name string) float64 {
	t.Helper()
	v, _, err := s.Metric(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sum adds a metric up over all servers.
func (f *fleet) sum(t *testing.T, name string) (n float64) {
	t.Helper()
	for _, s := range f.servers {
		n += metric(t, s, name)
	}
	return n
}

// within polls until something holds, three minutes at the most, and returns how long that took.
func within(t *testing.T, what string, holds func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for !holds() {
		if time.Since(begun) > 3*time.Minute {
			t.Fatalf("no %s within three minutes", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(begun)
}

func signal(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}
