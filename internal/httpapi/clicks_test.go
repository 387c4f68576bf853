package httpapi_test

import (
	"encoding/csv"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/history"
	"curt/internal/link"
)

func seen() clicks.Click {
	return clicks.Click{
		Time: noon().Add(7 * time.Millisecond), Outcome: clicks.Redirected, Country: "DE", City: "Köln", Network: "=cmd|' /C calc'!A0",
		Device: "desktop", Browser: "Firefox", OS: "Linux", Language: "de", ReferrerHost: "news.example", Trigger: clicks.TriggerLink,
		UTM: [5]string{"@SUM(1)", "+1", "-1", "a,\"b\"", "plain"}, Visitor: 7,
	}
}

func robot() clicks.Click {
	return clicks.Click{
		Time: noon(), Outcome: clicks.Refused, Preview: true, Bot: true, BotReason: clicks.BotNamed, BotName: "Googlebot", Device: "bot",
		Browser: clicks.Other, OS: clicks.Other, ReferrerHost: clicks.Direct, Trigger: clicks.TriggerQR,
	}
}

func TestClicksAsTheAPIShowsThem(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"other"}`)
	s.past.page.Clicks = []clicks.Click{seen(), robot()}
	got := s.do(t, "admin", http.MethodGet, collection+"/abc/clicks", "").want(t, http.StatusOK).json(t)
	list, _ := got["clicks"].([]any)
	first, _ := list[0].(map[string]any)
	name, _ := first["visitor"].(string)
	delete(first, "visitor")
	want := map[string]any{
		"time": "2026-06-01T12:00:00.007Z", "outcome": "redirected", "preview": false, "bot": false, "bot_reason": nil, "bot_name": nil,
		"country": "DE", "city": "Köln", "network": "=cmd|' /C calc'!A0", "device": "desktop", "browser": "Firefox", "os": "Linux",
		"language": "de", "referrer_host": "news.example", "trigger": "link", "utm_source": "@SUM(1)", "utm_medium": "+1",
		"utm_campaign": "-1", "utm_term": "a,\"b\"", "utm_content": "plain",
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("a click (-want +got):\n%s", diff)
	}
	second, _ := list[1].(map[string]any)
	if second["time"] != "2026-06-01T12:00:00.000Z" {
		t.Errorf("time %v is not spelled as in a file", second["time"])
	}
	if second["bot_reason"] != "named" || second["bot_name"] != "Googlebot" || second["visitor"] != nil || second["country"] != nil {
		t.Errorf("a bot: %v", second)
	}
	if _, more := got["next_cursor"]; more {
		t.Error("the last page has a next_cursor")
	}
	other := s.do(t, "admin", http.MethodGet, collection+"/other/clicks", "").want(t, http.StatusOK)
	if len(name) != 16 || strings.Contains(string(other.body), name) {
		t.Errorf("the visitor is %q on one link, on the other:\n%s", name, other.body)
	}
}

func TestSingleClicksOfAKind(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	s.do(t, "admin", http.MethodGet, collection+"/abc/clicks?country=DE&utm_campaign=a,%22b%22&bot=false", "").want(t, http.StatusOK)
	for _, c := range []struct {
		click clicks.Click
		want  bool
	}{{seen(), false}, {robot(), false}, {clicks.Click{Country: "DE", UTM: [5]string{2: `a,"b"`}}, true}} {
		if keep := s.past.asked.Filter; keep == nil || keep(&c.click) != c.want {
			t.Errorf("%+v is kept: %t, want %t", c.click, !c.want, c.want)
		}
	}
	s.do(t, "admin", http.MethodGet, collection+"/abc/clicks", "").want(t, http.StatusOK)
	if s.past.asked.Filter != nil {
		t.Error("without a filter clicks are chosen")
	}
}

func TestADamagedLogIsTold(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	s.past.page = history.Page{Clicks: []clicks.Click{seen()}, Damaged: true}
	if got := s.do(t, "admin", http.MethodGet, collection+"/abc/clicks", "").want(t, http.StatusOK).json(t); got["damaged"] != true {
		t.Errorf("JSON does not say so: %v", got)
	}
	if got := s.do(t, "admin", http.MethodGet, collection+"/abc/clicks?format=csv", "").want(t, http.StatusOK); got.Header.Get("Curt-Clicks-Damaged") != "true" {
		t.Errorf("CSV does not say so: %v", got.Header)
	}
	s.past.page.Damaged = false
	if got := s.do(t, "admin", http.MethodGet, collection+"/abc/clicks", "").want(t, http.StatusOK).json(t); got["damaged"] != nil {
		t.Errorf("a whole log: %v", got)
	}
}

// A stranger writes what comes before a formula, too: tabs, which are left out, and separators,
// behind which spreadsheets find a cell.
func TestNoCellOfAFileIsRun(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"a-_9"}`)
	c := seen()
	c.UTM = [5]string{"=1", "\t=1", "x;=1", "＠1", "x; =1"}
	s.past.page = history.Page{Clicks: []clicks.Click{c}}
	got := s.do(t, "admin", http.MethodGet, collection+"/a-_9/clicks?format=csv", "").want(t, http.StatusOK)
	rows, err := csv.NewReader(strings.NewReader(string(got.body))).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if diff := cmp.Diff([]string{"'=1", "'=1", "x;'=1", "'＠1", "x;' =1"}, rows[1][15:20]); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

