package httpapi_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/job"
	"curt/internal/link"
)

const jobsPath = "/api/v1/jobs"

// job stores a job of a workspace: one that waits for its input, or one that has ended.
func (s service) job(t *testing.T, w link.WorkspaceID, k job.Kind, uploading bool) link.ID {
	t.Helper()
	id, err := link.NewID(noon(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	j := job.Job{ID: id, Kind: k, Workspace: w, CreatedBy: "admin", Options: []byte(`{"format":"csv","tags":["moved"]}`), State: job.Uploading}
	if k == job.Export {
		j.Options, j.State = []byte(`{"format":"jsonl"}`), job.Queued
	}
	if _, err := s.jobs.Create(t.Context(), j); err != nil || uploading {
		return id
	}
	if k == job.Import {
		if _, err := s.jobs.Append(t.Context(), id, 0, []byte("long_url\nhttps://example.com/\nx\n"), true); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.jobs.Claim(t.Context(), "server", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.jobs.Save(t.Context(), job.Claim(&got, "server"), job.Step{
		Progress: job.Progress{Bytes: 32, Rows: 2, Created: 1, Failed: 1, Header: []string{`"long_url" is long_url`}},
		Result:   []byte(`{"line":2,"short_code":"abc","short_url":"https://curt.test/abc"}` + "\n" + `{"line":3,"error":"long_url: =no"}` + "\n"), State: job.Done,
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAnImportIsSentInParts(t *testing.T) {
	s := newService(t)
	created := s.do(t, "acme", http.MethodPost, jobsPath, `{"kind":"import","size":12,"options":{"columns":{"long_url":"Where"},"tags":["a"]}}`).want(t, http.StatusCreated)
	at := created.Header.Get("Location")
	send := func(query, body string, want int) answer {
		t.Helper()
		return s.do(t, "acme", http.MethodPut, at+"/input?"+query, body, "Content-Type: application/octet-stream").want(t, want)
	}
	if j := send("offset=0", "Where\n", http.StatusOK).json(t); j["uploaded"] != 6.0 || j["state"] != "uploading" || j["size"] != 12.0 {
		t.Errorf("%v", j)
	}
	send("offset=0", "Where\n", http.StatusOK)
	if p := send("offset=9", "x", http.StatusConflict).problem(t); p["field"] != "offset" || !strings.Contains(fmt.Sprint(p["detail"]), "offset 6") {
		t.Errorf("%v", p)
	}
	for _, body := range []string{"x", "abcdefg"} {
		if p := send("offset=6&complete=true", body, http.StatusBadRequest).problem(t); p["field"] != "size" || !strings.Contains(fmt.Sprint(p["detail"]), "12") {
			t.Errorf("%v", p)
		}
	}
	s.do(t, "acme", http.MethodGet, at+"/result", "").want(t, http.StatusConflict)
	s.do(t, "acme", http.MethodDelete, at, "").want(t, http.StatusConflict)
	if j := send("offset=6&complete=true", "abcdef", http.StatusOK).json(t); j["state"] != "queued" {
		t.Errorf("%v", j)
	}
	send("offset=12&complete=true", "", http.StatusOK)
	send("offset=12", "more", http.StatusConflict)
	if j := s.do(t, "acme", http.MethodPost, at+"/cancel", "").want(t, http.StatusOK).json(t); j["state"] != "canceled" {
		t.Errorf("%v", j)
	}
	s.do(t, "acme", http.MethodDelete, at, "").want(t, http.StatusNoContent)
	s.do(t, "acme", http.MethodGet, at, "").want(t, http.StatusNotFound)
}

func TestResultsAreDownloadedInPartsAndAsCSV(t *testing.T) {
	s := newService(t)
	at := jobsPath + "/" + s.job(t, "acme", job.Import, false).String() + "/result"
	whole := s.do(t, "acme", http.MethodGet, at, "").want(t, http.StatusOK)
	part := s.do(t, "acme", http.MethodGet, at, "", "Range: bytes=10-").want(t, http.StatusPartialContent)
	if string(part.body) != string(whole.body[10:]) || whole.Header.Get("Content-Type") != "application/jsonl" {
		t.Errorf("%s: %s", whole.Header, part.body)
	}
	for ranges, want := range map[string]int{ // RFC 9110, section 14
		"bytes=1000-": 416, "bytes=-0": 416, "bytes=-00, -0": 416, "bytes=-0,0-4": 206, "bytes=-5": 206, "Bytes=0-4": 206, "bytes=5-4": 416,
		"lines=1-2": 200, "lines": 200, "bytes": 200,
	} {
		got := s.do(t, "acme", http.MethodGet, at, "", "Range: "+ranges).want(t, want)
		if size := map[int]int{200: len(whole.body), 206: 5}[want]; want != 416 && len(got.body) != size {
			t.Errorf("%s: %d bytes, want %d", ranges, len(got.body), size)
		}
		if want == 416 && got.Header.Get("Content-Range") != fmt.Sprintf("bytes */%d", len(whole.body)) && ranges != "bytes=5-4" {
			t.Errorf("%s: Content-Range %q", ranges, got.Header.Get("Content-Range"))
		}
	}
	table := s.do(t, "acme", http.MethodGet, at+"?format=csv", "").want(t, http.StatusOK)
	if want := "line,short_code,short_url,skipped,error\n2,abc,https://curt.test/abc,,\n3,,,,long_url: =no\n"; string(table.body) != want {
		t.Errorf("%s", table.body)
	}
	failed := s.do(t, "acme", http.MethodGet, at+"?failed=true", "", "Range: bytes=10-").want(t, http.StatusOK)
	if want := `{"line":3,"error":"long_url: =no"}` + "\n"; string(failed.body) != want {
		t.Errorf("%s", failed.body)
	}
	table = s.do(t, "acme", http.MethodGet, at+"?failed=true&format=csv", "").want(t, http.StatusOK)
	if want := "line,short_code,short_url,skipped,error\n3,,,,long_url: =no\n"; string(table.body) != want {
		t.Errorf("%s", table.body)
	}
	export := jobsPath + "/" + s.job(t, "acme", job.Export, false).String() + "/result"
	s.do(t, "acme", http.MethodGet, export+"?failed=true", "").want(t, http.StatusBadRequest)
	s.do(t, "acme", http.MethodGet, export+"?format=csv", "").want(t, http.StatusBadRequest)
	s.do(t, "acme", http.MethodGet, export+"?format=jsonl", "").want(t, http.StatusOK)
	s.do(t, "admin", http.MethodGet, export, "").want(t, http.StatusOK)
}

// A key that creates links does not read those of others by an export.
func TestJobsTakeTheRightOfTheirKind(t *testing.T) {
	s := newService(t, func(p *parts) {
		writer := p.callers["acme"]
		writer.Scopes = writer.Scopes[1:2]
		p.callers["writer"] = writer
	})
	export, imported := s.job(t, "acme", job.Export, false).String(), s.job(t, "acme", job.Import, false).String()
	for _, tt := range []struct {
		key, method, path, body string
		want                    int
	}{
		{"writer", http.MethodPost, jobsPath, `{"kind":"export"}`, 403},
		{"reader", http.MethodPost, jobsPath, `{"kind":"import"}`, 403},
		{"writer", http.MethodGet, jobsPath + "/" + export + "/result", "", 403},
		{"writer", http.MethodDelete, jobsPath + "/" + export, "", 403},
		{"reader", http.MethodPost, jobsPath + "/" + imported + "/cancel", "", 403},
		{"reader", http.MethodDelete, jobsPath + "/" + imported, "", 403},
		{"writer", http.MethodGet, jobsPath + "/" + imported + "/result", "", 200},
		{"none", http.MethodGet, jobsPath, "", 403},
	} {
		s.do(t, tt.key, tt.method, tt.path, tt.body).want(t, tt.want)
	}
}

func TestJobsThatCannotBeAreRefused(t *testing.T) {
	s := newService(t)
	for body, field := range map[string]string{
		`{"kind":"sweep"}`: "kind",
		`{}`:               "kind",
		`{"kind":"import","options":{"format":"xml"}}`:                                           "format",
		`{"kind":"export","options":{"format":"auto"}}`:                                          "format",
		`{"kind":"export","options":{"tags":["a"]}}`:                                             "options",
		`{"kind":"export","options":{"q":"!"}}`:                                                  "q",
		`{"kind":"export","options":{"state":"deleted"}}`:                                        "state",
		`{"kind":"export","options":{"domain":"other.example"}}`:                                 "domain",
		`{"kind":"export","options":{"tag":"a\u0000"}}`:                                          "tag",
		`{"kind":"export","input":"019e830c-2e00-7a51-8c3e-5f0b6d2a9c41"}`:                       "input",
		`{"kind":"import","input":"x"}`:                                                          "input",
		`{"kind":"import","options":{"tag":"a"}}`:                                                "options",
		`{"kind":"import","options":{"offset":-1}}`:                                              "offset",
		`{"kind":"import","options":{"offset":1}}`:                                               "offset",
		`{"kind":"import","options":{"name":"a\nb"}}`:                                            "name",
		`{"kind":"import","options":{"name":"` + strings.Repeat("é", 256) + `"}}`:                "name",
		`{"kind":"export","size":5}`:                                                             "size",
		`{"kind":"import","size":-5}`:                                                            "size",
		`{"kind":"import","size":"5"}`:                                                           "size",
		`{"kind":"import","options":{"domain":"other.example"}}`:                                 "domain",
		`{"kind":"import","options":{"columns":{"id":"A"},"format":"jsonl"}}`:                    "columns",
		`{"kind":"import","options":{"columns":{"colour":"A"}}}`:                                 "columns",
		`{"kind":"import","options":{"tags":["a","a"]}}`:                                         "tags",
		`{"kind":"import","options":{"tags":"a"}}`:                                               "options",
		`{"kind":"import","options":{"colour":"red"}}`:                                           "options",
		`{"kind":"import","options":{"columns":{"title":"` + strings.Repeat("a", 20000) + `"}}}`: "",
	} {
		want := http.StatusBadRequest
		if field == "" {
			want = http.StatusRequestEntityTooLarge
		}
		if p := s.do(t, "acme", http.MethodPost, jobsPath, body).want(t, want).problem(t); field != "" && p["field"] != field {
			t.Errorf("%.60s blames %v", body, p["field"])
		}
	}
	named := s.do(t, "acme", http.MethodPost, jobsPath, `{"kind":"import","options":{"name":"`+strings.Repeat("é", 255)+`"}}`).want(t, http.StatusCreated)
	s.do(t, "acme", http.MethodPost, named.Header.Get("Location")+"/cancel", "").want(t, http.StatusOK)
	s.do(t, "acme", http.MethodPost, jobsPath, `{"kind":"import","size":268435457}`).want(t, http.StatusRequestEntityTooLarge)
	for range 5 {
		s.do(t, "acme", http.MethodPost, jobsPath, `{"kind":"import"}`).want(t, http.StatusCreated)
	}
	if a := s.do(t, "acme", http.MethodPost, jobsPath, `{"kind":"import"}`).want(t, http.StatusTooManyRequests); a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	for _, id := range []string{"x", "019e830c-2e00-7a51-8c3e-5f0b6d2a9c41"} {
		s.do(t, "acme", http.MethodGet, jobsPath+"/"+id, "").want(t, http.StatusNotFound)
	}
}

// The import behind a dry run takes its input over, once.
func TestAnImportTakesOverAnInput(t *testing.T) {
	s := newService(t, func(p *parts) {
		p.callers["rival"] = auth.Principal{KeyID: "rival-key", Workspace: "rival", Scopes: p.callers["acme"].Scopes}
	})
	id := s.job(t, "acme", job.Import, false).String()
	body := `{"kind":"import","input":"` + id + `","options":{"name":"links.csv","columns":{"title":"#2"}}}`
	s.do(t, "rival", http.MethodPost, jobsPath, body).want(t, http.StatusNotFound)
	s.do(t, "acme", http.MethodPost, jobsPath, strings.Replace(body, `"options"`, `"size":3,"options"`, 1)).want(t, http.StatusBadRequest)
	j := s.do(t, "acme", http.MethodPost, jobsPath, body).want(t, http.StatusCreated).json(t)
	if j["state"] != "queued" || j["uploaded"] != 32.0 || j["options"].(map[string]any)["name"] != "links.csv" {
		t.Errorf("%v", j)
	}
	s.do(t, "acme", http.MethodPost, jobsPath, body).want(t, http.StatusConflict)
}

// An import continues at the beginning of a line of the input that it takes over, or at its end.
func TestAnOffsetIsOfTheInput(t *testing.T) {
	s := newService(t, func(p *parts) {
		p.callers["rival"] = auth.Principal{KeyID: "rival-key", Workspace: "rival", Scopes: p.callers["acme"].Scopes}
	})
	for offset, want := range map[int]int{-1: 400, 1: 400, 8: 400, 9: 201, 29: 400, 30: 201, 32: 201, 33: 400} {
		body := fmt.Sprintf(`{"kind":"import","input":"%s","options":{"offset":%d}}`, s.job(t, "acme", job.Import, false), offset)
		s.do(t, "rival", http.MethodPost, jobsPath, body).want(t, map[bool]int{false: 404, true: 400}[offset < 0])
		created := s.do(t, "acme", http.MethodPost, jobsPath, body).want(t, want)
		if want == http.StatusBadRequest {
			if p := created.problem(t); p["field"] != "offset" {
				t.Errorf("offset %d: %v", offset, p)
			}
			continue
		}
		s.do(t, "acme", http.MethodPost, jobsPath, body).want(t, http.StatusConflict) // another job has the input
		s.do(t, "acme", http.MethodPost, created.Header.Get("Location")+"/cancel", "").want(t, http.StatusOK)
	}
}

// A job that waits for a limit says until when, although its key is checked earlier.
func TestAJobShowsHowLongItWaits(t *testing.T) {
	s := newService(t)
	id := s.job(t, "acme", job.Export, true)
	got, err := s.jobs.Claim(t.Context(), "server", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	until := got.Updated.Add(3 * time.Hour)
	if _, err := s.jobs.Save(t.Context(), job.Claim(&got, "server"), job.Step{Progress: job.Progress{WaitsUntil: until}, Release: true, Wait: time.Minute}); err != nil {
		t.Fatal(err)
	}
	shown := s.do(t, "acme", http.MethodGet, jobsPath+"/"+id.String(), "").want(t, http.StatusOK).json(t)
	if at, err := time.Parse(time.RFC3339, fmt.Sprint(shown["waiting_until"])); err != nil || at.Sub(until).Abs() > time.Second {
		t.Errorf("waits until %v, want %s: %v", shown["waiting_until"], until, err)
	}
}

func TestExportsChooseLinks(t *testing.T) {
	unfilled := newService(t)
	unfilled.do(t, "acme", http.MethodPost, jobsPath, `{"kind":"export","options":{"q":"word"}}`).want(t, http.StatusServiceUnavailable)
	index := filledIndex(t)
	s := newService(t, func(p *parts) { p.index = index })
	j := s.do(t, "acme", http.MethodPost, jobsPath, `{"kind":"export","options":{"q":"http://example.com/ word","tag":"a","state":"expired"}}`).want(t, http.StatusCreated).json(t)
	if o := j["options"].(map[string]any); o["q"] != "http://example.com/ word" || o["tag"] != "a" || o["state"] != "expired" {
		t.Errorf("%v", o)
	}
}

// badJobs are requests about jobs that are wrong before any job is looked at, or name none.
func badJobs() []hostile {
	const none = jobsPath + "/019e830c-2e00-7a51-8c3e-5f0b6d2a9c41"
	bytes := []string{"Content-Type: application/octet-stream"}
	all := []hostile{
		{name: "input of no job", method: "PUT", path: none + "/input", headers: bytes, body: "x", want: 404},
		{name: "input as text", method: "PUT", path: none + "/input", headers: []string{"Content-Type: text/plain"}, body: "x", want: 415},
		{name: "input without a type", method: "PUT", path: none + "/input", headers: []string{""}, body: "x", want: 415},
		{name: "compressed input", method: "PUT", path: none + "/input", headers: append(bytes, "Content-Encoding: gzip"), body: "x", want: 415},
		{name: "large input", method: "PUT", path: none + "/input", headers: bytes, body: strings.Repeat("x", 1<<20+1), want: 413},
		{name: "complete maybe", method: "PUT", path: none + "/input?complete=maybe", headers: bytes, body: "x", want: 400, field: "complete"},
		{name: "input is not read", method: "GET", path: none + "/input", want: 405},
		{name: "result of no job", method: "GET", path: none + "/result", headers: []string{"Range: bytes=0-"}, want: 404},
		{name: "result in another format", method: "GET", path: none + "/result?format=xml", want: 404},
		{name: "cancel no job", path: none + "/cancel", want: 404},
		{name: "delete no job", method: "DELETE", path: none, want: 404},
		{name: "no id", method: "GET", path: jobsPath + "/%00", want: 404},
		{name: "limit of jobs", method: "GET", path: jobsPath + "?limit=101", want: 400, field: "limit"},
		{name: "cursor of keys", method: "GET", path: jobsPath + "?cursor=AAAAAAAAAAAAAAAAAAAAAAAAAAAA", want: 400, field: "cursor"},
		{name: "kind is a list", path: jobsPath, body: `{"kind":["import"]}`, want: 400, field: "kind"},
		{name: "columns of numbers", path: jobsPath, body: `{"kind":"import","options":{"columns":{"title":5}}}`, want: 400, field: "options"},
	}
	for _, offset := range []string{"-1", "1e3", "01", "268435457", "99999999999999999999", "0x1", "%20"} {
		all = append(all, hostile{name: "offset " + offset, method: "PUT", path: none + "/input?offset=" + offset, headers: bytes, body: "x", want: 400, field: "offset"})
	}
	return all
}

func TestJobsAreListedByWorkspace(t *testing.T) {
	s := newService(t)
	for range 3 {
		s.job(t, "acme", job.Import, false)
	}
	s.job(t, "rival", job.Import, false)
	seen, cursor := map[string]bool{}, ""
	for range 3 {
		target := jobsPath + "?limit=2" + cursor
		var page struct {
			Jobs []struct{ ID string }
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal(s.do(t, "acme", http.MethodGet, target, "").want(t, http.StatusOK).body, &page); err != nil {
			t.Fatal(err)
		}
		for _, j := range page.Jobs {
			seen[j.ID] = true
		}
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
	}
	if len(seen) != 3 {
		t.Errorf("%d jobs", len(seen))
	}
	s.do(t, "acme", http.MethodGet, jobsPath+"?cursor=AAAA", "").want(t, http.StatusBadRequest)
}
