package deploy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

const rules = root + "/deploy/prometheus/rules.yml"

func promtool(t *testing.T) string {
	t.Helper()
	return tool(t, "promtool", "scripts/unpack promtool")
}

// TestRules has Prometheus's own tool check the rules and run their tests, among which
// are those of alerts that must not fire.
func TestRules(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	tool, dir := promtool(t), filepath.Dir(rules)
	output(t, dir, tool, "check", "rules", "rules.yml")
	output(t, dir, tool, "test", "rules", "rules_test.yml", "objective_test.yml")
}

// TestRulesTestFindsAnotherObjective is the control of the rules' tests: alerts for an
// objective of 99.9 % fail them.
func TestRulesTestFindsAnotherObjective(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	promtool, dir := promtool(t), t.TempDir()
	for _, name := range []string{"rules.yml", "objective_test.yml"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(rules), name))
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.ReplaceAll(string(text), "* 0.0001", "* 0.001"))
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := run(t, dir, promtool, "test", "rules", "objective_test.yml"); err == nil {
		t.Errorf("the tests pass for another objective:\n%s", text)
	}
}

// dashboard is what the test reads of deploy/grafana/curt.json.
type dashboard struct {
	UID         string
	Panels      []panel
	Annotations struct{ List []struct{ Expr string } }
	Templating  struct {
		List []struct{ Name, Query string }
	}
}

type panel struct {
	ID      int
	Type    string
	Title   string
	Targets []struct{ Expr string }
	GridPos struct{ H, W, X, Y int }
}

// TestDashboard: its panels have ids and places of their own, and their questions are
// PromQL.
func TestDashboard(t *testing.T) {
	t.Parallel()
	board := readDashboard(t)
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %d %q: another has its id, or it has none or no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W == 0 || p.GridPos.H == 0 {
			t.Errorf("panel %q does not fit", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok {
					t.Fatalf("%q lies on %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q asks nothing", p.Title)
		}
	}
	var text strings.Builder
	text.WriteString("groups: [{name: dashboard, rules: [")
	for i, expr := range board.questions() {
		_, _ = fmt.Fprintf(&text, "{record: q%d, expr: %q},\n", i, expr)
	}
	text.WriteString("]}]\n")
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	output(t, "", promtool(t), "check", "rules", file)
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(root + "/deploy/grafana/curt.json")
	var board dashboard
	if err == nil {
		err = json.Unmarshal(text, &board)
	}
	if err != nil {
		t.Fatal(err)
	}
	return board
}

// questions are all PromQL of the dashboard, with its variables filled in.
func (d dashboard) questions() []string {
	fill := strings.NewReplacer("$__rate_interval", "5m", "$job", "curt", "$instance", ".*")
	var all []string
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, fill.Replace(target.Expr))
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, fill.Replace(a.Expr))
	}
	return all
}

// TestMetricsThatAreAskedForExist: each metric of the rules and the dashboard is one
// that the binary shows, or that the rules record.
func TestMetricsThatAreAskedForExist(t *testing.T) {
	t.Parallel()
	var file struct {
		Groups []struct {
			Rules []struct{ Record, Alert, Expr string }
		}
	}
	text, err := os.ReadFile(rules)
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	names, asked := shown(t), readDashboard(t).questions()
	recorded := map[string]bool{"up": true} // which is Prometheus's own
	alerts := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			asked = append(asked, r.Expr)
			if r.Record != "" {
				recorded[r.Record] = true
			} else {
				alerts++
			}
		}
	}
	if alerts < 15 || len(asked) < 50 {
		t.Errorf("found %d alerts and %d questions: the files or this test say too little", alerts, len(asked))
	}
	metric := regexp.MustCompile(`\b(?:curt|go|process)_[a-z0-9_]+|curt:[a-z0-9_:]+|\bup\b`)
	wrong := func() (all []string) {
		known := names()
		for _, expr := range asked {
			found := metric.FindAllString(expr, -1)
			if len(found) == 0 {
				all = append(all, "no metric in "+expr)
			}
			for _, name := range found {
				if !known[name] && !recorded[name] {
					all = append(all, name+" is no metric of curt: "+expr)
				}
			}
		}
		return all
	}
	faults := wrong()
	for end := time.Now().Add(3 * time.Minute); len(faults) > 0 && time.Now().Before(end); time.Sleep(time.Second) {
		faults = wrong() // some are there once what they are about has happened
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}

