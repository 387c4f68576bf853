package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt/internal/link"
)

const bulk = collection + "/bulk"

// outcome is a row of an answer, as "201 code" or "409 field-or-type".
func outcomes(t *testing.T, a answer) []string {
	t.Helper()
	var body struct {
		Results []struct {
			Status int
			Link   *struct {
				ShortCode string `json:"short_code"`
			}
			Problem *struct {
				Type, Field, Detail string
				Status              int
			}
		}
	}
	if err := json.Unmarshal(a.body, &body); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	all := []string{}
	for _, r := range body.Results {
		switch {
		case r.Link != nil && r.Problem == nil && r.Status < 300:
			all = append(all, fmt.Sprint(r.Status, " ", r.Link.ShortCode))
		case r.Problem != nil && r.Link == nil && r.Problem.Status == r.Status && r.Problem.Detail != "":
			all = append(all, fmt.Sprint(r.Status, " ", strings.TrimPrefix(r.Problem.Type, "/problems/"), " ", r.Problem.Field))
		default:
			t.Errorf("a result that is neither: %+v", r)
		}
	}
	return all
}

func TestBulkAnswersEachLinkByItself(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"http://example.com/there","custom_alias":"there"}`)
	const rows = `
		{"long_url":"http://example.com/1"},
		{"long_url":"javascript:1"},
		{"long_url":"http://example.com/2","custom_alias":"mine"},
		{"long_url":"http://example.com/3","custom_alias":"mine"},
		{"long_url":"http://example.com/3","custom_alias":"there"},
		{"long_url":"http://example.com/3","custom_alias":"Admin"},
		{"long_url":"http://example.com/1","dedupe":true},
		{"long_url":"http://example.com/there","custom_alias":"there","dedupe":true},
		{"long_url":"http://example.com/5","dedupe":true},
		{"long_url":"http://example.com/5","dedupe":true},
		null, 1, [], "x", {},
		{"long_url":"http://example.com/6","surprise":1},
		{"long_url":"http://example.com/6","long_url":"http://example.com/7"},
		` + "{\"long_url\":\"http://example.com/\xff\"}" + `,
		{"long_url":"http://example.com/8","expires_in":1.5},
		{"long_url":"http://example.com/9","expires_in":6e1}`
	got := outcomes(t, s.do(t, "acme", http.MethodPost, bulk, `{"links":[`+rows+`]}`).want(t, http.StatusMultiStatus))
	want := []string{
		"201 c000001", "400 invalid-request long_url", "201 mine", "409 slug-taken ", "409 slug-taken ", "409 slug-reserved ",
		"200 c000001", "200 there", "201 c000003", "200 c000003",
		"400 invalid-request ", "400 invalid-request ", "400 invalid-request ", "400 invalid-request ", "400 invalid-request long_url",
		"400 invalid-request surprise", "400 invalid-request long_url", "400 invalid-request long_url", "400 invalid-request expires_in",
		"201 c000005",
	}
	if len(got) != len(want) {
		t.Fatalf("%d results, want %d: %v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("result %d: %s, want %s", i, got[i], want[i])
		}
	}
	if n := s.stored(t); n != 5 {
		t.Errorf("%d links are stored", n)
	}
	if got := outcomes(t, s.do(t, "acme", http.MethodPost, bulk, `{"links":[]}`).want(t, http.StatusMultiStatus)); len(got) != 0 {
		t.Errorf("nothing was answered %v", got)
	}
}

// A thousand links come back in order, and are listed in it: newest first.
func TestBulkKeepsTheOrder(t *testing.T) {
	s := newService(t)
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `,{"long_url":"http://example.com/%d","custom_alias":"row-%04d"}`, i, i)
	}
	began := time.Now()
	got := outcomes(t, s.do(t, "acme", http.MethodPost, bulk, `{"links":[`+b.String()[1:]+`]}`).want(t, http.StatusMultiStatus))
	t.Logf("1,000 links in %s", time.Since(began))
	for i := range 1000 {
		if want := fmt.Sprintf("201 row-%04d", i); got[i] != want {
			t.Fatalf("result %d: %s, want %s", i, got[i], want)
		}
	}
	slice, err := s.store.List(t.Context(), link.Filter{}, link.Page{Limit: 1000})
	if err != nil || len(slice.Links) != 1000 {
		t.Fatalf("%d links, %v", len(slice.Links), err)
	}
	for i, l := range slice.Links {
		if want := fmt.Sprintf("row-%04d", 999-i); string(l.Key.Code) != want {
			t.Fatalf("place %d of the list holds %s, want %s", i, l.Key.Code, want)
		}
	}
}

// badBulks are bodies of which nothing may be stored.
func badBulks() map[string]int {
	const row = `{"long_url":"http://example.com/"}`
	return map[string]int{
		` `: 400, `null`: 400, `[]`: 400, `1`: 400, `"links"`: 400, `{}`: 400, `{"links":null}`: 400, `{"links":{}}`: 400,
		`{"links":"` + row + `"}`: 400, `{"Links":[` + row + `]}`: 400, `{"links":[` + row + `],"x":1}`: 400, `{"x":1,"links":[` + row + `]}`: 400,
		`{"links":[` + row + `],"links":[` + row + `]}`: 400, `{"links":[` + row + `],"links":[]}`: 400,
		`{"links":[` + row + `]`: 400, `{"links":[` + row: 400, `{"links":[` + row + `,`: 400, `{"links":[` + row + `,]}`: 400,
		`{"links":[` + row + `]}}`: 400, `{"links":[` + row + `]}{}`: 400, `{"links":[` + row + `]} x`: 400, `{"links":[` + row + "]}\x00": 400,
		`{"links":[` + row + ` ` + row + `]}`: 400, `{"links":[` + row + `,{"long_url":}]}`: 400, `{"links":[` + row + `,{"long_url"]}`: 400,
		`{"links":[` + row + `,'x']}`: 400, `{"links":[` + row + `/**/]}`: 400, `{links:[` + row + `]}`: 400,
		`{"links":[` + row + `,` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `]}`: 400,
		`{"links":` + strings.Repeat("[", 20_000):                                                   400,
		`{"links":[` + strings.Repeat(row+",", 1000) + row + `]}`:                                   400,
		`{"links":[` + strings.Repeat("0,", 1000) + `0]}`:                                           400,
		`{"links":[` + row + `,"` + strings.Repeat("x", 16<<20) + `"]}`:                             413,
		"\xef\xbb\xbf" + `{"links":[` + row + `]}`:                                                  400,
		"{\"links\xff\":[" + row + "]}":                                                             400,
	}
}

func TestBulkStoresNothingOfWhatIsNoList(t *testing.T) {
	s := newService(t)
	for body, want := range badBulks() {
		got := s.do(t, "admin", http.MethodPost, bulk, body)
		if got.StatusCode != want {
			t.Errorf("%.60q: %d %s, want %d", body, got.StatusCode, got.body, want)
		}
		got.problem(t)
	}
	for _, header := range []string{"Content-Type: text/plain", "Content-Encoding: gzip", "Idempotency-Key: a b"} {
		got := s.do(t, "admin", http.MethodPost, bulk, `{"links":[{"long_url":"http://example.com"}]}`, header)
		if want := map[bool]int{true: 400, false: 415}[strings.HasPrefix(header, "I")]; got.StatusCode != want {
			t.Errorf("%s: %d %s", header, got.StatusCode, got.body)
		}
	}
	if n := s.stored(t); n != 0 {
		t.Errorf("%d links were stored", n)
	}
	s.do(t, "", http.MethodPost, bulk, `{"links":[]}`).want(t, http.StatusUnauthorized)
	s.do(t, "admin", http.MethodGet, bulk, "").want(t, http.StatusNotFound)
	s.do(t, "admin", http.MethodPut, bulk, "{}").want(t, http.StatusMethodNotAllowed)
}

// A list that is sent again under its key makes nothing twice and is answered row by row
// as before; links that changed are shown as they stand.
func TestBulkUnderAKey(t *testing.T) {
	s := newService(t)
	const body = `{"links":[{"long_url":"http://example.com/1","max_clicks":3},{"long_url":"javascript:1"},{"long_url":"http://example.com/2","custom_alias":"mine"},{}]}`
	send := func(key, body string, want int) answer {
		t.Helper()
		return s.do(t, "acme", http.MethodPost, bulk, body, "Idempotency-Key: "+key).want(t, want)
	}
	first := send(`"k 1"`, body, http.StatusMultiStatus)
	if got := outcomes(t, first); strings.Join(got, ",") != "201 c000001,400 invalid-request long_url,201 mine,400 invalid-request long_url" {
		t.Fatalf("%v", got)
	}
	if again := send(`"k 1"`, strings.ReplaceAll(body, ",", " , "), http.StatusMultiStatus); string(again.body) != string(first.body) {
		t.Errorf("the replay differs:\n%s\n%s", first.body, again.body)
	}
	if p := send(`"k 1"`, `{"links":[{"long_url":"http://example.com/1"}]}`, http.StatusUnprocessableEntity).problem(t); p["type"] != "/problems/idempotency-key-reused" {
		t.Errorf("another list: %v", p)
	}
	s.do(t, "acme", http.MethodPatch, collection+"/mine", `{"title":"new"}`).want(t, http.StatusOK)
	s.do(t, "acme", http.MethodDelete, collection+"/c000001", "").want(t, http.StatusNoContent)
	changed := send(`"k 1"`, body, http.StatusMultiStatus)
	if got := outcomes(t, changed); got[0] != "409 link-deleted " || got[2] != "201 mine" || !strings.Contains(string(changed.body), `"title":"new"`) {
		t.Errorf("%v: %s", got, changed.body)
	}
	if n := s.stored(t); n != 1 {
		t.Errorf("%d links are stored", n)
	}
}

// A link that is too large for a create is too large for its row, and for nobody else.
func TestBulkBoundsEachLink(t *testing.T) {
	s := newService(t)
	const row = `{"long_url":"http://example.com/"}`
	got := outcomes(t, s.do(t, "admin", http.MethodPost, bulk, `{"links":[`+row+`,{"title":"`+strings.Repeat("x", 65<<10)+`"},`+row+`]}`).want(t, 207))
	if len(got) != 3 || got[0] != "201 c000001" || got[1] != "413 body-too-large " || got[2] != "201 c000002" {
		t.Errorf("got %v", got)
	}
}

// FuzzBulk: whatever the body, the answer is 207 with results below 500, or a 4xx problem.
func FuzzBulk(f *testing.F) {
	for body := range badBulks() {
		if len(body) < 1000 {
			f.Add(body)
		}
	}
	f.Add(`{"links":[{"long_url":"http://example.com/","dedupe":true},{"long_url":"http://example.com/","custom_alias":"abc"},null]}`)
	s := newService(f)
	f.Fuzz(func(t *testing.T, body string) {
		got := s.do(t, "admin", http.MethodPost, bulk, body, "Content-Type: application/json")
		if got.StatusCode != http.StatusMultiStatus {
			if got.StatusCode < 400 || got.StatusCode > 499 {
				t.Errorf("%d for %q: %s", got.StatusCode, body, got.body)
			}
			got.problem(t)
			return
		}
		for _, o := range outcomes(t, got) {
			if o[0] != '2' && o[0] != '4' {
				t.Errorf("%s for %q", o, body)
			}
		}
	})
}
