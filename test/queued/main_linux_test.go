package queued_test

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// plant is what servers stand on.
type plant struct {
	kafka *testkit.Kafka
	env   []string // of every server
}

// build starts Kafka, and has curt migrate create the topic. Links are at a URL, "sqlite" or that of a database.
func build(t *testing.T, brokers int, links string, env ...string) *plant {
	t.Helper()
	p := &plant{kafka: testkit.StartKafka(t, brokers)}
	p.env = append([]string{"CURT_LINKS=" + links, "CURT_WRITES=queued", "CURT_WRITES_KAFKA=" + p.kafka.URL("writes"), "CURT_LIMITS=default=off"}, env...)
	if links != "sqlite" {
		p.env = append(p.env, "CURT_ANALYTICS="+links)
	}
	if brokers < 3 {
		p.env = append(p.env, "CURT_WRITES_ACCEPT_LOSS=true")
	}
	p.migrate(t)
	return p
}

func (p *plant) migrate(t *testing.T) {
	t.Helper()
	curttest.Migrate(t, p.env, "--partitions=4")
}

// database returns the URL of a database of its own.
func database(t *testing.T) string {
	t.Helper()
	return testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t)
}

func (p *plant) start(t *testing.T, role, data string, env ...string) *curttest.Server {
	t.Helper()
	return curttest.Start(t, curttest.Options{Data: data, Env: append(append(p.env, "CURT_ROLE="+role), env...)})
}

// answer is what the API said.
type answer struct {
	Status int
	Link   struct {
		ID    string `json:"id"`
		Code  string `json:"short_code"`
		State string `json:"state"`
		URL   string `json:"long_url"`
		Type  string `json:"type"` // of a problem
	}
	curttest.Answer
}

// call asks the API as an administrator.
func call(t *testing.T, s *curttest.Server, method, path, body string, headers ...string) answer {
	t.Helper()
	return callWith(t, s, curttest.Key, method, path, body, headers...)
}

func callWith(t *testing.T, s *curttest.Server, key, method, path, body string, headers ...string) (a answer) {
	t.Helper()
	c := s.MustDial(t)
	defer c.Close()
	headers = append([]string{"Authorization: Bearer " + key, "Content-Type: application/json"}, headers...)
	var err error
	if a.Answer, err = c.Do(method, path, headers, body); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	a.Status = a.Answer.Status
	if len(a.Body) > 0 {
		if err := json.Unmarshal(a.Body, &a.Link); err != nil {
			t.Fatalf("%s %s: %d %q: %v", method, path, a.Status, a.Body, err)
		}
	}
	return a
}

// accepted asks for links, and again with the same idempotency key while it is open whether Kafka has them, as on a busy
// machine. Headers may have a key.
func accepted(t *testing.T, s *curttest.Server, key, path, body string, headers ...string) (a answer) {
	t.Helper()
	if !slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, "Idempotency-Key: ") }) {
		headers = append(headers, "Idempotency-Key: "+rand.Text())
	}
	soon(t, "a create has an outcome", func() bool {
		a = callWith(t, s, key, "POST", path, body, headers...)
		return a.Status != 503 && a.Link.Type != "/problems/idempotency-key-busy" && !strings.Contains(string(a.Body), `"status":503`)
	})
	return a
}

// settled asks again while a busy store or Redis has it answered 503.
func settled(t *testing.T, s *curttest.Server, key, method, path, body string) (a answer) {
	t.Helper()
	soon(t, method+" "+path+" has an outcome", func() bool {
		a = callWith(t, s, key, method, path, body)
		return a.Status != 503
	})
	return a
}

// author is a key of a workspace.
type author struct {
	ID        string `json:"id"`
	Secret    string `json:"key"`
	Workspace string `json:"workspace_id"`
}

func newAuthor(t *testing.T, s *curttest.Server, workspace string) (who author) {
	t.Helper()
	a := call(t, s, "POST", "/api/v1/keys", `{"name":"author","scopes":["links:read","links:write"],"workspace_id":"`+workspace+`"}`)
	if err := json.Unmarshal(a.Body, &who); err != nil || a.Status != 201 || who.Secret == "" {
		t.Fatalf("a key: %d %q: %v", a.Status, a.Body, err)
	}
	return who
}

// visit follows a link.
func visit(t *testing.T, s *curttest.Server, code string) (status int, location, cacheControl string) {
	t.Helper()
	c := s.MustDial(t)
	defer c.Close()
	a, err := c.Do("GET", "/"+code, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	location, _ = a.Get("Location")
	cacheControl, _ = a.Get("Cache-Control")
	return a.Status, location, cacheControl
}

// soon waits until ok, and fails after three minutes: writers join their group one after the other.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within three minutes", what)
		}
	}
}

// metric returns a figure of a server.
func metric(t *testing.T, s *curttest.Server, name string) float64 {
	t.Helper()
	value, found, err := s.Metric(t.Context(), name)
	if err != nil || !found {
		t.Fatalf("metric %s: found %v: %v", name, found, err)
	}
	return value
}
