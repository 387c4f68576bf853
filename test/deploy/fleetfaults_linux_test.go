package deploy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// control runs supervisorctl.
func (f *fleet) control(t *testing.T, args ...string) {
	t.Helper()
	if out, err := f.run(t, append([]string{"ctl"}, args...)...); err != nil {
		t.Fatalf("supervisorctl %v: %v %s", args, err, out)
	}
}

// awaitWrong waits until the status shows a part with a problem.
func (f *fleet) awaitWrong(t *testing.T, name, role, state string) {
	t.Helper()
	for began := time.Now(); ; {
		_, wrong, code := f.status(t)
		for _, p := range wrong {
			if p.Part == name && (role == "" || p.Role == role) && p.State == state && code > 0 && len(p.Wrong) > 0 {
				t.Logf("%s %s: %s", p.Part, p.Address, p.Wrong)
				return
			}
		}
		if time.Since(began) > patience {
			t.Fatalf("after %v no %s of %s %s: %+v", patience, state, name, role, wrong)
		}
	}
}

// anyOfTwo: with ANY 1 of two standbys one may stop, and creates continue.
func (f *fleet) anyOfTwo(t *testing.T) {
	f.control(t, "start", "stores:standby-2")
	for began := time.Now(); !strings.HasPrefix(f.sql(t, "SHOW synchronous_standby_names"), "ANY 1") ||
		f.sql(t, "SELECT count(*)::text FROM pg_stat_replication WHERE sync_state = 'quorum'") != "2"; {
		if time.Since(began) > patience {
			t.Fatalf("%v passed without two standbys", patience)
		}
	}
	standbys := slices.DeleteFunc(f.awaitClean(t), func(p part) bool { return !strings.HasPrefix(p.Role, "standby") })
	if len(standbys) != 2 || standbys[0].Address != f.at(22) || standbys[1].Role != "standby standby_2, quorum" {
		t.Errorf("the status shows the standbys %+v", standbys)
	}
	for _, standby := range []string{"standby", "standby-2"} {
		f.control(t, "stop", "stores:"+standby)
		f.awaitWrong(t, "postgresql", "", "warning")
		f.create(t, "without-"+standby)
		f.control(t, "start", "stores:"+standby)
		f.awaitClean(t)
	}
}

func (f *fleet) at(offset int) string {
	base, _ := strconv.Atoi(f.port)
	return "127.0.0.1:" + strconv.Itoa(base+offset)
}

// sql returns what the primary answers to a statement.
func (f *fleet) sql(t *testing.T, statement string) (value string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), "postgres://curt@"+f.at(21)+"/curt?sslmode=disable")
	if err == nil {
		defer func() { _ = c.Close(t.Context()) }()
		err = c.QueryRow(t.Context(), statement).Scan(&value)
	}
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