func TestClicksAsAFile(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"a-_9"}`)
	s.past.page = history.Page{Clicks: []clicks.Click{seen(), robot()}, More: true}
	got := s.do(t, "admin", http.MethodGet, collection+"/a-_9/clicks?format=csv", "").want(t, http.StatusOK)
	if h := got.Header; h.Get("Content-Type") != "text/csv; charset=utf-8; header=present" || h.Get("Curt-Next-Cursor") == "" ||
		h.Get("Content-Disposition") != `attachment; filename="clicks-a-_9.csv"` || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", h)
	}
	if n := strings.Count(string(got.body), "\r\n"); n != 3 || strings.Count(string(got.body), "\n") != 3 {
		t.Errorf("%d lines:\n%s", n, got.body)
	}
	rows, err := csv.NewReader(strings.NewReader(string(got.body))).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	want := []string{
		"2026-06-01T12:00:00.007Z", "redirected", "false", "false", "", "", "DE", "Köln", "'=cmd|' /C calc'!A0", "desktop", "Firefox", "Linux",
		"de", "news.example", "link", "'@SUM(1)", "'+1", "'-1", "a,\"b\"", "plain", rows[1][20],
	}
	if diff := cmp.Diff(want, rows[1]); diff != "" || len(rows[0]) != len(want) || rows[0][0] != "time" {
		t.Errorf("names %v, first row (-want +got):\n%s", rows[0], diff)
	}
	for accept, isCSV := range map[string]bool{
		"text/csv": true, "TEXT/CSV; q=0.5": true, "text/csv, */*;q=0.1": true, "application/json;q=0.5, text/csv": true,
		"": false, "*/*": false, "application/json": false, "text/csv;q=0.1, application/json": false, "text/csv;q=0": false, "text/csv;q=x": false,
	} {
		a := s.do(t, "admin", http.MethodGet, collection+"/a-_9/clicks", "", "Accept: "+accept).want(t, http.StatusOK)
		if (a.Header.Get("Content-Disposition") != "") != isCSV {
			t.Errorf("%q: %s", accept, a.Header.Get("Content-Type"))
		}
	}
	s.do(t, "admin", http.MethodGet, collection+"/a-_9/clicks?format=json", "", "Accept: text/csv").want(t, http.StatusOK).json(t)
}

func TestPagesOfClicksGoOn(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"other"}`)
	at := history.Cursor{Position: clicklog.Position{Segment: 1_800_000_000_000, Offset: 77}, Record: 3}
	s.past.page = history.Page{More: true, Next: at}
	const query = "?from=2026-05-01T00:00Z&to=2026-06-01T00:00Z&limit=7"
	got := s.do(t, "admin", http.MethodGet, collection+"/abc/clicks"+query, "").want(t, http.StatusOK).json(t)
	cursor, _ := got["next_cursor"].(string)
	s.do(t, "admin", http.MethodGet, collection+"/abc/clicks"+query+"&cursor="+cursor, "").want(t, http.StatusOK)
	want := history.Query{
		Key: link.Key{Code: "abc"}, From: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		Limit: 7, Before: at,
	}
	if diff := cmp.Diff(want, s.past.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	calls := s.past.calls
	for _, path := range []string{
		"/other/clicks" + query + "&cursor=" + cursor, "/abc/clicks?cursor=" + cursor,
		"/abc/clicks?from=2026-05-01T00:00Z&to=2026-06-02T00:00Z&cursor=" + cursor,
		"/abc/clicks" + query + "&cursor=" + cursor[:len(cursor)-1], "/abc/clicks" + query + "&cursor=" + cursor + "A",
		"/abc/clicks" + query + "&cursor=A" + cursor[1:], "/abc/clicks" + query + "&cursor=" + cursor[:24] + "%0A" + cursor[24:],
	} {
		if p := s.do(t, "admin", http.MethodGet, collection+path, "").want(t, http.StatusBadRequest).problem(t); p["field"] != "cursor" {
			t.Errorf("%s: %v", path, p)
		}
	}
	if s.past.calls != calls {
		t.Error("a forged cursor reached the click log")
	}
}

