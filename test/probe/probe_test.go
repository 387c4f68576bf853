package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// The bars of how many files a new field of a link may touch. They were 34.
const (
	mostOfTheOwner  = 6
	mostOfTheAnswer = 9
)

// TestALaterRelease adds two fields to a link, and has the release that has them and this one
// use one data folder in turns, and one database at the same time.
func TestALaterRelease(t *testing.T) {
	testkit.Faults(t)
	if n := files(ofTheOwner()); n > mostOfTheOwner {
		t.Errorf("a field of the owner takes edits of %d files, want %d at the most", n, mostOfTheOwner)
	}
	if n := files(ofTheAnswer()); n > mostOfTheAnswer {
		t.Errorf("a field that changes the answer takes edits of %d files, want %d at the most", n, mostOfTheAnswer)
	}
	later, now := built(t, copied(t, append(ofTheOwner(), ofTheAnswer()...)...)), curttest.Binary(t)
	t.Run("in turns", func(t *testing.T) { inTurns(t, later, now) })
	t.Run("side by side", func(t *testing.T) { sideBySide(t, later, now) })
}

// release is a running server of one of both.
type release struct {
	*curttest.Server
	t      *testing.T
	binary string
}

func serve(t *testing.T, binary, data string, env ...string) release {
	t.Helper()
	t.Setenv("CURT_BIN", binary)
	return release{curttest.Start(t, curttest.Options{Data: data, Env: env}), t, binary}
}

// ask sends a request and returns the answer's members.
func (r release) ask(method, path, body string, want int) (members map[string]any) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.Addr+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+curttest.Key)
	q.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != want {
		r.t.Fatalf("%s %s: %s %s, %v; want %d", method, path, a.Status, text, err, want)
	}
	if len(text) > 0 {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
	return members
}

// follow visits a link.
func (r release) follow(code string) (status int, cache string) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.Addr+"/"+code, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	a, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = a.Body.Close()
	return a.StatusCode, a.Header.Get("Cache-Control")
}

// await visits a link until it is answered so.
func (r release) await(code string, status int, cache string) {
	r.t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got, kept := r.follow(code)
		if got == status && (cache == "" || kept == cache) {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("%s is answered %d with %q, want %d with %q", code, got, kept, status, cache)
		}
	}
}

// curt runs a command against the server and returns what it prints.
func (r release) curt(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(r.t.Context()), r.binary, args...)
	cmd.Env = append(os.Environ(), "CURT_SERVER=http://"+r.Addr, "CURT_API_KEY="+curttest.Key)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("curt %v: %v\n%s", args, err, complaint.Bytes())
	}
	return string(out)
}

func (r release) end() {
	r.t.Helper()
	if code, _ := r.Terminate(r.t); code != 0 {
		r.t.Fatalf("it ended with %d", code)
	}
}

func want(t *testing.T, members map[string]any, name string, value any) {
	t.Helper()
	if got := members[name]; got != value {
		t.Errorf("%s is %v, want %v", name, got, value)
	}
}

// everywhere finds the fields in each place where a field is.
func everywhere(t *testing.T, r release) {
	made := r.ask(http.MethodPost, "links", `{"long_url":"https://example.com/","custom_alias":"noted","note":"Quaternion","fleeting":false}`, 201)
	want(t, made, "note", "Quaternion")
	want(t, made, "fleeting", false)
	r.ask(http.MethodPost, "links", `{"long_url":"https://example.com/","note":"two\nlines"}`, 400)
	r.ask(http.MethodPost, "links", `{"long_url":"https://example.com/","note":"`+strings.Repeat("x", 1001)+`"}`, 400)
	found := r.ask(http.MethodPost, "links", `{"long_url":"https://example.com/","dedupe":true}`, 200)
	want(t, found, "short_code", "noted")
	other := r.ask(http.MethodPost, "links", `{"long_url":"https://example.com/","dedupe":true,"fleeting":true}`, 201)
	want(t, other, "fleeting", true)
	if out := r.curt("shorten", "--json", "--note", "by hand", "--fleeting", "--alias", "typed", "https://example.com/2"); !strings.Contains(out, "by hand") {
		t.Errorf("curt shorten: %s", out)
	}
	r.await("typed", 302, "no-store")
	r.curt("links", "update", "typed", "--note", "changed by hand", "--no-fleeting")
	r.await("typed", 302, "private, max-age=0")
	for end := time.Now().Add(3 * time.Minute); len(r.ask(http.MethodGet, "links?q=quaternion", "", 200)["links"].([]any)) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a link is not found by its note")
		}
	}
}

func inTurns(t *testing.T, later, now string) {
	data := t.TempDir()
	one := serve(t, later, data)
	everywhere(t, one)
	one.ask(http.MethodPost, "links", `{"long_url":"https://example.com/f","custom_alias":"fleeting","note":"both","fleeting":true}`, 201)
	one.ask(http.MethodPost, "links", `{"long_url":"https://example.com/g","custom_alias":"gone","note":"secret","fleeting":true}`, 201)
	one.await("fleeting", 302, "no-store")
	one.end()
	for _, args := range [][]string{{"export", "--data", data}, {"export", "--data", data, "--csv"}} {
		if out := one.curt(args...); strings.Count(out, "changed by hand") != 1 || strings.Count(out, "Quaternion") != 1 {
			t.Errorf("%v: %s", args, out)
		}
	}

	two := serve(t, now, data)
	two.await("noted", 302, "")
	two.await("fleeting", 503, "")
	want(t, two.ask(http.MethodGet, "links/fleeting", "", 200), "long_url", "https://example.com/f")
	for _, code := range []string{"noted", "fleeting"} {
		want(t, two.ask(http.MethodPatch, "links/"+code, `{"title":"before"}`, 200), "title", "before")
	}
	two.await("fleeting", 503, "")
	two.ask(http.MethodDelete, "links/gone", "", 204)
	two.await("gone", 410, "")
	two.end()

	three := serve(t, later, data)
	for code, note := range map[string]string{"noted": "Quaternion", "fleeting": "both"} {
		l := three.ask(http.MethodGet, "links/"+code, "", 200)
		want(t, l, "note", note)
		want(t, l, "title", "before")
	}
	three.await("fleeting", 302, "no-store")
	three.await("gone", 410, "")
}

func sideBySide(t *testing.T, later, now string) {
	database := testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t)
	next := serve(t, later, "", "CURT_LINKS="+database)
	old := serve(t, now, "", "CURT_LINKS="+database)
	next.ask(http.MethodPost, "links", `{"long_url":"https://example.com/","custom_alias":"plain","note":"Quaternion"}`, 201)
	for _, r := range []release{next, old} {
		r.await("plain", 302, "")
	}
	want(t, old.ask(http.MethodPatch, "links/plain", `{"title":"by the old one"}`, 200), "title", "by the old one")
	want(t, next.ask(http.MethodGet, "links/plain", "", 200), "note", "Quaternion")
	next.ask(http.MethodPatch, "links/plain", `{"fleeting":true}`, 200)
	next.await("plain", 302, "no-store")
	old.await("plain", 503, "") // though it has held another answer
	old.ask(http.MethodPatch, "links/plain", `{"title":"again"}`, 200)
	want(t, next.ask(http.MethodGet, "links/plain", "", 200), "fleeting", true) // the store has it, whatever is kept of the answer
	next.await("plain", 302, "no-store")
	next.ask(http.MethodPatch, "links/plain", `{"fleeting":false}`, 200)
	old.await("plain", 302, "")
	old.ask(http.MethodDelete, "links/plain", "", 204)
	next.await("plain", 410, "")
}
