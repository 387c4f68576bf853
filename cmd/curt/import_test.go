package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt.example/client"
	"curt/internal/cli"
	"curt/internal/transfer"
)

// tempFile makes a file for one test.
func tempFile(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// way is a server, and what lies before it: a request that refuse takes does not arrive.
func way(t *testing.T, refuse func(w http.ResponseWriter, r *http.Request) bool) {
	t.Helper()
	address, folder := serving(t)
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	server := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !refuse(w, r) {
			server.ServeHTTP(w, r)
		}
	}))
	s.Config.SetKeepAlivesEnabled(false)
	t.Cleanup(s.Close)
	t.Setenv("CURT_SERVER", s.URL)
	t.Setenv("CURT_API_KEY_FILE", filepath.Join(folder, "admin.key"))
}

const fiveRows = "code,url\n,https://example.com/\n,https://example.com/\nabc,https://example.com/a\nbcd,https://example.com/b\n,https://example.com/c\n"

// imported counts the links of the server.
func imported(t *testing.T) int {
	t.Helper()
	code, out, said := curt(t.Context(), "links", "list", "--all", "--json")
	if code != cli.ExitDone {
		t.Fatalf("exit %d: %s", code, said)
	}
	return strings.Count(out, "\n")
}

// Wherever the way to the server breaks, the import goes on from there, and makes each link once.
func TestResumedImportGoesOn(t *testing.T) {
	broken := map[string]bool{}
	way(t, func(_ http.ResponseWriter, r *http.Request) bool {
		call := r.Method + " " + r.URL.Path[strings.LastIndex(r.URL.Path, "/"):]
		if strings.Contains(r.URL.Path, "/links") || r.Method == http.MethodDelete || broken[call] {
			return false
		}
		broken[call] = true
		panic(http.ErrAbortHandler)
	})
	file := tempFile(t, "links.csv", fiveRows)
	args := []string{"import", file}
	runs := 0
	for ; runs < 10; runs++ {
		code, _, said := curt(t.Context(), args...)
		if code == cli.ExitDone {
			if !strings.Contains(said, "5 made, 0 failed") {
				t.Error(said)
			}
			break
		}
		if code != cli.ExitUnavailable || !strings.Contains(said, "--resume") {
			t.Fatalf("exit %d: %s", code, said)
		}
		args = []string{"import", "--resume", file}
	}
	if runs < 4 || imported(t) != 5 {
		t.Errorf("%d links after %d runs, broken %v", imported(t), runs, broken)
	}
	results, err := os.ReadFile(file + ".results.jsonl")
	if err != nil || strings.Count(string(results), "\n") != 5 || !strings.HasPrefix(string(results), `{"line":2,"short_code":"`) {
		t.Errorf("%v\n%s", err, results)
	}
	if _, err := os.Stat(file + ".results.jsonl.state"); !os.IsNotExist(err) {
		t.Errorf("a state is left: %v", err)
	}
}

// Ctrl-C leaves the import to the server; --cancel stops it.
func TestCtrlCLeavesTheImportToTheServer(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	way(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/jobs/") && ctx.Err() == nil {
			interrupt()
			_, _ = io.WriteString(w, `{"state":"running"}`)
			return true
		}
		return false
	})
	file := tempFile(t, "links.csv", fiveRows)
	if code, _, said := curt(ctx, "import", file); code != cli.ExitInterrupted || !strings.Contains(said, "the server continues the import") {
		t.Errorf("exit %d: %s", code, said)
	}
	if code, _, said := curt(t.Context(), "import", "--cancel", file); code != cli.ExitDone || !strings.Contains(said, " made, 0 failed; results in ") {
		t.Errorf("exit %d: %s", code, said)
	}
	if code, _, said := curt(t.Context(), "import", "--resume", file); code != cli.ExitFailed || !strings.Contains(said, "nothing to resume") {
		t.Errorf("exit %d: %s", code, said)
	}
}

