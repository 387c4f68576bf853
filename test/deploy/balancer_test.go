package deploy_test

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
	"curt/test/internal/fleetload"
)

// balancer is a server in front of a fleet, with an example of deploy as its configuration.
type balancer struct {
	name string
	// open writes the configuration into a folder and returns the command that runs it. The
	// pairs replace the names of servers.
	open func(t *testing.T, dir string, at doorway, servers []string) *exec.Cmd
	// repeats: it repeats a create with an Idempotency-Key whose connection ended. Clients of
	// others get 502, and do it themselves.
	repeats bool
}

func balancers() []balancer {
	return []balancer{
		{"HAProxy", haproxy, true},
		{"nginx", func(t *testing.T, dir string, at doorway, servers []string) *exec.Cmd {
			t.Helper()
			return nginx(t, dir, at, "/deploy/nginx/roles.conf", servers...)
		}, true},
		{"Caddy", func(t *testing.T, dir string, at doorway, servers []string) *exec.Cmd {
			t.Helper()
			return caddy(t, dir, at, "/deploy/caddy/roles.Caddyfile", servers...)
		}, false},
	}
}

func haproxy(t *testing.T, dir string, at doorway, servers []string) *exec.Cmd {
	t.Helper()
	var pem []byte
	for _, name := range []string{at.cert, at.key} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pem = append(pem, text...)
	}
	both := filepath.Join(dir, "both.pem")
	write(t, both, string(pem))
	config := filepath.Join(dir, "haproxy.cfg")
	write(t, config, fill(t, root+"/deploy/haproxy/haproxy.cfg", append(servers,
		"bind :80", "bind "+at.http, "bind :443", "bind "+at.https, "/etc/haproxy/go.example.com.pem", both)...))
	return exec.Command(tool(t, "haproxy", "apt-get install haproxy"), "-db", "-f", config)
}

// upstreams are two servers for links and two for the API over one database.
type upstreams struct {
	db    *testkit.Postgres
	nodes [4]*member
}

// member is one server of a fleet, which starts again on its folder and address.
type member struct {
	*curttest.Server

	options curttest.Options
}

// start starts servers at the same time.
func start(t *testing.T, members ...*member) {
	t.Helper()
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() { m.Server, errs[i] = curttest.Launch(t, m.options) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// serverNames are those of the examples, in the order of upstreams.nodes.
func serverNames() [4]string {
	return [4]string{"redirect-1:8080", "redirect-2:8080", "api-1:8080", "api-2:8080"}
}

func startUpstreams(t *testing.T) *upstreams {
	t.Helper()
	f := &upstreams{db: testkit.StartPostgres(t, testkit.PostgresConfig{})}
	url := f.db.Database(t)
	for i := range f.nodes {
		role, _, _ := strings.Cut(serverNames()[i], "-")
		f.nodes[i] = &member{options: curttest.Options{Data: t.TempDir(), Env: []string{
			"CURT_LINKS=" + url, "CURT_ANALYTICS=" + url, "CURT_ROLE=" + role, "CURT_LISTEN=" + curttest.FreeAddr(t), "CURT_DRAIN_DELAY=3s",
			"CURT_BASE_URL=https://" + public, "CURT_TRUSTED_PROXIES=127.0.0.1/32,::1/128", "CURT_UNKNOWN_LIMIT=3/h", "CURT_STRICT_HOST=true",
		}}}
	}
	start(t, f.nodes[2]) // the schema
	start(t, f.nodes[0], f.nodes[1], f.nodes[3])
	return f
}

// front starts a balancer in front of the fleet.
func (f *upstreams) front(t *testing.T, b balancer) doorway {
	t.Helper()
	cert, key := curttest.Certificate(t, public)
	at := doorway{http: curttest.FreeAddr(t), https: curttest.FreeAddr(t), cert: cert, key: key}
	var servers []string
	for i, n := range f.nodes {
		servers = append(servers, serverNames()[i], n.Addr)
	}
	curttest.Begin(t, b.open(t, t.TempDir(), at, servers), at.https, 3*time.Minute)
	return at
}

// TestBalancer runs HAProxy's example.
func TestBalancer(t *testing.T) {
	t.Parallel()
	checkBalancer(t, balancers()[0])
}

// TestOtherBalancers runs the others.
func TestOtherBalancers(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	for _, b := range balancers()[1:] {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			checkBalancer(t, b)
		})
	}
}

// checkBalancer puts an example in front of a fleet under load: one server of each role is killed and
// started again, the other one is rolled. Clients that retry once on a refused or reset
// connection see no failure, links that were acknowledged are there, visits are split evenly, and
// a claimed address changes nothing.
func checkBalancer(t *testing.T, b balancer) {
	t.Helper()
	f := startUpstreams(t)
	at := f.front(t, b)
	checkDoor(t, at)
	l := f.load(t, at, b.repeats)
	checkServedBy(t, at, l.Links()[0].Code)
	f.replace(t, l, 0, 2, func(m *member) { m.Kill() })
	f.replace(t, l, 1, 3, func(m *member) { m.Terminate(t) })
	progress(t, l)
	l.Stop()
	f.checkSplit(t, l)
	l.Report(t)
	for _, to := range l.Links() {
		if err := l.Follow(t.Context(), "https://"+public, to); err != nil {
			t.Fatal(err)
		}
	}
}

