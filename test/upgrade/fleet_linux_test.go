package upgrade_test

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
	"curt/test/internal/fleetload"
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
			l.Progress(t, 50, 20)
			if code, _ := m.Terminate(t); code != 0 {
				t.Errorf("%s ended with %d:\n%s", m.role, code, m.Log())
			}
			l.Progress(t, 50, 20) // with one server less
			m.run(t, binary)
		}
	}
	l.Progress(t, 50, 20)
	l.Report(t)
	f.checkLinks(t, l)
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

// load starts clients, which know both servers of each role.
func (f *fleet) load(t *testing.T) *fleetload.Clients {
	t.Helper()
	address := func(i int) string { return "http://" + f.members[i].addr }
	return fleetload.Start(t, fleetload.Config{
		Client: &http.Client{Timeout: 3 * time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		API:    []string{address(0), address(1)}, Links: []string{address(2), address(3)}, Creators: 2, Visitors: 4, First: 10, Newest: true,
	})
}

// checkLinks visits each acknowledged link at both servers.
func (f *fleet) checkLinks(t *testing.T, l *fleetload.Clients) {
	t.Helper()
	for _, m := range f.members[2:4] {
		for _, to := range l.Links() {
			if err := l.Follow(t.Context(), "http://"+m.addr, to); err != nil {
				t.Fatalf("%s: %v", m.addr, err)
			}
		}
	}
}

// checkClicks waits until all answered visits are in ClickHouse, each once; the others may be.
func (f *fleet) checkClicks(t *testing.T, l *fleetload.Clients) {
	t.Helper()
	var rows, clicks int64
	for end := time.Now().Add(3 * time.Minute); clicks < l.Answered(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d clicks of %d answered visits", clicks, l.Answered())
		}
		text := f.house.Exec(t, "SELECT count(), uniqExact(instance, sequence) FROM "+f.clicks+".clicks FORMAT TSV")
		if _, err := fmt.Sscan(text, &rows, &clicks); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	if rows != clicks || clicks > l.Sent() {
		t.Errorf("%d rows have %d clicks of %d visits", rows, clicks, l.Sent())
	}
}