// shown returns the names of all metrics, those of settings that are off by default among
// them, as servers show them when it is called.
func shown(t *testing.T) func() map[string]bool {
	t.Helper()
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(damaged, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	shorteners := filepath.Join(t.TempDir(), "shorteners")
	if err := os.WriteFile(shorteners, []byte("short.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key := curttest.Certificate(t)
	s := curttest.Start(t, curttest.Options{Env: []string{
		"CURT_GEOIP=" + damaged, "CURT_BLOCKLISTS=" + damaged, "CURT_SHORTENERS_FILE=" + shorteners,
		"CURT_TLS_CERT=" + cert, "CURT_TLS_KEY=" + key, "CURT_API_LISTEN=127.0.0.1:0", "CURT_CODES=random", "CURT_REDIRECT_LIMIT=link=1000/s",
	}})
	ask(t, s.Admin, http.MethodGet, "/metrics")
	// Those with labels are there from the first call on.
	plain := curttest.Start(t, curttest.Options{})
	ask(t, plain.Addr, http.MethodGet, "/api/v1/links")
	// Servers that share have more, also while Redis, ZooKeeper, Kafka, ClickHouse and standbys are away.
	links := "CURT_LINKS=" + testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t)
	sharing := curttest.Start(t, curttest.Options{Data: t.TempDir(), Env: []string{
		links, "CURT_CACHE=redis://127.0.0.1:1", "CURT_LINKS_REPLICAS=postgres://127.0.0.1:1/away", "CURT_IDS=zookeeper://127.0.0.1:1/curt",
		"CURT_CODES=pool",
	}})
	filtering := curttest.Start(t, curttest.Options{Data: t.TempDir(), Env: []string{
		links, "CURT_CACHE=redis://127.0.0.1:1", "CURT_CODES=hash", "CURT_CODE_FILTER=redis",
	}})
	sending := curttest.Start(t, curttest.Options{Data: t.TempDir(), Env: []string{
		links, "CURT_ROLE=redirect,worker", "CURT_EVENTS=kafka://127.0.0.1:1/clicks", "CURT_ANALYTICS=clickhouse://127.0.0.1:1/curt,clickhouse://127.0.0.1:2/curt",
	}})
	queueing := curttest.Start(t, curttest.Options{Env: []string{"CURT_WRITES=queued", "CURT_WRITES_KAFKA=kafka://127.0.0.1:1/writes"}})
	return func() map[string]bool {
		names := map[string]bool{}
		for _, admin := range []string{s.Admin, plain.Admin, sharing.Admin, filtering.Admin, sending.Admin, queueing.Admin} {
			for name := range metrics(t, admin) {
				names[name] = true
			}
		}
		return names
	}
}

// metrics returns how many series each name has.
func metrics(t *testing.T, admin string) map[string]int {
	t.Helper()
	series := map[string]int{}
	for line := range strings.Lines(ask(t, admin, http.MethodGet, "/metrics")) {
		if name := regexp.MustCompile(`^[a-zA-Z0-9_]+`).FindString(line); name != "" {
			series[name]++
		}
	}
	if len(series) < 20 {
		t.Fatalf("only %d metrics", len(series))
	}
	return series
}

// ask sends a request on a connection of its own and returns the body of the answer.
func ask(t *testing.T, addr, method, target string, lines ...string) string {
	t.Helper()
	c, err := curttest.Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, err := c.Do(method, target, append(slices.Clone(lines), "Authorization: Bearer "+curttest.Key), "")
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return string(a.Body)
}

// TestStrangersAddNoSeries sends methods, paths, hosts and codes that nobody has sent
// before: the number of series stays what it is after one request of each kind.
func TestStrangersAddNoSeries(t *testing.T) {
	t.Parallel()
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_UNKNOWN_LIMIT=off"}})
	strange := func(from, to int) {
		c, err := curttest.Dial(t.Context(), s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		for i := from; i < to; i++ {
			for _, request := range [][2]string{
				{"GET", fmt.Sprintf("/nobody%d", i)},
				{"GET", fmt.Sprintf("/%%22%%0a%d", i)},
				{"GET", fmt.Sprintf("/api/v1/links/nobody%d", i)},
				{"GET", fmt.Sprintf("/api/v1/no%d/thing", i)},
				{"GET", fmt.Sprintf("/problems/p%d", i)},
				{fmt.Sprintf("BREW%d", i), fmt.Sprintf("/api/v1/links/nobody%d", i)},
				{fmt.Sprintf("BREW%d", i), fmt.Sprintf("/nobody%d", i)},
			} {
				a, err := c.Do(request[0], request[1], []string{fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", i%256), fmt.Sprintf("User-Agent: a%d", i)}, "")
				if err != nil {
					t.Fatalf("%v: %v", request, err)
				}
				if a.Closes() {
					c.Close()
					if c, err = curttest.Dial(t.Context(), s.Addr); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		c.Close()
	}
	count := func() (n int) {
		for name, series := range metrics(t, s.Admin) {
			if !strings.HasPrefix(name, "go_") {
				n += series
			}
		}
		return n
	}
	strange(0, 1)
	before := count()
	strange(1, 400)
	after := count()
	for round := 1; after != before && round < 3; round++ { // what else began meanwhile does so once
		before = after
		strange(400*round, 400*(round+1))
		after = count()
	}
	if after != before {
		t.Errorf("2,800 strange requests made %d series of %d", after, before)
	}
}