// checkServedBy requests what only one role serves.
func checkServedBy(t *testing.T, at doorway, code string) {
	t.Helper()
	c := visitor(t, at, "127.0.0.5")
	for _, path := range []string{"/", "/report", "/app/", "/api/openapi.json", "/" + code + "+"} {
		if a := call(t, c, http.MethodGet, "https://"+public+path, ""); a.status != http.StatusOK {
			t.Errorf("GET %s: %d", path, a.status)
		}
	}
	for _, path := range []string{"/" + code + "/stats", "/appeal", "/problems/expired"} { // without a right to see it, or elsewhere
		if a := call(t, c, http.MethodGet, "https://"+public+path, ""); a.status == http.StatusNotFound {
			t.Errorf("GET %s: %d", path, a.status)
		}
	}
	for _, path := range []string{"/shorten", "/v1/urls"} {
		a := call(t, c, http.MethodPost, "https://"+public+path, `{"long_url":"https://example.com/"}`,
			"Authorization: Bearer "+curttest.Key, "Content-Type: application/json")
		if a.status != http.StatusCreated && a.status != http.StatusOK {
			t.Errorf("POST %s: %d %s", path, a.status, a.body)
		}
	}
	if a := call(t, c, http.MethodGet, "https://"+public+"/shorten", ""); a.status != http.StatusNotFound {
		t.Errorf("GET /shorten: %d", a.status)
	}
}

// TestBalancersWithoutDatabase: cached links are served while no server is ready.
func TestBalancersWithoutDatabase(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	for _, b := range balancers() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			f := startUpstreams(t)
			l := f.load(t, f.front(t, b), b.repeats)
			progress(t, l)
			for _, n := range f.nodes[:2] { // a balancer may send all to one until it has checked the other
				soon(t, "a visit of each server", func() bool { return metric(t, n, "curt_clicks_captured_total") > 0 })
			}
			f.db.Stop(t, func() {
				for _, n := range f.nodes[:2] {
					soon(t, "a server that is not ready", func() bool {
						status, _ := curttest.Probe(t.Context(), n.Addr, "/readyz")
						return status == http.StatusServiceUnavailable
					})
				}
				for range 20 { // three rounds of checks
					time.Sleep(150 * time.Millisecond)
					if err := l.Follow(t.Context(), "https://"+public, l.Links()[0]); err != nil {
						t.Fatalf("a cached link: %v", err)
					}
				}
			})
			l.Stop()
		})
	}
}

// load starts clients: one link that all visit is there before.
func (f *upstreams) load(t *testing.T, at doorway, repeats bool) *fleetload.Clients {
	t.Helper()
	c := fleetload.Config{Client: visitor(t, at, "127.0.0.4"), API: []string{"https://" + public}, Links: []string{"https://" + public}, Creators: 2, Visitors: 6, First: 1}
	if !repeats {
		c.Again = func(method string, status int) bool {
			return method == http.MethodPost && status == http.StatusBadGateway
		}
	}
	return fleetload.Start(t, c)
}

// progress waits until clients were answered many times more.
func progress(t *testing.T, l *fleetload.Clients) {
	t.Helper()
	l.Progress(t, 100, 20)
}

// replace ends two servers and starts them again, with load before, between, and until both
// get their part of it.
func (f *upstreams) replace(t *testing.T, l *fleetload.Clients, redirect, api int, end func(m *member)) {
	t.Helper()
	progress(t, l)
	var wg sync.WaitGroup
	for _, i := range []int{redirect, api} {
		wg.Go(func() { end(f.nodes[i]) })
	}
	wg.Wait()
	progress(t, l)
	start(t, f.nodes[redirect], f.nodes[api])
	soon(t, "a visit of the new server", func() bool { return metric(t, f.nodes[redirect], "curt_clicks_captured_total") > 0 })
	soon(t, "a call of the new server", func() bool { return metric(t, f.nodes[api], "curt_api_answers_total") > 0 })
}

// checkSplit visits a link, and compares what the two servers captured. Where a busy machine holds a server or a check up, a
// later round has to be even.
func (f *upstreams) checkSplit(t *testing.T, l *fleetload.Clients) {
	t.Helper()
	soon(t, "visits that are split evenly", func() bool {
		one, two := f.split(t, l)
		t.Logf("visits are split %.0f to %.0f", one, two)
		share := one / (one + two)
		return share >= 0.45 && share <= 0.55
	})
}

// split visits a link and returns how many visits each server captured.
func (f *upstreams) split(t *testing.T, l *fleetload.Clients) (one, two float64) {
	t.Helper()
	const visits = 200
	captured := func(i int) float64 { return metric(t, f.nodes[i], "curt_clicks_captured_total") }
	var before [2]float64
	for sum := -1.0; sum != before[0]+before[1]; time.Sleep(200 * time.Millisecond) { // until all before are captured
		sum = before[0] + before[1]
		before = [2]float64{captured(0), captured(1)}
	}
	for range visits {
		l.Visit(t.Context(), 0)
	}
	soon(t, "the last click", func() bool {
		one, two = captured(0)-before[0], captured(1)-before[1]
		return one+two >= visits
	})
	return one, two
}

func metric(t *testing.T, m *member, name string) float64 {
	t.Helper()
	v, _, err := m.Metric(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// soon polls until ok, three minutes at the most.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("three minutes passed without %s", what)
		}
	}
}
