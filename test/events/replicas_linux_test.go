package events_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/backend/kafka"
	"curt/internal/testkit"
	"curt/internal/worker"
	"curt/test/internal/curttest"
)

// replicas are a plant with several servers of ClickHouse that get the same clicks.
type replicas struct {
	*plant

	of       []*testkit.ClickHouse
	answered int64 // clicks
}

// startReplicas starts them, with empty databases that a migration has prepared.
func startReplicas(t *testing.T, n, sites, workers int) *replicas {
	t.Helper()
	r := &replicas{}
	for range n {
		r.of = append(r.of, testkit.StartClickHouse(t))
	}
	r.plant = buildWith(t, r.of[0], 1, sites, workers, func(p *plant) {
		for _, house := range r.of[1:] {
			house.Exec(t, "CREATE DATABASE "+p.database+" ENGINE = Atomic")
		}
		p.env[2] = r.named(p.database, r.of...)
	})
	return r
}

// named is the setting that names servers, in this order.
func (*replicas) named(database string, of ...*testkit.ClickHouse) string {
	urls := make([]string, len(of))
	for i, house := range of {
		urls[i] = house.URL(database)
	}
	return "CURT_ANALYTICS=" + strings.Join(urls, ",")
}

// clickAll clicks on every code once, at each site.
func (r *replicas) clickAll(t *testing.T) {
	t.Helper()
	for _, s := range r.sites {
		r.answered += r.clickOn(t, s)
	}
}

// revive starts servers again that have ended by themselves: the engine that the tests have does so when a
// client is killed in a query.
func (r *replicas) revive(t *testing.T, of ...*testkit.ClickHouse) {
	t.Helper()
	for _, house := range of {
		if _, err := house.Ask(t.Context(), "SELECT 1"); errors.Is(err, syscall.ECONNREFUSED) {
			house.Kill(t)
			house.Again(t)
		}
	}
}

// have waits until each of some servers has every click that was answered, once.
func (r *replicas) have(t *testing.T, what string, of ...*testkit.ClickHouse) {
	t.Helper()
	defer r.explain(t)
	for _, house := range of {
		within(t, 10*time.Minute, what, func() bool {
			r.revive(t, of...)
			text, err := house.Ask(t.Context(), "SELECT count(), uniqExact(instance, sequence), (SELECT sum(clicks) FROM "+r.database+".days WHERE domain != '*') FROM "+r.database+".clicks")
			if err != nil || text == "" {
				return false
			}
			var n, unique, sum int64
			if _, err := fmt.Sscan(text, &n, &unique, &sum); err != nil {
				return false
			}
			if n > r.answered || n != unique {
				t.Fatalf("%s: %d rows, %d clicks, %d answered", what, n, unique, r.answered)
			}
			return n == r.answered && sum == r.answered
		})
	}
}

