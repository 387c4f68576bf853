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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt.example/client"
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

// bulkCall is what a server was asked.
type bulkCall struct {
	key   string
	links []client.NewLink
}

// importServer notes the calls; answer says what becomes of the n-th: 201 for all of its
// rows, another status for all, or 0 for a broken connection.
func importServer(t *testing.T, answer func(n int) int) (base string, calls func() []bulkCall) {
	t.Helper()
	var all []bulkCall
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Links []client.NewLink }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		status := answer(len(all))
		all = append(all, bulkCall{r.Header.Get("Idempotency-Key"), body.Links})
		switch status {
		case 0:
			panic(http.ErrAbortHandler)
		case http.StatusCreated:
			results := make([]any, len(body.Links))
			for i := range results {
				results[i] = map[string]any{"status": status, "link": client.Link{ShortCode: "x"}}
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
		default:
			w.WriteHeader(status)
			_, _ = io.WriteString(w, fmt.Sprintf(`{"status":%d,"title":"no"}`, status))
		}
	}))
	s.Config.SetKeepAlivesEnabled(false) // on a connection in use, net/http itself would send a call with a key again
	t.Cleanup(s.Close)
	return s.URL, func() []bulkCall { return all }
}

const fiveRows = "code,url\n,https://example.com/\n,https://example.com/\na,https://example.com/a\nb,https://example.com/b\n,https://example.com/c\n"

// A run ends while its request is under way: the run after it sends that request again as
// it was, also where a limit had cut the rows.
func TestResumedImportSendsItsRequestAgain(t *testing.T) {
	file := tempFile(t, "links.csv", fiveRows)
	base, calls := importServer(t, func(n int) int {
		return []int{http.StatusTooManyRequests, http.StatusCreated, 0, http.StatusCreated}[n]
	})
	if code, _, said := curt(t.Context(), "import", "--server="+base, file); code != exitUnavailable {
		t.Fatalf("exit %d: %s", code, said)
	}
	if code, _, said := curt(t.Context(), "import", "--resume", "--server="+base, file); code != exitDone || !strings.Contains(said, "5 made, 0 failed") {
		t.Errorf("exit %d: %s", code, said)
	}
	all := calls()
	keys := map[string]bool{}
	for i, rows := range []int{5, 2, 3, 3} {
		if len(all[i].links) != rows || all[i].key == "" {
			t.Errorf("call %d has %d rows and the key %q", i, len(all[i].links), all[i].key)
		}
		keys[all[i].key] = true
	}
	if d := cmp.Diff(all[2], all[3], cmp.AllowUnexported(bulkCall{})); d != "" || len(keys) != 3 {
		t.Errorf("%d keys; the resumed run sent something else:\n%s", len(keys), d)
	}
}

// Nobody knows a key after a day: then links that stand in are taken.
func TestImportThatIsResumedLateTakesWhatIsThere(t *testing.T) {
	file := tempFile(t, "links.csv", fiveRows)
	base, calls := importServer(t, func(n int) int { return []int{0, http.StatusCreated}[n] })
	if code, _, said := curt(t.Context(), "import", "--server="+base, file); code != exitUnavailable {
		t.Fatalf("exit %d: %s", code, said)
	}
	var state importState
	name := file + ".results.jsonl.state"
	if err := loadState(name, &state); err != nil {
		t.Fatal(err)
	}
	state.SentAt = state.SentAt.Add(-24 * time.Hour)
	if err := saveState(name, &state); err != nil {
		t.Fatal(err)
	}
	if code, _, said := curt(t.Context(), "import", "--resume", "--server="+base, file); code != exitDone {
		t.Errorf("exit %d: %s", code, said)
	}
	late := calls()[1]
	if late.key != "" || len(late.links) != 5 {
		t.Errorf("%+v", late)
	}
	for _, l := range late.links {
		if l.Dedupe == nil || !*l.Dedupe {
			t.Errorf("%+v", l)
		}
	}
}

// Who goes on with other options would make other links: the server refuses that.
func TestResumeWithOtherOptionsIsRefused(t *testing.T) {
	file := tempFile(t, "links.csv", fiveRows)
	base, _ := importServer(t, func(n int) int { return []int{0, http.StatusUnprocessableEntity}[n] })
	if code, _, said := curt(t.Context(), "import", "--server="+base, file); code != exitUnavailable {
		t.Fatalf("exit %d: %s", code, said)
	}
	if code, _, said := curt(t.Context(), "import", "--resume", "--tag=x", "--server="+base, file); code == exitDone || !strings.Contains(said, "--map, --domain and --tag") {
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
