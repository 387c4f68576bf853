package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"curt/client"
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

// A run was killed while its request was under way: the run after it counts the links
// that come of that request as made, and those of somebody else as failed.
func TestResumedImportKnowsItsOwnLinks(t *testing.T) {
	file := tempFile(t, "links.csv", "code,url\nours,https://example.com/ours\nlater,https://example.com/later\nother,https://example.com/other\nolder,https://example.com/older\n")
	var killed atomic.Bool
	killed.Store(true)
	looked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if killed.Load() {
			panic(http.ErrAbortHandler)
		}
		if r.Method == http.MethodPost {
			var results []any
			for range 4 {
				results = append(results, map[string]any{"status": 409, "problem": map[string]any{"status": 409, "title": "taken"}})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
			return
		}
		code := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		l := client.Link{ShortCode: code, LongURL: "https://example.com/" + code, CreatedAt: time.Now()}
		switch code {
		case "later":
			if looked++; looked < 3 {
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, `{"status":404,"title":"Not found"}`)
				return
			}
		case "other":
			l.LongURL = "https://example.com/another"
		case "older":
			l.CreatedAt = time.Now().Add(-time.Hour)
		}
		_ = json.NewEncoder(w).Encode(l)
	}))
	t.Cleanup(s.Close)
	if code, _, said := curt(t.Context(), "import", "--server="+s.URL, file); code != exitUnavailable {
		t.Fatalf("exit %d: %s", code, said)
	}
	killed.Store(false)
	code, _, said := curt(t.Context(), "import", "--resume", "--server="+s.URL, file)
	if code != exitFailed || !strings.Contains(said, "2 made, 2 failed") || !strings.Contains(said, "line 4: ") || !strings.Contains(said, "line 5: ") {
		t.Errorf("exit %d: %s", code, said)
	}
}

// What a run left that was killed before its first row keeps nobody from beginning.
func TestImportBeginsOverEmptyResults(t *testing.T) {
	s := bulkServer(t, nil)
	for name, left := range map[string]string{"results.jsonl": "", "results.csv": resultColumns[:9], "results2.csv": resultColumns} {
		file := tempFile(t, "links.csv", "url\nhttps://example.com/\n")
		results := filepath.Join(filepath.Dir(file), name)
		if err := os.WriteFile(results, []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"import", "--server=" + s.URL, "--results=" + results, file}
		if code, _, said := curt(t.Context(), append(args, "--resume")...); code != exitFailed || !strings.Contains(said, "without --resume it begins") {
			t.Errorf("%s: exit %d: %s", name, code, said)
		}
		if code, _, said := curt(t.Context(), args...); code != exitDone {
			t.Errorf("%s: exit %d: %s", name, code, said)
		}
		whole, err := os.ReadFile(results)
		if err != nil || strings.Count(string(whole), resultColumns) > 1 {
			t.Errorf("%v: %s", err, whole)
		}
		code, _, said := curt(t.Context(), args...)
		if again, err := os.ReadFile(results); code != exitFailed || !strings.Contains(said, "delete it") || string(again) != string(whole) || err != nil {
			t.Errorf("%s: exit %d: %s", name, code, said)
		}
	}
}

// A dry run fails the rows that every server would, for its reasons.
func TestDryRunSaysWhatAServerWould(t *testing.T) {
	whole := `{"id":"019d0000-0000-7000-8000-000000000001","short_code":"moved-1","long_url":"https://example.com/","workspace_id":"w","status":"active","safety":"clean","redirect_status":302,"created_at":"2020-01-02T03:04:05Z","updated_at":"2020-01-02T03:04:05Z","expires_at":"2021-01-01T00:00:00Z","version":1}`
	rows := map[string]string{
		whole: "expires_at: must lie in the future",
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
		if (code == exitDone) != (want == "") || !strings.Contains(said, want) {
			t.Errorf("%s: exit %d, want %q: %s", row, code, want, said)
		}
	}
	if code, _, said := curt(t.Context(), "import", "--dry-run", "--data="+t.TempDir(), tempFile(t, "rows.jsonl", whole+"\n")); code != exitDone {
		t.Errorf("a folder takes an expired link: exit %d, %s", code, said)
	}
}

// What a file says of noindex is asked for, true or false; what it does not say is not.
func TestImportAsksForNoIndexAsTheFileSays(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Links []client.NewLink }
		_ = json.NewDecoder(r.Body).Decode(&body)
		var results []any
		for _, l := range body.Links {
			text := "-"
			if l.NoIndex != nil {
				text = fmt.Sprint(*l.NoIndex)
			}
			asked = append(asked, text)
			results = append(results, map[string]any{"status": 201, "link": client.Link{ShortCode: "x"}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
	}))
	t.Cleanup(s.Close)
	for name, text := range map[string]string{
		"a.csv":   "url,noindex\nhttps://a.example,false\nhttps://a.example,true\nhttps://a.example,\n",
		"a.jsonl": `{"long_url":"https://a.example","noindex":false}` + "\n" + `{"long_url":"https://a.example","noindex":true}` + "\n" + `{"long_url":"https://a.example"}` + "\n",
	} {
		asked = nil
		if code, _, said := curt(t.Context(), "import", "--server="+s.URL, tempFile(t, name, text)); code != exitDone || strings.Join(asked, " ") != "false true -" {
			t.Errorf("%s: exit %d, asked %v: %s", name, code, asked, said)
		}
	}
}