// explain shows what the workers said of the replicas, if the test has failed.
func (r *replicas) explain(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, w := range r.works {
		for line := range strings.Lines(w.Log()) {
			if strings.Contains(line, `"replica":`) || strings.Contains(line, `"level":"ERROR"`) {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

// forget has Kafka give up records, of some replicas only those before the block that their workers committed last,
// so that they have no gap when these are killed.
func (r *replicas) forget(t *testing.T, before func(partition int32, end int64) int64, of ...*testkit.ClickHouse) {
	t.Helper()
	config, err := kafka.Parse(r.kafka.URL("clicks"))
	if err != nil {
		t.Fatal(err)
	}
	topic, err := kafka.OpenReread(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer topic.Close()
	read := map[int32]int64{}
	for _, house := range of {
		id := house.Exec(t, "SELECT comment FROM system.tables WHERE database = '"+r.database+"' AND name = 'replica'")
		all, err := topic.Passed(t.Context(), worker.GroupOf("clicks", strings.TrimPrefix(id, "first")), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			at, known := read[p.Partition]
			if read[p.Partition] = worker.Stored(p); known {
				read[p.Partition] = min(at, worker.Stored(p))
			}
		}
	}
	testkit.DeleteRecords(t, []string{r.kafka.Brokers[0].Address}, "clicks", func(partition int32, end int64) int64 {
		if len(of) == 0 {
			return before(partition, end)
		}
		return min(before(partition, end), read[partition])
	})
}

// empty removes what a server has kept, and starts it again with an empty database: the engine that the
// tests have ends at a handshake for a database that is not there.
func (r *replicas) empty(t *testing.T, house *testkit.ClickHouse) {
	t.Helper()
	house.Kill(t)
	err := os.RemoveAll(filepath.Join(house.Dir, "data"))
	if err == nil {
		err = os.WriteFile(filepath.Join(house.Dir, "begin.sql"), []byte("CREATE DATABASE IF NOT EXISTS "+r.database+" ENGINE = Atomic;"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	house.Again(t)
}

// otherWorkers kills the workers, and starts as many with the settings as they are now.
func (r *replicas) otherWorkers(t *testing.T) {
	t.Helper()
	for range len(r.works) {
		data, w := r.any(r.works)
		w.Kill()
		delete(r.works, data)
		r.worker(t, data)
	}
}

// filled waits until no replica is filling.
func (r *replicas) filled(t *testing.T, api *curttest.Server, of ...*testkit.ClickHouse) {
	t.Helper()
	within(t, 10*time.Minute, "end of the fill", func() bool {
		r.revive(t, of...)
		return metric(t, api, "curt_replica_filling") == 0
	})
}

// counts waits for statistics, which a busy machine may refuse for a while, and fails unless they have all clicks.
func (r *replicas) counts(t *testing.T, api *curttest.Server, of ...*testkit.ClickHouse) {
	t.Helper()
	var n int64
	within(t, 3*time.Minute, "statistics", func() (ok bool) {
		r.revive(t, of...)
		var err error
		n, err = visited(t, api, r.codes)
		return err == nil
	})
	if n != r.answered {
		t.Errorf("statistics count %d clicks of %d", n, r.answered)
	}
}

// visited returns what statistics say of all links together.
func visited(t *testing.T, s *curttest.Server, codes []string) (n int64, err error) {
	t.Helper()
	api, err := client.New("http://"+s.Addr, client.WithKey(curttest.Key))
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range codes {
		stats, err := api.Stats(t.Context(), code, client.StatsQuery{})
		if err != nil {
			return 0, err
		}
		n += int64(stats.TotalClicks)
	}
	return n, nil
}

// detail returns what /readyz tells an operator about a dependency.
func detail(t *testing.T, s *curttest.Server, check string) string {
	t.Helper()
	c, err := curttest.Dial(t.Context(), s.Admin)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, err := c.Do("GET", "/readyz", nil, "")
	var ready struct {
		Checks map[string]struct{ Status, Detail string }
	}
	if err := errors.Join(err, json.Unmarshal(a.Body, &ready)); err != nil {
		t.Fatal(err)
	}
	return ready.Checks[check].Detail
}

// address is host:port/database.
func (r *replicas) address(house *testkit.ClickHouse) string {
	return strings.TrimPrefix(house.URL(r.database), "clickhouse://")
}

// TestReplicas has two servers of ClickHouse fed by consumer groups of their own. One is killed while
// visitors click, emptied after Kafka gave up half of its records, and brought back; its worker is
// killed while it is filled. Statistics are served all the time, and each click is in both once.
func TestReplicas(t *testing.T) {
	testkit.Faults(t)
	r := startReplicas(t, 2, 2, 1)
	a, b := r.of[0], r.of[1]
	api := r.startWith(t, t.TempDir(), "CURT_ROLE=api")
	r.clickAll(t)
	r.have(t, "clicks in both", a, b)
	r.filled(t, api, a, b)

	// One is away: the other is fed and queried.
	b.Kill(t)
	r.clickAll(t)
	r.have(t, "clicks in the one that lives", a)
	at := time.Now()
	within(t, 3*time.Minute, "complete_until with one replica", func() bool { r.revive(t, a); return complete(t, api).After(at) })
	within(t, 3*time.Minute, "which one is away, and why", func() bool {
		return detail(t, api, "clickhouse replica 2") == r.address(b)+": connect: connection refused"
	})
	within(t, 3*time.Minute, "log that says which one is away", func() bool {
		log := api.Log()
		return strings.Contains(log, "replica of clickhouse unavailable") && strings.Contains(log, `"address":"`+r.address(b)+`"`)
	})
	b.Again(t)
	r.have(t, "clicks in both again", a, b)

	// The first one is emptied, and Kafka no longer has the first half of the clicks.
	r.forget(t, testkit.Half, a, b)
	r.empty(t, a)
	r.clickAll(t)
	r.otherWorkers(t)
	r.otherWorkers(t)
	r.have(t, "clicks in both after the refill", b, a)
	at = time.Now()
	r.filled(t, api, a, b)
	within(t, 3*time.Minute, "complete_until after the refill", func() bool { r.revive(t, a, b); return complete(t, api).After(at) })

	// Both are away, and redirects go on.
	a.Kill(t)
	b.Kill(t)
	r.clickAll(t)
	a.Again(t)
	b.Again(t)
	r.have(t, "clicks in both at last", a, b)
}

// TestNewReplicasWithOneAway begins with two servers of which one is away: the other one is complete, because
// Kafka has everything that there ever was. The first is filled when it is there.
func TestNewReplicasWithOneAway(t *testing.T) {
	testkit.Faults(t)
	r := startReplicas(t, 2, 0, 0)
	a, b := r.of[0], r.of[1]
	a.Kill(t)
	out, complaint, code := r.curt(t, nil, "migrate")
	if code != 69 || strings.Count(complaint, "\n") != 1 || !strings.Contains(complaint, r.address(a)) || !strings.Contains(out, "tables of "+r.address(b)+" are up to date") {
		t.Errorf("migrate with one away ended with %d: %s%s", code, out, complaint)
	}
	out, complaint, code = r.curt(t, []string{"CURT_ADMIN_LISTEN=" + curttest.FreeAddr(t)}, "config", "check")
	if code != 0 || !strings.Contains(out, "warn  CURT_ANALYTICS="+a.URL(r.database)+": unavailable") {
		t.Errorf("config check with one away ended with %d: %s%s", code, out, complaint)
	}
	r.site(t, t.TempDir())
	r.worker(t, t.TempDir())
	api := r.startWith(t, t.TempDir(), "CURT_ROLE=api")
	r.clickAll(t)
	r.have(t, "clicks in the one that is there", b)
	at := time.Now()
	within(t, 3*time.Minute, "complete_until with one replica", func() bool { r.revive(t, b); return complete(t, api).After(at) })
	r.counts(t, api, b)
	a.Again(t)
	r.have(t, "clicks in both", a, b)
	r.filled(t, api, a, b)

	// One server by two names is one replica.
	twice := []string{r.named(r.database, a, b) + "," + strings.Replace(a.URL(r.database), "127.0.0.1", "localhost", 1)}
	_, complaint, code = r.curt(t, twice, "migrate")
	if code != 78 || strings.Count(complaint, "\n") != 1 || !strings.Contains(complaint, "is the same database as "+r.address(a)) {
		t.Errorf("migrate with one server by two names ended with %d: %s", code, complaint)
	}
	other := r.startWith(t, t.TempDir(), append([]string{"CURT_ROLE=api"}, twice...)...)
	within(t, 3*time.Minute, "refusal of a second name", func() bool {
		r.revive(t, a, b)
		return strings.Contains(detail(t, other, "clickhouse replica 3"), "is the same database as "+r.address(a))
	})
	within(t, 3*time.Minute, "statistics beside a second name", func() bool {
		r.revive(t, a, b)
		n, err := visited(t, other, r.codes)
		return err == nil && n == r.answered
	})
}

// TestReplicaAlone has a replica named alone that was not filled, while Kafka has half of the clicks: nothing
// that it has is served as all. Beside the complete one it is filled, and then alone again it serves.
func TestReplicaAlone(t *testing.T) {
	testkit.Faults(t)
	r := &replicas{of: []*testkit.ClickHouse{testkit.StartClickHouse(t), testkit.StartClickHouse(t)}}
	a, b := r.of[0], r.of[1]
	r.plant = buildWith(t, a, 1, 1, 1, func(*plant) {}) // which is fed alone
	r.clickAll(t)
	r.have(t, "clicks", a)
	r.forget(t, testkit.Half, a)
	_, w := r.any(r.works)
	w.Terminate(t)
	b.Exec(t, "CREATE DATABASE "+r.database+" ENGINE = Atomic")
	r.env[2] = r.named(r.database, b, a)
	if out, complaint, code := r.curt(t, []string{"CURT_ADMIN_LISTEN=" + curttest.FreeAddr(t)}, "config", "check"); code != 78 || !strings.Contains(out, "name it first in CURT_ANALYTICS") {
		t.Errorf("config check with the wrong order ended with %d: %s%s", code, out, complaint)
	}
	r.env[2] = r.named(r.database, a, b)
	if out, complaint, code := r.curt(t, nil, "migrate"); code != 0 {
		t.Fatalf("migrate ended with %d: %s%s", code, out, complaint)
	}

	r.env[2] = r.named(r.database, b)
	r.otherWorkers(t)
	api := r.startWith(t, t.TempDir(), "CURT_ROLE=api")
	refused := func(when string) {
		t.Helper()
		within(t, 3*time.Minute, "refusal "+when, func() bool { // a busy machine may refuse for another reason
			r.revive(t, b)
			n, err := visited(t, api, r.codes[:1])
			if err == nil {
				t.Fatalf("%s %d clicks are served", when, n)
			}
			problem, ok := errors.AsType[*client.Problem](err)
			return ok && problem.Status == http.StatusServiceUnavailable && strings.Contains(problem.Detail, "statistics are incomplete")
		})
		if at := complete(t, api); !at.IsZero() {
			t.Errorf("%s clicks are said to be complete until %v", when, at)
		}
	}
	refused("at the start")
	within(t, 10*time.Minute, "clicks that Kafka has", func() bool {
		r.revive(t, b)
		n, err := b.Ask(t.Context(), "SELECT count() FROM "+r.database+".clicks")
		return err == nil && n != "0"
	})
	refused("with what Kafka has")
	within(t, 3*time.Minute, "/readyz that says what it lacks", func() bool {
		return strings.Contains(detail(t, api, "clickhouse"), r.address(b)+": lacks clicks")
	})
	if out, complaint, code := r.curt(t, []string{"CURT_ADMIN_LISTEN=" + curttest.FreeAddr(t)}, "config", "check"); code != 0 || !strings.Contains(out, "warn  CURT_ANALYTICS="+b.URL(r.database)) {
		t.Errorf("config check ended with %d: %s%s", code, out, complaint)
	}
	if _, complaint, code := r.curt(t, nil, "clicks", "replay", "--yes"); code != 69 || !strings.Contains(complaint, "lacks clicks") {
		t.Errorf("replay ended with %d: %s", code, complaint)
	}
	refused("after a while")

	r.env[2] = r.named(r.database, a, b)
	r.otherWorkers(t)
	both := r.startWith(t, t.TempDir(), "CURT_ROLE=api")
	r.have(t, "clicks in both", a, b)
	r.filled(t, both, a, b)
	within(t, 3*time.Minute, "end of the refusal", func() bool {
		r.revive(t, a, b)
		n, err := visited(t, api, r.codes)
		return err == nil && n == r.answered
	})
	a.Kill(t)
	r.env[2] = r.named(r.database, b)
	alone := r.startWith(t, t.TempDir(), "CURT_ROLE=api")
	r.counts(t, alone, b)
}

// TestThreeReplicas fills one of three from the second while the first is away. Then the third is away for
// longer than Kafka keeps records: it is filled from the others before it is queried. Commands are for the
// replica that they name.
func TestThreeReplicas(t *testing.T) {
	testkit.Faults(t)
	r := startReplicas(t, 3, 2, 1)
	a, b, c := r.of[0], r.of[1], r.of[2]
	api := r.startWith(t, t.TempDir(), "CURT_ROLE=api")
	r.clickAll(t)
	r.have(t, "clicks in all", a, b, c)
	r.filled(t, api, a, b, c)
	for replica := 1; replica <= 3; replica++ {
		if text, code := r.ofReplica(t, replica, "replay", "--yes"); code != 0 || !strings.Contains(text, " 0 inserted") {
			t.Errorf("replay of replica %d ended with %d: %s", replica, code, text)
		}
	}
	r.forget(t, testkit.Half, a, b, c)
	a.Kill(t)
	r.empty(t, c)
	r.clickAll(t)
	r.otherWorkers(t)
	r.have(t, "clicks in the two that are there", b, c)
	r.filled(t, api, b, c)
	a.Again(t)
	r.have(t, "clicks in all again", a, b, c)
	r.filled(t, api, a, b, c)

	c.Kill(t)
	had := r.answered
	r.clickAll(t)
	r.have(t, "clicks in the two others", a, b)
	known := r.answered
	r.forget(t, testkit.All)
	r.otherWorkers(t)
	c.Again(t)
	r.clickAll(t)
	r.closesGap(t, api, had, known)
	r.have(t, "clicks in all after the gap", a, b, c)
	r.rebuild(t)
}

// closesGap waits until the third replica has closed its gap. It notes it before it has any click that came
// after it, of more than had, and once it is closed statistics have all that the others had before.
func (r *replicas) closesGap(t *testing.T, api *curttest.Server, had, known int64) {
	t.Helper()
	defer r.explain(t)
	ask := func(query string) (n int64, ok bool) {
		text, err := r.of[2].Ask(t.Context(), query)
		_, scanned := fmt.Sscan(text, &n)
		return n, err == nil && scanned == nil
	}
	within(t, 10*time.Minute, "end of the gap", func() bool {
		r.revive(t, r.of...)
		clicks, counted := ask("SELECT count() FROM " + r.database + ".clicks")
		gaps, noted := ask("SELECT countIf(state = 'gap') FROM " + r.database + ".replica")
		if counted && noted && clicks > had && gaps == 0 {
			t.Fatalf("it has %d clicks, of which some came after the gap, and does not say that it has one", clicks)
		}
		open, known := ask("SELECT maxIf(at, state = 'gap') > maxIf(at, state = 'filled') FROM " + r.database + ".replica")
		return noted && gaps > 0 && known && open == 0
	})
	r.filled(t, api, r.of...)
	within(t, 3*time.Minute, "statistics after the gap", func() bool {
		r.revive(t, r.of...)
		n, err := visited(t, api, r.codes)
		return err == nil && n >= known
	})
}

// ofReplica runs a command on one of the replicas.
func (r *replicas) ofReplica(t *testing.T, replica int, args ...string) (text string, code int) {
	t.Helper()
	r.revive(t, r.of...)
	out, complaint, code := r.curt(t, nil, append([]string{"clicks", args[0], fmt.Sprint("--replica=", replica)}, args[1:]...)...)
	return out + complaint, code
}

// rebuild corrects the third replica, and nothing in the others.
func (r *replicas) rebuild(t *testing.T) {
	t.Helper()
	hour := time.Now().UTC().Add(-72 * time.Hour).Truncate(time.Hour)
	c := r.of[2]
	c.Exec(t, "INSERT INTO "+r.database+".clicks SELECT * REPLACE(toDateTime64('"+hour.Format(time.DateTime)+"', 3, 'UTC') AS time, instance + 7 AS instance) FROM "+r.database+".clicks LIMIT 50")
	c.Exec(t, "INSERT INTO "+r.database+".quarters SETTINGS insert_deduplicate = 0 SELECT * FROM "+r.database+".quarters WHERE at >= '"+hour.Format(time.DateTime)+"' AND at < '"+hour.Add(time.Hour).Format(time.DateTime)+"'")
	// Merged sums: the server merges rows of a bucket in the background.
	sums := "SELECT sum(cityHash64(*)) FROM (SELECT domain, code, at, sum(clicks), sum(humans), sum(previews), sum(fallbacks), sum(refused), min(first_seen), max(last_clicked), uniqCombined64IfMerge(14)(visitors) FROM " + r.database + ".quarters GROUP BY ALL)"
	before := r.of[0].Exec(t, sums)
	r.of[0].Exec(t, "OPTIMIZE TABLE "+r.database+".quarters FINAL")
	verify := []string{"verify", "--no-kafka", "--hour=" + hour.Format(time.RFC3339)}
	for _, want := range []int{1, 0} {
		for replica := 1; replica <= 3; replica++ {
			if text, code := r.ofReplica(t, replica, verify...); code != want && replica == 3 || code != 0 && replica < 3 {
				t.Errorf("verify of replica %d ended with %d: %s", replica, code, text)
			}
		}
		if text, code := r.ofReplica(t, 3, "rebuild", "--yes", "--reduce", "--hour="+hour.Format(time.RFC3339)); code != 0 {
			t.Errorf("rebuild ended with %d: %s", code, text)
		}
	}
	if after := r.of[0].Exec(t, sums); after != before {
		t.Errorf("a rebuild of the third changed the first: %s, %s", before, after)
	}
	for _, replica := range []int{-1, 0, 4} {
		if text, code := r.ofReplica(t, replica, verify...); code != 2 || !strings.Contains(text, "expected 1 to 3") {
			t.Errorf("verify of replica %d ended with %d: %s", replica, code, text)
		}
	}
}
