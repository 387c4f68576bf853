package lane_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"curt/test/internal/curttest"
)

// exchange is a request and its answer, as lint.py reads them.
type exchange struct {
	Name    string      `json:"name"`
	Method  string      `json:"method"`
	URL     string      `json:"url"`
	Version string      `json:"version"`
	Sent    [][2]string `json:"sent"`
	Status  int         `json:"status"`
	Phrase  string      `json:"phrase"`
	Fields  [][2]string `json:"fields"`
	Body    []byte      `json:"body"`
}

// note is what the linter found.
type note struct {
	Level, Name, Subject, Summary string
}

// accepted are warnings that we know of, and why they stay. An error is never accepted.
func accepted() map[string]string {
	return map[string]string{
		"STORE_PUBLIC_UNNECESSARY": "public, max-age=60 of cacheable links: the linter sees no Authorization, and a visitor may send one",
	}
}

// way is how an answer comes about, and how it travels.
type way struct {
	name, version string
	env           []string
	tls           bool
}

// kinds are links of every kind that redirects: what the API is sent to make them, and
// the status of their answer.
func kinds() map[string]struct {
	fields string
	status int
} {
	type kind = struct {
		fields string
		status int
	}
	return map[string]kind{
		"plain": {``, 302}, "moved": {`,"redirect_status":301`, 301}, "temp": {`,"redirect_status":307`, 307},
		"perm": {`,"redirect_status":308`, 308}, "cdn": {`,"cacheable":true`, 302}, "cdn-moved": {`,"cacheable":true,"redirect_status":301`, 301},
		"found": {`,"noindex":false`, 302}, "ends": {`,"expires_at":"2099-01-01T00:00:00Z"`, 302}, "query": {`,"forward_query":true`, 302},
		"counted": {`,"max_clicks":1000`, 302}, "back": {`,"fallback_url":"https://example.com/fallback","starts_at":"2099-01-01T00:00:00Z"`, 404},
		"off":    {`,"fallback_url":"https://example.com/fallback"`, 410}, // disabled below
		"nobody": {`-`, 404},
	}
}

// TestALinterFindsNoFault asks for links of every kind on every way and has httplint
// judge the answers.
func TestALinterFindsNoFault(t *testing.T) {
	python := linter(t)
	cert, key := curttest.Certificate(t)
	secure := []string{"CURT_TLS_CERT=" + cert, "CURT_TLS_KEY=" + key}
	var all []exchange
	for _, w := range []way{
		{"lane", "1.1", nil, false},
		{"net/http", "1.1", []string{"CURT_LANE=off"}, false},
		{"lane over TLS", "1.1", secure, true},
		{"HTTP2", "2", secure, true},
		{"HTTP2 without the lane", "2", append(secure, "CURT_LANE=off"), true},
	} {
		all = append(all, gather(t, w)...)
	}
	if len(all) < 5*2*len(kinds()) {
		t.Fatalf("only %d answers", len(all))
	}
	found := lint(t, python, all)
	seen := map[string]bool{}
	for _, x := range all {
		for _, n := range found[x.Name] {
			if n.Level != "bad" && n.Level != "warning" {
				continue
			}
			if n.Name == "DATE_INCORRECT" { // it compares with the time of its own start
				continue
			}
			seen[n.Name] = true
			if accepted()[n.Name] == "" || n.Level == "bad" {
				t.Errorf("%s: %s, %s: %s (%s)\n%v", x.Name, n.Level, n.Subject, n.Summary, n.Name, x.Fields)
			}
		}
	}
	for name := range accepted() {
		if !seen[name] {
			t.Errorf("the warning %s is accepted and never comes", name)
		}
	}
	// The control: a fault must be found.
	x := all[slices.IndexFunc(all, func(x exchange) bool { return x.Status == 302 })]
	x.Fields = append(slices.Clone(x.Fields), [2]string{"Date", "yesterday"})
	if !slices.ContainsFunc(lint(t, python, []exchange{x})[x.Name], func(n note) bool { return n.Level == "bad" }) {
		t.Error("two Dates, one of them wrong, pass: the linter proves nothing")
	}
}