// A server of the release before has no jobs.
func TestImportNeedsAServerWithJobs(t *testing.T) {
	way(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/jobs") {
			return false
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"type":"/problems/no-such-path","title":"There is nothing at this path","status":404}`)
		return true
	})
	for _, args := range [][]string{{"import", tempFile(t, "links.csv", fiveRows)}, {"export", "--remote"}} {
		if code, _, said := curt(t.Context(), args...); code != cli.ExitFailed || !strings.Contains(said, "upgrade it") || strings.Count(strings.TrimSpace(said), "\n") > 1 {
			t.Errorf("exit %d: %s", code, said)
		}
	}
}

// What a server exports is what it has, also after its client was interrupted.
func TestExportFromAServer(t *testing.T) {
	broken := false
	way(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/result") || broken {
			return false
		}
		broken = true
		panic(http.ErrAbortHandler)
	})
	if code, _, said := curt(t.Context(), "shorten", "--alias=exported", "https://example.com/a"); code != cli.ExitDone {
		t.Fatal(said)
	}
	name := filepath.Join(t.TempDir(), "links.jsonl")
	if code, _, said := curt(t.Context(), "export", "--remote", "-o", name); code != cli.ExitUnavailable || !strings.Contains(said, "--resume continues there") {
		t.Errorf("exit %d: %s", code, said)
	}
	if code, _, said := curt(t.Context(), "export", "--remote", "--resume", "-o", name); code != cli.ExitDone || !strings.Contains(said, "1 links in ") {
		t.Errorf("exit %d: %s", code, said)
	}
	whole, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(whole), `"short_code":"exported"`) {
		t.Errorf("%v: %s", err, whole)
	}
	if _, out, said := curt(t.Context(), "export", "--remote"); out != string(whole) {
		t.Errorf("%s: %s", said, out)
	}
	if code, out, said := curt(t.Context(), "export", "--remote", "--csv"); code != cli.ExitDone || !strings.HasPrefix(out, "id,domain,short_code,") {
		t.Errorf("exit %d: %s %s", code, out, said)
	}
}

// What a run left that was killed before its first row keeps nobody from beginning.
func TestImportBeginsOverEmptyResults(t *testing.T) {
	way(t, func(http.ResponseWriter, *http.Request) bool { return false })
	for name, left := range map[string]string{"results.jsonl": "", "results.csv": transfer.OutcomeColumns[:9], "results2.csv": transfer.OutcomeColumns} {
		file := tempFile(t, "links.csv", "url\nhttps://example.com/\n")
		results := filepath.Join(filepath.Dir(file), name)
		if err := os.WriteFile(results, []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"import", "--results=" + results, file}
		if code, _, said := curt(t.Context(), append(args, "--resume")...); code != cli.ExitFailed || !strings.Contains(said, "run without --resume to start") {
			t.Errorf("%s: exit %d: %s", name, code, said)
		}
		if code, _, said := curt(t.Context(), args...); code != cli.ExitDone {
			t.Errorf("%s: exit %d: %s", name, code, said)
		}
		whole, err := os.ReadFile(results)
		if err != nil || strings.Count(string(whole), transfer.OutcomeColumns) > 1 {
			t.Errorf("%v: %s", err, whole)
		}
		code, _, said := curt(t.Context(), args...)
		if again, err := os.ReadFile(results); code != cli.ExitFailed || !strings.Contains(said, "delete it") || string(again) != string(whole) || err != nil {
			t.Errorf("%s: exit %d: %s", name, code, said)
		}
	}
}

// A dry run fails the rows that every server would, for its reasons.
func TestDryRunSaysWhatAServerWould(t *testing.T) {
	whole := `{"id":"019d0000-0000-7000-8000-000000000001","short_code":"moved-1","long_url":"https://example.com/","workspace_id":"w","status":"active","safety":"clean","redirect_status":302,"created_at":"2020-01-02T03:04:05Z","updated_at":"2020-01-02T03:04:05Z","expires_at":"2021-01-01T00:00:00Z","version":1}`
	rows := map[string]string{
		whole: "expires_at: must be in the future",
		`{"long_url":"https://example.com/","title":"a\u0007b"}`:                             "title: ",
		`{"long_url":"https://example.com/","redirect_status":303}`:                          "redirect_status: ",
		`{"long_url":"https://example.com/","tags":["a","a"]}`:                               "tags: ",
		`{"long_url":"https://example.com/","fallback_url":"javascript:x"}`:                  "fallback_url: ",
		`{"long_url":"https://example.com/","max_clicks":18446744073709551615}`:              "max_clicks: ",
		`{"long_url":"https://example.com/","short_code":"api"}`:                             "short_code: ",
		`{"short_code":"no-url"}`:                                                            "long_url: ",
		`{"long_url":"https://example.com/","max_clicks":1,"cacheable":true}`:                "cacheable: ",
		`{"long_url":"https://example.com/","expires_at":"2999-01-01T00:00:00Z"}`:            "",
		`{"long_url":"https://example.com/","redirect_status":301,"noindex":false}`:          "",
		`{"long_url":"https://example.com/","short_code":"fine","title":"T","max_clicks":1}`: "",
	}
	for row, want := range rows {
		code, _, said := curt(t.Context(), "import", "--dry-run", tempFile(t, "rows.jsonl", row+"\n"))
		if (code == cli.ExitDone) != (want == "") || !strings.Contains(said, want) {
			t.Errorf("%s: exit %d, want %q: %s", row, code, want, said)
		}
	}
	if code, _, said := curt(t.Context(), "import", "--dry-run", "--data="+t.TempDir(), tempFile(t, "rows.jsonl", whole+"\n")); code != cli.ExitDone {
		t.Errorf("a folder takes an expired link: exit %d, %s", code, said)
	}
}

// What a file says of noindex is asked for, true or false; what it does not say is the server's choice.
func TestImportAsksForNoIndexAsTheFileSays(t *testing.T) {
	way(t, func(http.ResponseWriter, *http.Request) bool { return false })
	for name, text := range map[string]string{
		"a.csv":   "code,url,noindex\ncsv-1,https://a.example,false\ncsv-2,https://a.example,true\ncsv-3,https://a.example,\n",
		"a.jsonl": `{"long_url":"https://a.example","short_code":"jsonl-1","noindex":false}` + "\n" + `{"long_url":"https://a.example","short_code":"jsonl-2","noindex":true}` + "\n" + `{"long_url":"https://a.example","short_code":"jsonl-3"}` + "\n",
	} {
		if code, _, said := curt(t.Context(), "import", tempFile(t, name, text)); code != cli.ExitDone {
			t.Fatalf("%s: exit %d: %s", name, code, said)
		}
		for n, want := range map[string]bool{"1": false, "2": true, "3": true} {
			code := strings.TrimPrefix(filepath.Ext(name), ".") + "-" + n
			api, err := client.New(os.Getenv("CURT_SERVER"), client.WithKey(adminKey(t)))
			if err != nil {
				t.Fatal(err)
			}
			if l, err := api.Get(t.Context(), code); err != nil || l.NoIndex != want {
				t.Errorf("%s: noindex is %v, %v, want %v", code, l.NoIndex, err, want)
			}
		}
	}
}

func adminKey(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("CURT_API_KEY_FILE"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