// TestFleetIsRestored is the drill of docs/fleet.md: PostgreSQL comes back from a base backup,
// ClickHouse is lost altogether, and Kafka has the clicks.
func TestFleetIsRestored(t *testing.T) {
	testkit.Faults(t)
	f := newFleet(t)
	f.start(t)
	f.create(t, "before")
	for range 3 {
		f.follows(t, "before")
	}
	f.awaitClicks(t, "before", 3)

	// The standby confirms what it has, and shows it a moment later: a backup of it has what it shows.
	written := f.sql(t, "SELECT pg_current_wal_lsn()::text")
	for began := time.Now(); f.sql(t, "SELECT count(*)::text FROM pg_stat_replication WHERE replay_lsn >= '"+written+"'") == "0"; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("%v passed without a standby at %s", patience, written)
		}
	}
	backup := filepath.Join(f.data, "backup")
	f.asPostgres(t, "pg_basebackup -d 'host=127.0.0.1 user=curt port="+portOf(f.at(22))+"' -D "+backup+" -X stream -c fast")

	leases := func() int64 {
		next, err := strconv.ParseInt(f.sql(t, "SELECT max(next)::text FROM leases"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	// Restarted, api servers take further keys, keys servers lease ids for more, and an api server remembers these.
	before := leases()
	f.control(t, "restart", "curt:keys-1", "curt:keys-2", "curt:api-1", "curt:api-2")
	f.awaitClean(t) // they run, and listen a moment later
	f.create(t, "after")
	for range 2 {
		f.follows(t, "before")
		f.follows(t, "after")
	}
	f.awaitClicks(t, "before", 5)
	lost := f.generate(t, 8) // at both api servers
	taken, err := strconv.ParseInt(f.sql(t, "SELECT max(batch)::text FROM used_keys"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); leases() == before; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no keys server leased ids")
		}
	}
	f.control(t, "restart", "curt:api-1")
	leased := leases()

	// The workers read the topic from its beginning once their group is deleted.
	f.control(t, "stop", "curt:*")
	f.deleteGroup(t)
	f.end(t)
	for _, lost := range []string{"postgres/data", "standby", "clickhouse/data"} {
		if err := os.RemoveAll(filepath.Join(f.data, lost)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(backup, filepath.Join(f.data, "postgres", "data")); err != nil {
		t.Fatal(err)
	}
	restored, moved := f.moveLeases(t)
	if restored >= taken || moved <= leased {
		t.Errorf("keys were taken up to batch %d, in the backup %d; leases reached %d, moved on %d", taken, restored, leased, moved)
	}

	f.start(t)
	f.follows(t, "before")
	if a := f.request(t, http.MethodGet, "/after", ""); a.Status != http.StatusNotFound {
		t.Errorf("a link of after the backup answers %d", a.Status)
	}
	f.awaitClicks(t, "before", 6)
	for _, code := range f.generate(t, 40) {
		if slices.Contains(lost, code) {
			t.Errorf("%s was the code of a link that was lost", code)
		}
	}
	f.awaitClean(t)
}

// generate creates links through the balancer and returns their codes.
func (f *fleet) generate(t *testing.T, n int) (codes []string) {
	t.Helper()
	for range n {
		a := f.request(t, http.MethodPost, "/api/v1/links", `{"long_url":"https://example.com/"}`)
		var created struct {
			Code string `json:"short_code"`
		}
		if err := json.Unmarshal(a.Body, &created); err != nil || a.Status != http.StatusCreated {
			t.Fatalf("create: %d %s, %v", a.Status, a.Body, err)
		}
		codes = append(codes, created.Code)
	}
	return codes
}

// moveLeases starts the restored server by itself, tells curt migrate of the restore, and returns the last batch of
// keys that was taken according to it, and where leases end then. Before, a server that leased later ids does not
// start.
func (f *fleet) moveLeases(t *testing.T) (restored, moved int64) {
	t.Helper()
	data, leased := filepath.Join(f.data, "postgres", "data"), "SELECT max(next)::text FROM leases"
	if err := os.Remove(filepath.Join(data, "standby.signal")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	f.asPostgres(t, fmt.Sprintf("pg_ctl -D %[1]s -o '-p %[2]s -k %[3]s' -l %[3]s/restored.log -w start >&2", data, portOf(f.at(21)), filepath.Join(f.data, "postgres")))
	defer f.asPostgres(t, "pg_ctl -D "+data+" -m fast -w stop >&2")
	batch := f.sql(t, "SELECT max(batch)::text FROM used_keys")
	links := "CURT_LINKS=postgres://curt@" + f.at(21) + "/curt?sslmode=disable"
	server, err := curttest.Launch(t, curttest.Options{Data: filepath.Join(f.data, "api-1"), Env: []string{links}})
	if err == nil || server.ExitCode() != 78 || !strings.Contains(server.Log(), "run curt migrate --restored") {
		t.Errorf("a server on the restored database: %v", err)
	}
	if said, err := runCurt(t, []string{links}, "migrate", "--restored"); err != nil || !strings.Contains(said, "skipped codes") {
		t.Errorf("curt migrate --restored: %v %s", err, said)
	}
	for text, to := range map[string]*int64{batch: &restored, f.sql(t, leased): &moved} {
		if *to, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return restored, moved
}

func portOf(address string) string { return strings.TrimPrefix(address, "127.0.0.1:") }

// asPostgres runs a script as the user of the servers, who may write to the folder, and returns
// what it prints.
func (f *fleet) asPostgres(t *testing.T, script string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-euc", `export PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
		[ "$(id -u)" = 0 ] || exec sh -euc "$1"
		chown postgres "$2" && exec setpriv --reuid=postgres --regid=postgres --clear-groups sh -euc "$1"`, "sh", script, f.data)
	var wrong strings.Builder
	c.Stderr = &wrong
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, wrong.String(), out)
	}
	return string(out)
}

// deleteGroup deletes the consumer group of the workers, which have stopped.
func (f *fleet) deleteGroup(t *testing.T) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(f.at(40)))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		deleted, err := kadm.NewClient(client).DeleteGroups(t.Context(), "clicks")
		if err == nil {
			err = deleted.Error()
		}
		if err == nil {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("delete the group: %v", err)
		}
	}
}
