package deploy_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// healed bounds the time from the end of a fault until nothing is wrong: docs/fleet.md says 30 s,
// the rest is for a machine with other work.
const healed = patience

// paused is how long processes are stopped by SIGSTOP.
const paused = 3 * time.Second

// victim is a part that faults hit in turn.
type victim struct {
	name, program string
	part, role    string // in curt fleet status
	creates       bool   // go on while it is stopped
	state         string // while it is stopped
}

func victims() []victim {
	return []victim{
		{"PostgreSQL, primary", "stores:postgres", "postgresql", "primary", false, "failure"},
		{"PostgreSQL, standby", "stores:standby", "postgresql", "primary", false, "failure"},
		{"PgBouncer", "stores:pgbouncer", "pgbouncer", "pooler", false, "failure"},
		{"Redis, primary", "", "redis", "", true, "warning"}, // failure until Sentinel has promoted the replica
		{"Sentinel", "stores:sentinel-2", "redis", "", true, "warning"},
		{"Kafka", "stores:kafka", "kafka", "events", true, "failure"},
		{"ClickHouse", "stores:clickhouse", "clickhouse", "statistics", true, "failure"},
		{"redirect-1", "curt:redirect-1", "server", "", true, "failure"},
		{"redirect-2", "curt:redirect-2", "server", "", true, "failure"},
		{"api-1", "curt:api-1", "server", "", true, "failure"},
		{"api-2", "curt:api-2", "server", "", true, "failure"},
		{"worker-1", "curt:worker-1", "server", "", true, "failure"},
		{"worker-2", "curt:worker-2", "server", "", true, "failure"},
		{"keys-1", "curt:keys-1", "server", "", true, "failure"},
		{"keys-2", "curt:keys-2", "server", "", true, "failure"},
		{"balancer", "front:haproxy", "balancer", "", false, "failure"},
	}
}

// chaos is a run of faults under load.
type chaos struct {
	*fleet

	load     *load
	killed   int64 // clicks that killed redirect servers lost, by their own count
	inFlight int64 // visits at kills of redirect servers, and a few that were answered and not in the ring yet
	repeated int   // visits
	rows     []string
}

// TestFleetChaos kills (-9), stops and pauses each part of a fleet in turn, under 500 visits and 50
// creates a second through the balancer. Known links never fail for visitors that repeat a refused
// or reset request once, no acknowledged link is lost, no code issued twice, no click is counted twice,
// those of killed redirect servers are missing as these report, and the fleet heals from each fault.
// Then two standbys, of which any one confirms, and a second start on the same data.
func TestFleetChaos(t *testing.T) {
	testkit.Faults(t)
	c := &chaos{fleet: newFleet(t)}
	t.Log(c.start(t)[2])
	c.awaitClean(t)
	c.load = c.fleet.load(t)
	c.load.await(t, "links in both caches", func(effects) bool { return c.load.warmed() })
	limit, began, n := duration(t), time.Now(), 0
	faults := []struct {
		name string
		run  func(*chaos, *testing.T, victim) time.Time
	}{{"kill -9", (*chaos).kill}, {"stop", (*chaos).stop}, {"pause", (*chaos).pause}}
	all := victims()
	healthy := true
	for ; healthy && (time.Since(began) < limit || n < 2*len(all)); n++ { // all kills and stops, on a slow machine too
		healthy = false
		fault, v := faults[n/len(all)%len(faults)], all[n%len(all)]
		t.Run(fault.name+" "+v.name, func(t *testing.T) {
			if v.program == "" {
				v.program = c.redisPrimary(t)
			}
			c.load.take()
			c.load.noBalancer.Store(v.part == "balancer")
			ended := fault.run(c, t, v)
			c.row(t, fault.name, v.name, ended)
			c.load.noBalancer.Store(false)
			healthy = true
		})
	}
	c.load.stop()
	if !healthy {
		t.FailNow()
	}
	t.Logf("%d faults in %v\n%s", n, time.Since(began).Round(time.Second), strings.Join(c.rows, "\n"))
	c.checkClicks(t)
	t.Run("any of two standbys", c.anyOfTwo)
	c.end(t)
	t.Log(c.start(t)[2])
	c.checkLinks(t)
}

// duration is how long faults are injected: CURT_TEST_CHAOS, such as 30m in make soak-fleet, or five minutes.
func duration(t *testing.T) time.Duration {
	t.Helper()
	text := cmp.Or(os.Getenv("CURT_TEST_CHAOS"), "5m")
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("CURT_TEST_CHAOS: %v", err)
	}
	return d
}

// kill kills all processes of a part; the supervisor starts it again.
func (c *chaos) kill(t *testing.T, v victim) time.Time {
	pids := c.pids(t, v.program)
	ended := c.load.ended.Load()
	send(pids, syscall.SIGKILL)
	if begun := c.load.begun.Load(); strings.HasPrefix(v.program, "curt:redirect") {
		c.inFlight += begun - ended + 8
	}
	return time.Now()
}

// pause stops all processes of a part as they are, and continues them.
func (c *chaos) pause(t *testing.T, v victim) time.Time {
	pids := c.pids(t, v.program)
	defer send(pids, syscall.SIGCONT) // also if the test ends here
	send(pids, syscall.SIGSTOP)
	select {
	case <-time.After(paused):
	case <-t.Context().Done():
	}
	return time.Now()
}

// stop stops a part in order, until the status names it and creates go on or are refused, and starts
// it.
func (c *chaos) stop(t *testing.T, v victim) time.Time {
	c.control(t, "stop", v.program)
	c.awaitWrong(t, v.part, v.role, v.state)
	created := c.load.acknowledged() // among them those of before it stopped
	c.load.await(t, "creates as expected", func(e effects) bool {
		return v.creates && e.created > created || !v.creates && (e.refused["503"] > 0 || v.part == "balancer")
	})
	began := time.Now()
	c.control(t, "start", v.program)
	return began
}