func TestClicksOfOthersAreNotShown(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	for caller, want := range map[string]int{"": 401, "acme": 404, "reader": 403, "none": 403, "admin": 200} {
		s.do(t, caller, http.MethodGet, collection+"/abc/clicks", "").want(t, want)
	}
	if s.past.calls != 1 {
		t.Errorf("the click log was asked %d times", s.past.calls)
	}
	s.past.err = errors.New("the disk is away")
	s.do(t, "admin", http.MethodGet, collection+"/abc/clicks", "").want(t, http.StatusServiceUnavailable).problem(t)
}

// badClicks are requests for raw clicks that must be refused.
func badClicks() (all []hostile) {
	bad := func(name, query, field string) {
		all = append(all, hostile{name: "clicks: " + name, method: "GET", path: collection + "/victim/clicks?" + query, want: 400, field: field})
	}
	bad("limit of nothing", "limit=0", "limit")
	bad("limit of too many", "limit=1001", "limit")
	bad("limit of ages", "limit=1e9", "limit")
	bad("format of spreadsheets", "format=xlsx", "format")
	bad("format in another case", "format=CSV", "format")
	bad("format with a line end", "format=csv%0d%0aX-Evil:1", "format")
	bad("from after to", "from=2026-06-02T00:00Z&to=2026-06-01T00:00Z", "from")
	bad("from is to", "from=2026-06-01T00:00Z&to=2026-06-01T00:00Z", "from")
	bad("from no date", "from=yesterday", "from")
	bad("to beyond what is counted", "to=9999-12-31T23:59Z", "to")
	bad("cursor of noise", "cursor=%00%ff", "cursor")
	bad("cursor of zeros", "cursor="+strings.Repeat("A", 48), "cursor")
	bad("huge cursor", "cursor="+strings.Repeat("A", 5000), "cursor")
	bad("unknown parameter", "offset=5", "offset")
	all = append(all, hostile{name: "clicks of nothing", method: "GET", path: collection + "/nothing/clicks", want: 404},
		hostile{name: "clicks cannot be made", path: collection + "/victim/clicks", body: "{}", want: 405})
	return all
}

// FuzzClicks: no question is a failure, and no cursor that was not signed reaches
// the log.
func FuzzClicks(f *testing.F) {
	for _, h := range badClicks() {
		_, query, _ := strings.Cut(h.path, "?")
		values, err := url.ParseQuery(query)
		if err == nil {
			f.Add(values.Get("cursor"), values.Get("from"), values.Get("format"), "text/csv")
		}
	}
	f.Add("", "2026-06-01T00:00Z", "csv", "text/csv;q=0.1,*/*")
	s := newService(f)
	s.create(f, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	f.Fuzz(func(t *testing.T, cursor, from, format, accept string) {
		q := url.Values{"cursor": {cursor}, "from": {from}, "format": {format}}
		for name := range q {
			if q.Get(name) == "" {
				q.Del(name)
			}
		}
		got := s.do(t, "admin", http.MethodGet, collection+"/abc/clicks?"+q.Encode(), "", "Accept: "+accept)
		if got.StatusCode != http.StatusOK && got.StatusCode != http.StatusBadRequest {
			t.Errorf("%d for %v: %s", got.StatusCode, q, got.body)
		}
		if s.past.asked.Before != (history.Cursor{}) {
			t.Errorf("the log was asked to go on at %v", s.past.asked.Before)
		}
	})
}

// FuzzStatistics: no zone and no list of dimensions is a failure.
func FuzzStatistics(f *testing.F) {
	for _, h := range badStatistics() {
		_, query, _ := strings.Cut(h.path, "?")
		values, err := url.ParseQuery(query)
		if err == nil {
			f.Add(values.Get("tz"), values.Get("dimensions"), values.Get("top"))
		}
	}
	s := newService(f)
	s.create(f, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	f.Fuzz(func(t *testing.T, zone, dimensions, top string) {
		q := url.Values{"tz": {zone}, "dimensions": {dimensions}, "top": {top}}
		for name := range q {
			if q.Get(name) == "" {
				q.Del(name)
			}
		}
		got := s.do(t, "admin", http.MethodGet, collection+"/abc/stats?"+q.Encode(), "")
		if got.StatusCode != http.StatusOK && got.StatusCode != http.StatusBadRequest {
			t.Errorf("%d for %v: %s", got.StatusCode, q, got.body)
		}
	})
}
