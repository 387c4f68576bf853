package upgrade_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// before is the commit that a fleet is upgraded from, and taken back to.
const before = "64f2524"

// member is one server of a fleet.
type member struct {
	*curttest.Server

	role, addr string
	options    curttest.Options
}

// run starts the server with a program, on its folder and address.
func (m *member) run(t *testing.T, binary string) {
	t.Helper()
	m.options.Binary = binary
	m.Server = curttest.Start(t, m.options)
}

// fleet are two servers of each role over PostgreSQL, Redis, Kafka and ClickHouse.
type fleet struct {
	env     []string
	members []*member
	house   *testkit.ClickHouse
	clicks  string // its database
}

// TestFleetUpgrade rolls a fleet under load from an earlier program to this one and back, server by
// server. Clients that retry a refused connection see no failure, links that were acknowledged
// are there, and every answered visit is counted.
func TestFleetUpgrade(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	older, newer := curttest.BuildOf(t, before), curttest.Binary(t)
	f := startFleet(t, older)
	l := f.load(t)
	f.migrate(t, newer)
	f.contractWaits(t)
	for _, binary := range []string{newer, older} {
		for _, m := range f.members {
			l.progress(t)
			if code, _ := m.Terminate(t); code != 0 {
				t.Errorf("%s ended with %d:\n%s", m.role, code, m.Log())
			}
			l.progress(t) // with one server less
			m.run(t, binary)
		}
	}
	l.progress(t)
	l.stop()
	for _, text := range l.failed {
		t.Error(text)
	}
	t.Logf("%d visits, %d links, %d requests retried", l.answered.Load(), len(l.created), l.retried.Load())
	l.checkLinks(t)
	f.checkClicks(t, l)
}

func startFleet(t *testing.T, binary string) *fleet {
	t.Helper()
	database, redis, house := testkit.StartPostgres(t, testkit.PostgresConfig{}), testkit.StartRedis(t), testkit.StartClickHouse(t)
	f := &fleet{house: house, clicks: house.Database(t)}
	f.env = []string{
		"CURT_LINKS=" + database.Database(t), "CURT_CACHE=" + redis.URL(), "CURT_EVENTS=" + testkit.StartKafka(t, 1).URL("clicks"),
		"CURT_ANALYTICS=" + house.URL(f.clicks), "CURT_UNKNOWN_LIMIT=off",
	}
	f.migrate(t, binary)
	for _, role := range []string{"api", "api", "redirect", "redirect", "worker", "worker"} {
		m := &member{role: role, options: curttest.Options{Data: t.TempDir(), Env: append([]string{"CURT_ROLE=" + role}, f.env...)}}
		if role != "worker" {
			m.addr = curttest.FreeAddr(t)
			m.options.Env = append(m.options.Env, "CURT_LISTEN="+m.addr)
		}
		m.run(t, binary)
		f.members = append(f.members, m)
	}
	return f
}

// migrate creates topics and tables.
func (f *fleet) migrate(t *testing.T, binary string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), binary, "migrate")
	c.Env = append([]string{"CURT_ROLE=worker"}, f.env...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("curt migrate: %v: %s", err, out)
	}
}

// contractWaits plants a migration that removes what the earlier program needs.
func (f *fleet) contractWaits(t *testing.T) {
	t.Helper()
	url := strings.TrimPrefix(f.env[0], "CURT_LINKS=")
	err := pgdb.Contract(t.Context(), url, fstest.MapFS{"contracts/00005_planted.sql": {Data: []byte("-- +goose Up\nDROP TABLE instances;\n")}})
	early, ok := errors.AsType[*pgdb.OlderServersError](err)
	if !ok || !slices.Equal(early.Found, []string{`"curt"`}) {
		t.Fatalf("a contract migration beside servers that need the table: %v", err)
	}
}

// load are clients of a fleet. Each of their links is visited.
type load struct {
	api, redirect [2]string // addresses
	client        *http.Client
	stop          func() // and wait

	sent, answered, retried atomic.Int64 // visits; requests

	mu      sync.Mutex
	created []curttest.Link // guarded by mu
	failed  []string        // guarded by mu
}

