package dynamodb_test

import (
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// curt runs a command with settings and returns what it said.
func curt(t *testing.T, env []string, args ...string) (said string, code int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), curttest.Binary(t), args...)
	c.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CURT_") }), env...)
	out, _ := c.CombinedOutput() // the code says it
	return string(out), c.ProcessState.ExitCode()
}

// soon polls until ok, three minutes at the most.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within three minutes", what)
		}
	}
}

// get is what a server answers a path with.
func get(t *testing.T, s *curttest.Server, path string) (status int, location, retry string) {
	t.Helper()
	c := s.MustDial(t)
	defer c.Close()
	a, err := c.Do("GET", path, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	location, _ = a.Get("Location")
	retry, _ = a.Get("Retry-After")
	return a.Status, location, retry
}

// TestServersOverDynamoDB: a start without accounts, or without tables, ends with one line; servers of
// two roles work as over PostgreSQL; while DynamoDB is down, links in memory are served, and creates
// are 503 with Retry-After.
func TestServersOverDynamoDB(t *testing.T) {
	testkit.Faults(t)
	d := testkit.StartDynamoDB(t, true)
	links := "CURT_LINKS=" + d.URL("curt")
	aws := []string{"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_EC2_METADATA_DISABLED=true"}
	for name, env := range map[string][]string{
		"CURT_ACCOUNTS":    {links, "CURT_DATA=" + t.TempDir()},
		"run curt migrate": {links, "CURT_DATA=" + t.TempDir(), "CURT_ROLE=redirect", "CURT_LISTEN=127.0.0.1:0", "CURT_ANALYTICS=postgres://127.0.0.1:1/counts"},
	} {
		said, code := curt(t, append(env, aws...), "serve")
		if code != 78 || strings.Count(said, "\n") != 1 || !strings.Contains(said, name) {
			t.Errorf("start without %s: code %d, %s", name, code, said)
		}
	}
	accounts := "CURT_ACCOUNTS=" + testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t)
	env := append([]string{links, accounts, "CURT_CODES=range"}, aws...)
	if said, code := curt(t, env, "migrate"); code == 69 { // no answer in time
		curttest.Migrate(t, env)
	} else if code != 0 || !strings.Contains(said, "created table curt\n") {
		t.Fatalf("migrate: code %d, %s", code, said)
	}
	api := curttest.Start(t, curttest.Options{Env: append(env, "CURT_ROLE=api,worker", "CURT_ANALYTICS="+strings.TrimPrefix(accounts, "CURT_ACCOUNTS="))})
	redirect := curttest.Start(t, curttest.Options{Env: append(env, "CURT_ROLE=redirect", "CURT_ANALYTICS="+strings.TrimPrefix(accounts, "CURT_ACCOUNTS="))})
	c, err := client.New("http://"+api.Addr, client.WithKey(curttest.Key))
	if err != nil {
		t.Fatal(err)
	}
	generated, err := c.Create(t.Context(), client.NewLink{LongURL: "https://example.com/generated"})
	if err != nil {
		t.Fatal(err)
	}
	alias, err := c.Create(t.Context(), client.NewLink{LongURL: "https://example.com/alias", CustomAlias: "alias"})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []client.Link{generated, alias} {
		soon(t, l.ShortCode, func() bool {
			status, to, _ := get(t, redirect, "/"+l.ShortCode)
			return status == http.StatusFound && to == l.LongURL
		})
	}
	if err := c.Delete(t.Context(), "alias"); err != nil {
		t.Fatal(err)
	}
	soon(t, "a deleted link", func() bool { status, _, _ := get(t, redirect, "/alias"); return status == http.StatusGone })

	d.Kill(t)
	if status, to, _ := get(t, redirect, "/"+generated.ShortCode); status != http.StatusFound || to != generated.LongURL {
		t.Errorf("a link in memory while DynamoDB is down: %d to %s", status, to)
	}
	conn := api.MustDial(t)
	a, err := conn.Do("POST", "/api/v1/links", []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, `{"long_url":"https://example.com/down"}`)
	conn.Close()
	if retry, _ := a.Get("Retry-After"); err != nil || a.Status != http.StatusServiceUnavailable || retry == "" {
		t.Errorf("a create while DynamoDB is down: %d, Retry-After %q, %v", a.Status, retry, err)
	}
	d.Again(t)
	soon(t, "creates again", func() bool {
		_, err := c.Create(t.Context(), client.NewLink{LongURL: "https://example.com/up"})
		return err == nil
	})
	if status, _, _ := get(t, api, "/readyz"); status == 0 {
		t.Error("no answer of /readyz")
	}
}