// linter returns a Python that has httplint.
func linter(t *testing.T) string {
	t.Helper()
	python := filepath.Join("..", "..", "bin", "tools", "venv", "bin", "python")
	if err := exec.CommandContext(t.Context(), python, "-c", "import httplint").Run(); err != nil {
		curttest.Need(t, "httplint (make test installs it by scripts/venv)")
	}
	return python
}

// lint has the exchanges judged, by name.
func lint(t *testing.T, python string, all []exchange) map[string][]note {
	t.Helper()
	in, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "lint.py")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found map[string][]note
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return found
}

// gather starts a server and asks for every kind of link in one way, by GET and HEAD,
// as a program and as a browser.
func gather(t *testing.T, w way) (all []exchange) {
	t.Helper()
	s := curttest.Start(t, curttest.Options{Env: w.env})
	do := client(t, s, w)
	for code, k := range kinds() {
		if k.fields == "-" {
			continue
		}
		body := `{"long_url":"https://example.com/` + code + `","custom_alias":"` + code + `"` + k.fields + `}`
		if x := do("POST", "/api/v1/links", "application/json", body); x.Status != 201 {
			t.Fatalf("%s: %d %s", code, x.Status, x.Body)
		}
	}
	if x := do("PATCH", "/api/v1/links/off", "application/json", `{"status":"disabled"}`); x.Status != 200 {
		t.Fatalf("%d %s", x.Status, x.Body)
	}
	for code, k := range kinds() {
		for _, method := range []string{"GET", "HEAD"} {
			for _, accept := range []string{"*/*", "text/html"} {
				x := do(method, "/"+code+"?a=b", accept, "")
				x.Name = strings.Join([]string{w.name, method, code, accept}, " ")
				if x.Status != k.status {
					t.Errorf("%s: %d, want %d", x.Name, x.Status, k.status)
				}
				all = append(all, x)
			}
		}
	}
	return all
}

// client returns what sends one request: media is what a body is, or what is accepted.
func client(t *testing.T, s *curttest.Server, w way) func(method, path, media, body string) exchange {
	t.Helper()
	if w.tls {
		return secureClient(t, s, w.version == "2")
	}
	c := s.MustDial(t)
	return func(method, path, media, body string) exchange {
		x := exchange{Method: method, URL: "http://" + s.Addr + path, Version: w.version, Sent: [][2]string{{"Host", s.Addr}, {"Accept", media}}}
		lines := []string{"Accept: " + media}
		if body != "" {
			lines = []string{"Content-Type: " + media, "Authorization: Bearer " + curttest.Key}
		}
		a, err := c.Do(method, path, lines, body)
		if err != nil {
			t.Fatal(err)
		}
		if a.Closes() {
			c = s.MustDial(t)
		}
		x.Status, x.Phrase, x.Body = a.Status, http.StatusText(a.Status), a.Body
		for _, f := range a.Fields {
			x.Fields = append(x.Fields, [2]string{f.Name, f.Value})
		}
		return x
	}
}

func secureClient(t *testing.T, s *curttest.Server, two bool) func(method, path, media, body string) exchange {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!two)
	transport.Protocols.SetHTTP2(two)
	t.Cleanup(transport.CloseIdleConnections)
	return func(method, path, media, body string) exchange {
		url := "https://" + s.Addr + path
		r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if r.Header.Set("Accept", media); body != "" {
			r.Header = http.Header{"Content-Type": {media}, "Authorization": {"Bearer " + curttest.Key}}
		}
		a, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Body.Close() }()
		x := exchange{Method: method, URL: url, Version: "1.1", Sent: [][2]string{{"Host", s.Addr}, {"Accept", media}}, Status: a.StatusCode}
		if two != (a.ProtoMajor == 2) {
			t.Fatalf("answered by %s", a.Proto)
		}
		if two {
			x.Version = "2"
		} else {
			x.Phrase = http.StatusText(a.StatusCode)
		}
		if x.Body, err = io.ReadAll(a.Body); err != nil {
			t.Fatal(err)
		}
		for name, values := range a.Header {
			for _, v := range values {
				x.Fields = append(x.Fields, [2]string{name, v})
			}
		}
		return x
	}
}
