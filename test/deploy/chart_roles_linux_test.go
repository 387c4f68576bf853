package deploy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestChartRoles starts curt as each pod of a fleet does, with the variables that the chart
// renders: the Job ends, each probe of a server passes, and each Service answers what the routes send it.
func TestChartRoles(t *testing.T) {
	helm := releaseTool(t, "helm")
	database := testkit.StartPostgres(t, testkit.PostgresConfig{})
	t.Run("PostgreSQL", func(t *testing.T) {
		urls := map[string]string{"links": database.Database(t), "counts": database.Database(t)}
		servers := startPods(t, urls, "the schema of CURT_LINKS was brought up to date", render(t, helm, "--set=mode=fleet,baseURL=https://go.example.com,adminKeySecret=k",
			"--set=external.postgresql.secret=p,external.postgresql.key=links,external.postgresql.analyticsKey=counts"))
		code := checkServed(t, servers["api"].Addr, servers["redirect"].Addr)
		checkOutage(t, database, servers["redirect"], code)
		endPods(t, servers)
	})
	t.Run("Kafka and ClickHouse", func(t *testing.T) {
		house := testkit.StartClickHouse(t)
		urls := map[string]string{"links": database.Database(t), "clicks": testkit.StartKafka(t, 1).URL("clicks"), "counts": house.URL(house.Database(t))}
		servers := startPods(t, urls, "created topic clicks", render(t, helm, "--set=mode=fleet,baseURL=https://go.example.com,adminKeySecret=k",
			"--set=external.postgresql.secret=p,external.postgresql.key=links,external.kafka.secret=k,external.kafka.key=clicks,external.clickhouse.secret=c,external.clickhouse.key=counts"))
		checkServed(t, servers["api"].Addr, servers["redirect"].Addr)
		// The autoscaler of workers reads it.
		if _, found, err := servers["worker"].Metric(t.Context(), "curt_worker_lag_events"); err != nil || !found {
			t.Errorf("curt_worker_lag_events: %v, %v", found, err)
		}
		endPods(t, servers)
	})
}

// startPods runs the Job, then a server for each Deployment, by role.
func startPods(t *testing.T, urls map[string]string, migrated, rendered string) map[string]*curttest.Server {
	t.Helper()
	pods := map[string]map[string]any{} // their containers
	for _, object := range documents(t, rendered) {
		if kind := object["kind"]; kind == "Deployment" || kind == "Job" {
			pod := object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			name := object["metadata"].(map[string]any)["name"].(string)
			pods[strings.TrimPrefix(name, "x-curt-")] = pod["containers"].([]any)[0].(map[string]any)
		}
	}
	if got := slices.Sorted(maps.Keys(pods)); !slices.Equal(got, []string{"api", "migrate", "redirect", "worker"}) {
		t.Fatalf("the chart runs %v", got)
	}
	said, err := runCurt(t, variables(t, pods["migrate"], urls), fmt.Sprint(pods["migrate"]["args"].([]any)[0]))
	if err != nil || !strings.Contains(said, migrated) {
		t.Fatalf("the Job: %v\n%s", err, said)
	}
	delete(pods, "migrate")
	servers := map[string]*curttest.Server{}
	for name, container := range pods {
		s := curttest.Start(t, curttest.Options{Env: variables(t, container, urls)})
		for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
			checkProbe(t, s, container, probe)
		}
		servers[name] = s
	}
	return servers
}

func checkProbe(t *testing.T, s *curttest.Server, container map[string]any, probe string) {
	t.Helper()
	path := container[probe].(map[string]any)["httpGet"].(map[string]any)["path"].(string)
	if status, err := curttest.Probe(t.Context(), s.Admin, path); err != nil || status != http.StatusOK {
		t.Errorf("%s %s: %d, %v", probe, path, status, err)
	}
}

func endPods(t *testing.T, servers map[string]*curttest.Server) {
	t.Helper()
	for name, s := range servers {
		if code, _ := s.Terminate(t); code != 0 {
			t.Errorf("%s ended with %d", name, code)
		}
	}
}

// checkOutage: while the database is away a redirect server is not ready by /readyz, and goes on by the
// probe that the chart has for it.
func checkOutage(t *testing.T, database *testkit.Postgres, s *curttest.Server, code string) {
	t.Helper()
	database.Stop(t, func() {
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			status, err := curttest.Probe(t.Context(), s.Admin, "/readyz")
			if err == nil && status == http.StatusServiceUnavailable {
				break
			} else if time.Now().After(end) {
				t.Fatalf("ready without a database: %d, %v", status, err)
			}
		}
		if status, err := curttest.Probe(t.Context(), s.Admin, "/healthz"); err != nil || status != http.StatusOK {
			t.Errorf("/healthz without a database: %d, %v", status, err)
		}
		if status, _ := visit(t, http.MethodGet, s.Addr, "/"+code, ""); status != http.StatusFound {
			t.Errorf("a link in memory without a database: %d", status)
		}
	})
}

// checkServed creates a link at the API, sends each server requests for its paths, and returns the code.
func checkServed(t *testing.T, api, redirect string) (created string) {
	t.Helper()
	status, said := visit(t, http.MethodPost, api, "/api/v1/links", `{"long_url":"https://example.com/"}`)
	var link struct {
		Code string `json:"short_code"`
	}
	if err := json.Unmarshal([]byte(said), &link); err != nil || status != http.StatusCreated {
		t.Fatalf("create: %d, %v\n%s", status, err, said)
	}
	for _, v := range []struct {
		addr, path string
		want       int
	}{
		{redirect, "/" + link.Code, http.StatusFound},
		{redirect, "/" + link.Code + "+", http.StatusOK},
		{redirect, "/" + link.Code + "/qr", http.StatusOK},
		{redirect, "/" + link.Code + "/stats", http.StatusNotFound},
		{redirect, "/report", http.StatusNotFound},
		{api, "/", http.StatusOK},
		{api, "/report", http.StatusOK},
		{api, "/appeal", http.StatusOK},
		{api, "/api/docs", http.StatusOK},
		{api, "/" + link.Code + "/stats", http.StatusOK},
		{api, "/" + link.Code, http.StatusNotFound},
	} {
		if status, _ := visit(t, http.MethodGet, v.addr, v.path, ""); status != v.want {
			t.Errorf("%s of %s: %d, want %d", v.path, map[string]string{api: "api", redirect: "redirect"}[v.addr], status, v.want)
		}
	}
	return link.Code
}

// variables are those of a container, with the entries of its Secret, but for addresses and
// files that the test has.
func variables(t *testing.T, container map[string]any, secret map[string]string) (all []string) {
	t.Helper()
	for _, e := range container["env"].([]any) {
		v := e.(map[string]any)
		value := fmt.Sprint(v["value"])
		if from, ok := v["valueFrom"].(map[string]any); ok {
			if value = secret[from["secretKeyRef"].(map[string]any)["key"].(string)]; value == "" {
				t.Fatalf("no entry for %v", v)
			}
		}
		if name := v["name"].(string); !slices.Contains([]string{"CURT_LISTEN", "CURT_ADMIN_LISTEN", "CURT_DATA", "CURT_ADMIN_KEY_FILE", "CURT_DRAIN_DELAY"}, name) {
			all = append(all, name+"="+value)
		}
	}
	return all
}

func visit(t *testing.T, method, addr, path, body string) (status int, said string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "go.example.com"
	r.Header.Set("Authorization", "Bearer "+curttest.Key)
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text)
}