// row waits until nothing is wrong and creates are acknowledged, and adds a line to the table.
func (c *chaos) row(t *testing.T, fault, name string, ended time.Time) {
	t.Helper()
	c.awaitClean(t)
	created := c.load.acknowledged()
	c.load.await(t, "a create", func(e effects) bool { return e.created > created })
	after := time.Since(ended)
	if after > healed {
		t.Errorf("it healed after %v", after)
	}
	e, failed := c.load.take()
	c.repeated += e.repeated
	for _, text := range failed[:min(len(failed), 5)] {
		t.Errorf("one of %d failures: %s", len(failed), text)
	}
	if strings.HasPrefix(name, "redirect-") && fault == "kill -9" {
		n := c.metric(t, name, "curt_clicks_killed_total")
		if c.metric(t, name, "curt_clicks_killed_unknown") != 0 {
			t.Error("the number of lost clicks is unknown")
		}
		c.killed += n
	}
	unavailable := "–"
	if e.unavailable > 0 {
		unavailable = fmt.Sprint(e.unavailable)
	}
	refused := "–"
	if len(e.refused) > 0 {
		refused = fmt.Sprintf("%s in %.1f s", strings.Trim(fmt.Sprint(e.refused), "map[]"), e.lastRefusal.Sub(e.firstRefusal).Seconds())
	}
	c.rows = append(c.rows, fmt.Sprintf("| %s | %s | %d | %d | %s | %.2f s | %d | %s | %.1f s |", fault, name, e.visits, e.repeated, unavailable, e.slowest.Seconds(), e.created, refused, after.Seconds()))
	t.Log(c.rows[len(c.rows)-1], e.slow, e.cut)
}

// checkClicks compares the visits with the statistics.
func (c *chaos) checkClicks(t *testing.T) {
	t.Helper()
	// Requests in flight at a kill: those answered and not yet in the ring are missing, those that
	// the balancer repeats at the other server are in both.
	inFlight := c.inFlight
	counted := c.counted(t, c.load.known, c.killed+inFlight)
	links, more, missing := miscounted(c.load.known, counted)
	var answered, unsure int64
	for _, k := range c.load.known {
		answered += k.answered.Load()
		unsure += k.unsure.Load()
	}
	t.Logf("%d visits answered, %d without an answer; %d clicks are missing, killed servers report %d; %d more", answered, unsure, missing, c.killed, more)
	if more > inFlight {
		t.Errorf("%d links have %d clicks more than visits, such as %s", len(links), more, links[0])
	}
	if missing > c.killed+inFlight {
		t.Errorf("%d clicks are missing", missing)
	}
	// What is counted twice is noticed.
	k := c.load.known[0]
	counted = maps.Clone(counted)
	counted[k.code] += answered
	if _, now, _ := miscounted(c.load.known, counted); now <= inFlight {
		t.Errorf("with %d clicks more only %d are noticed", answered, now)
	}
	if c.repeated == 0 {
		t.Error("no request had to be repeated: visitors that do not would have passed")
	}
}

// checkLinks follows every acknowledged link.
func (c *chaos) checkLinks(t *testing.T) {
	t.Helper()
	t.Logf("%d links acknowledged", len(c.load.created))
	c.load.created["never-created"] = "https://example.com/" // which the check has to miss
	if lost := c.lost(t, c.load.created); !slices.Equal(lost, []string{"never-created"}) {
		t.Errorf("of %d links %d are lost: %.20q", len(c.load.created), len(lost), lost)
	}
}

// redisPrimary asks a Sentinel which program is the primary.
func (f *fleet) redisPrimary(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "redis-cli", "-p", portOf(f.at(32)), "sentinel", "get-master-addr-by-name", "curt").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), portOf(f.at(31))) {
		return "stores:redis-replica"
	}
	return "stores:redis"
}

// metric reads a metric of a curt server.
func (f *fleet) metric(t *testing.T, server, name string) int64 {
	t.Helper()
	offset := map[string]int{"redirect-1": 11, "redirect-2": 12}[server]
	c, err := curttest.Dial(t.Context(), f.at(offset))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, err := c.Do(http.MethodGet, "/metrics", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut("\n"+string(a.Body), "\n"+name+" ")
	text, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(text, 64)
	if !found || err != nil {
		t.Fatalf("%s has no %s: %v", server, name, err)
	}
	return int64(n)
}

// pids are all processes of a part: those whose environment names it, and their descendants.
func (f *fleet) pids(t *testing.T, program string) (pids []int) {
	t.Helper()
	_, name, _ := strings.Cut(program, ":")
	children, folders := map[int][]int{}, []string(nil)
	folders, _ = filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		pid, _ := strconv.Atoi(filepath.Base(folder))
		stat, _ := os.ReadFile(filepath.Join(folder, "stat")) // empty where the process has ended
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 {
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], pid)
		}
		environ, _ := os.ReadFile(filepath.Join(folder, "environ"))
		if v := "\x00" + string(environ); strings.Contains(v, "\x00FLEET_DATA="+f.data+"\x00") && strings.Contains(v, "\x00SUPERVISOR_PROCESS_NAME="+name+"\x00") {
			pids = append(pids, pid)
		}
	}
	for i := 0; i < len(pids); i++ {
		for _, child := range children[pids[i]] {
			if !slices.Contains(pids, child) {
				pids = append(pids, child)
			}
		}
	}
	if slices.SortFunc(pids, cmp.Compare[int]); len(pids) == 0 {
		t.Fatalf("%s has no processes", program)
	}
	return pids
}

// send sends a signal to processes.
func send(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // one may have ended, with its parent or before
	}
}
