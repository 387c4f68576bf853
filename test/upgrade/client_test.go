package upgrade_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// The names of the server, which stand in what it answers.
const (
	host   = "go.example.com"
	domain = "second.example"
)

// start starts a server on a data folder. Raw clicks are kept, however old the folder is.
func start(t *testing.T, data string) *curttest.Server {
	t.Helper()
	return curttest.Start(t, curttest.Options{Data: data, Env: []string{
		"CURT_BASE_URL=https://" + host, "CURT_DOMAINS=" + domain, "CURT_RAW_RETENTION=36500d", "CURT_UNKNOWN_LIMIT=off",
	}})
}

// stop ends a server in order, so that all is in its folder.
func stop(t *testing.T, s *curttest.Server) {
	t.Helper()
	if code, _ := s.Terminate(t); code != 0 {
		t.Fatalf("curt ended with %d:\n%s", code, s.Log())
	}
}

// object is JSON as it came.
type object = map[string]any

// api asks the server with a key; "" = without one. It returns the status and the
// answer, nil where that is no JSON object.
func api(t *testing.T, s *curttest.Server, key, method, path string, body any) (int, object) {
	t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	q, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	if key != "" {
		q.Header.Set("Authorization", "Bearer "+key)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	answer, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	var o object
	_ = json.Unmarshal(answer, &o) // a page or nothing is no object
	return a.StatusCode, o
}

// must is api as the admin, for what cannot fail.
func must(t *testing.T, s *curttest.Server, method, path string, body any) object {
	t.Helper()
	status, o := api(t, s, curttest.Key, method, path, body)
	if status >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d %v", method, path, status, o)
	}
	return o
}

// visit asks for a code as a visitor and returns what the answer says.
func visit(t *testing.T, s *curttest.Server, of, code string, header http.Header) object {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr+"/"+code, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Host = of
	if header != nil {
		q.Header = header
	}
	a, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	met := object{"status": float64(a.StatusCode)}
	for _, name := range []string{"Location", "Cache-Control", "X-Robots-Tag"} {
		if v := a.Header.Get(name); v != "" {
			met[name] = v
		}
	}
	var problem struct{ Type string }
	if json.Unmarshal(text, &problem) == nil && problem.Type != "" {
		met["problem"] = problem.Type
	}
	return met
}

// eventually asks again until f is content: lists by words are some seconds behind.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