func (f *fleet) load(t *testing.T) *load {
	t.Helper()
	m := f.members
	l := &load{
		api: [2]string{m[0].addr, m[1].addr}, redirect: [2]string{m[2].addr, m[3].addr},
		client: &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	for i := range 10 { // those that everyone visits
		l.create(t.Context(), fmt.Sprintf("first-%d", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	l.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(l.stop)
	for i := range 6 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if i < 2 {
					l.create(t.Context(), fmt.Sprintf("%d-%d", i, n))
				} else {
					l.visit(t.Context(), n)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return l
}

func (l *load) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = append(l.failed, time.Now().UTC().Format(time.StampMilli)+" "+fmt.Sprintf(format, args...))
}

func (l *load) create(ctx context.Context, key string) {
	to := "https://example.com/" + key
	status, _, body, err := l.do(ctx, http.MethodPost, l.api, len(key), "/api/v1/links", `{"long_url":"`+to+`","dedupe":false}`,
		"Authorization", "Bearer "+curttest.Key, "Content-Type", "application/json", "Idempotency-Key", key)
	var made curttest.Link
	if err != nil || status != http.StatusCreated || json.Unmarshal(body, &made) != nil {
		l.fail("create: %d %s %v", status, body, err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.created = append(l.created, made)
}

// visit follows the newest link or one of the first, at the two servers in turn.
func (l *load) visit(ctx context.Context, n int) {
	l.mu.Lock()
	all := l.created
	l.mu.Unlock()
	if len(all) == 0 {
		return
	}
	to := all[n%min(10, len(all))]
	if n%5 == 0 {
		to = all[len(all)-1]
	}
	status, location, body, err := l.do(ctx, http.MethodGet, l.redirect, n, "/"+to.Code, "")
	if err != nil || status != http.StatusFound || location != to.LongURL {
		l.fail("visit of %s: %d to %q, %.100s %v", to.Code, status, location, body, err)
		return
	}
	l.answered.Add(1)
}

// do sends a request to one of two servers, and to the other one if that refuses or resets the
// connection.
func (l *load) do(ctx context.Context, method string, servers [2]string, first int, path, body string, header ...string) (status int, location string, text []byte, err error) {
	for i := range 2 {
		q, err := http.NewRequestWithContext(ctx, method, "http://"+servers[(first+i)%2]+path, strings.NewReader(body))
		if err != nil {
			return 0, "", nil, err
		}
		for i := 0; i < len(header); i += 2 {
			q.Header.Set(header[i], header[i+1])
		}
		if method == http.MethodGet {
			l.sent.Add(1)
		}
		a, failure := l.client.Do(q)
		if failure != nil {
			l.retried.Add(1)
			err = failure
			if i == 1 {
				return 0, "", nil, err
			}
			continue
		}
		text, err = io.ReadAll(a.Body)
		_ = a.Body.Close()
		return a.StatusCode, a.Header.Get("Location"), text, err
	}
	return 0, "", nil, err
}

// progress waits until the clients were answered many times more.
func (l *load) progress(t *testing.T) {
	t.Helper()
	created := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.created)
	}
	v, c := l.answered.Load(), created()
	for end := time.Now().Add(time.Minute); l.answered.Load() < v+50 || created() < c+20; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a minute passed without 50 visits and 20 creates: %.10q", l.failed)
		}
	}
}

// checkLinks visits each acknowledged link at both servers.
func (l *load) checkLinks(t *testing.T) {
	t.Helper()
	for _, server := range l.redirect {
		for _, to := range l.created {
			status, location, _, err := l.do(t.Context(), http.MethodGet, [2]string{server, server}, 0, "/"+to.Code, "")
			if err != nil || status != http.StatusFound || location != to.LongURL {
				t.Fatalf("%s has /%s as %d to %q, %v", server, to.Code, status, location, err)
			}
			l.answered.Add(1)
		}
	}
}

// checkClicks waits until all answered visits are in ClickHouse, each once; the others may be.
func (f *fleet) checkClicks(t *testing.T, l *load) {
	t.Helper()
	var rows, clicks int64
	for end := time.Now().Add(2 * time.Minute); clicks < l.answered.Load(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d clicks of %d answered visits", clicks, l.answered.Load())
		}
		text := f.house.Exec(t, "SELECT count(), uniqExact(instance, sequence) FROM "+f.clicks+".clicks FORMAT TSV")
		if _, err := fmt.Sscan(text, &rows, &clicks); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	if rows != clicks || clicks > l.sent.Load() {
		t.Errorf("%d rows have %d clicks of %d visits", rows, clicks, l.sent.Load())
	}
}
