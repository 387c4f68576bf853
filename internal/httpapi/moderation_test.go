package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"curt/internal/link"
)

const (
	bansPath    = "/api/v1/bans"
	journalPath = "/api/v1/journal"
)

func (s service) ban(tb testing.TB, body string) map[string]any {
	tb.Helper()
	return s.do(tb, "admin", http.MethodPost, bansPath, body).want(tb, http.StatusCreated).json(tb)
}

// list returns the records of a page, and its cursor.
func (s service) list(tb testing.TB, target, of string) (records []map[string]any, next string) {
	tb.Helper()
	page := s.do(tb, "admin", http.MethodGet, target, "").want(tb, http.StatusOK).json(tb)
	for _, r := range page[of].([]any) { //nolint:forcetypeassert // a panic fails the test as well
		records = append(records, r.(map[string]any)) //nolint:forcetypeassert // as above
	}
	next, _ = page["next_cursor"].(string)
	return records, next
}

func TestADecisionIsShownWithWhatLedToIt(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"https://evil.example/login","custom_alias":"victim","domain":"go.example"}`)
	const path = collection + "/victim/safety?domain=go.example"
	fresh := s.do(t, "admin", http.MethodGet, path, "").want(t, http.StatusOK).json(t)
	if fresh["safety"] != "clean" || fresh["decision"] != nil || len(fresh["bans"].([]any)) != 0 || len(fresh["history"].([]any)) != 0 {
		t.Errorf("%v", fresh)
	}
	done := s.do(t, "admin", http.MethodPut, path, `{"safety":"warn","reason":"looks odd"}`).want(t, http.StatusOK).json(t)
	own, _ := done["decision"].(map[string]any)
	for name, want := range map[string]any{
		"sequence": 1.0, "at": "2026-06-01T12:00:00Z", "action": "decide", "safety": "warn", "actor": "admin", "reason": "looks odd", "evidence": nil, "erased": false,
	} {
		if own[name] != want {
			t.Errorf("%s is %v, want %v", name, own[name], want)
		}
	}
	s.ban(t, `{"kind":"link","name":"go.example/victim","safety":"legal","reason":"court order"}`)
	got := s.do(t, "admin", http.MethodGet, path, "").want(t, http.StatusOK).json(t)
	if got["safety"] != "legal" || len(got["bans"].([]any)) != 1 || len(got["history"].([]any)) != 2 || got["domain"] != "go.example" {
		t.Errorf("%v", got)
	}
	if l := s.do(t, "acme", http.MethodGet, collection+"/victim?domain=go.example", "").json(t); l["safety"] != "legal" || l["state"] != "legal" || l["version"] != 3.0 {
		t.Errorf("%v", l)
	}
	s.do(t, "admin", http.MethodDelete, bansPath+"/2?reason=appealed", "").want(t, http.StatusNoContent)
	if got := s.do(t, "admin", http.MethodGet, path, "").json(t); got["safety"] != "warn" {
		t.Errorf("%v", got)
	}
	if entries, _ := s.list(t, journalPath+"?limit=1", "entries"); entries[0]["action"] != "lift" || entries[0]["reason"] != "appealed" {
		t.Errorf("%v", entries)
	}
}

func TestBansAreListedFoundAndLifted(t *testing.T) {
	s := newService(t)
	for i := range 5 {
		b := s.ban(t, fmt.Sprintf(`{"kind":"host","name":"Host-%d.EXAMPLE.","reason":"because %d"}`, i, i))
		if b["sequence"] != float64(i+1) || b["name"] != fmt.Sprintf("host-%d.example", i) || b["safety"] != "blocked" || b["banned_by"] != "admin" || b["walk"] == nil {
			t.Errorf("%v", b)
		}
	}
	var names []any
	target := bansPath + "?limit=2"
	for pages := 0; target != "" && pages < 5; pages++ {
		bans, next := s.list(t, target, "bans")
		for _, b := range bans {
			names = append(names, b["name"])
		}
		if target = ""; next != "" {
			target = bansPath + "?limit=2&cursor=" + next
			s.do(t, "admin", http.MethodGet, bansPath+"?entity=host:host-1.example&cursor="+next, "").want(t, http.StatusBadRequest)
			s.do(t, "admin", http.MethodGet, journalPath+"?cursor="+next, "").want(t, http.StatusBadRequest)
		}
	}
	if text := fmt.Sprint(names); text != "[host-4.example host-3.example host-2.example host-1.example host-0.example]" {
		t.Error(text)
	}
	if bans, _ := s.list(t, bansPath+"?entity=host:HOST-3.example", "bans"); len(bans) != 1 || bans[0]["sequence"] != 4.0 {
		t.Errorf("%v", bans)
	}
	s.do(t, "admin", http.MethodDelete, bansPath+"/4", "").want(t, http.StatusNoContent)
	for _, sequence := range []string{"4", "99", "0", "-1", "x", "1e1", "18446744073709551615"} {
		if p := s.do(t, "admin", http.MethodDelete, bansPath+"/"+sequence, "").want(t, http.StatusNotFound).problem(t); p["type"] != "/problems/no-such-entry" {
			t.Errorf("%s: %v", sequence, p)
		}
	}
}

// A journal that was emptied frees no link, unless somebody insists.
func TestARebuildTellsThatTheJournalIsNotAsItWas(t *testing.T) {
	s := newService(t)
	rebuild := journalPath + "/rebuild"
	if p := s.do(t, "admin", http.MethodPost, rebuild, "").want(t, http.StatusConflict).problem(t); p["type"] != "/problems/journal-broken" || !strings.Contains(fmt.Sprint(p["detail"]), "no entry") {
		t.Errorf("%v", p)
	}
	s.do(t, "admin", http.MethodPost, rebuild+"?force=perhaps", "").want(t, http.StatusBadRequest)
	s.do(t, "admin", http.MethodPost, rebuild+"?force=true", "").want(t, http.StatusAccepted)
}

// What a ban means is refused from its answer on, as long as it stands.
func TestABanRefusesCreatesAndChanges(t *testing.T) {
	for body, kind := range map[string]string{
		`{"kind":"domain","name":"evil.example","reason":"x"}`:  "destination-banned",
		`{"kind":"host","name":"a.evil.example","reason":"x"}`:  "destination-banned",
		`{"kind":"workspace","name":"acme","reason":"x"}`:       "banned",
		`{"kind":"key","name":"acme-key","reason":"x"}`:         "banned",
		`{"kind":"network","name":"192.0.2.0/24","reason":"x"}`: "banned",
	} {
		s := newService(t)
		s.create(t, "acme", `{"long_url":"https://good.example/","custom_alias":"victim"}`)
		ban := s.ban(t, body)
		for _, r := range []answer{
			s.do(t, "acme", http.MethodPost, collection, `{"long_url":"https://a.evil.example/"}`),
			s.do(t, "acme", http.MethodPatch, collection+"/victim", `{"long_url":"https://a.evil.example/"}`),
		} {
			if p := r.problem(t); p["type"] != "/problems/"+kind {
				t.Errorf("%s: %v", body, p)
			}
		}
		if s.stored(t) != 1 {
			t.Errorf("%s: a link was stored", body)
		}
		s.do(t, "admin", http.MethodDelete, fmt.Sprintf("%s/%v", bansPath, ban["sequence"]), "").want(t, http.StatusNoContent)
		s.create(t, "acme", `{"long_url":"https://a.evil.example/"}`)
	}
}

func TestAPreviewShowsLinksAndBansNothing(t *testing.T) {
	s := newService(t)
	for i := range 12 {
		s.create(t, "admin", fmt.Sprintf(`{"long_url":"https://a.evil.example/%d"}`, i))
	}
	p := s.do(t, "admin", http.MethodPost, bansPath+"/preview", `{"kind":"domain","name":"evil.example"}`).want(t, http.StatusOK).json(t)
	if p["links"] != 12.0 || p["complete"] != true || len(p["sample"].([]any)) != 10 || !strings.Contains(fmt.Sprint(p["sample"]), "https://a.evil.example/11") {
		t.Errorf("%v", p)
	}
	p = s.do(t, "admin", http.MethodPost, bansPath+"/preview", `{"kind":"network","name":"192.0.2.77/24"}`).want(t, http.StatusOK).json(t)
	if note, _ := p["note"].(string); p["name"] != "192.0.2.0/24" || p["links"] != 0.0 || !strings.Contains(note, "do not store where") {
		t.Errorf("%v", p)
	}
	if entries, _ := s.list(t, journalPath, "entries"); len(entries) != 0 {
		t.Errorf("%v", entries)
	}
}

func TestTheJournalIsWalkedAndErased(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"victim"}`)
	for i := range 5 {
		s.do(t, "admin", http.MethodPut, collection+"/victim/safety", fmt.Sprintf(`{"safety":"warn","reason":"reason %d"}`, i)).want(t, http.StatusOK)
	}
	s.ban(t, `{"kind":"key","name":"acme-key","reason":"reported by Jane Roe"}`)
	for query, want := range map[string]int{
		"": 6, "?entity=link:victim": 5, "?entity=link:curt.test/victim": 5, "?entity=key:acme-key": 1, "?actor=admin": 6, "?actor=policy": 0,
		"?since=2026-06-01T12:00:00Z": 6, "?since=2026-06-01T12:00:00.001Z": 0, "?entity=key:acme-key&actor=admin&since=2026-01-01T00:00:00Z": 1,
	} {
		if entries, _ := s.list(t, journalPath+query, "entries"); len(entries) != want {
			t.Errorf("%q: %d entries, want %d", query, len(entries), want)
		}
	}
	first, next := s.list(t, journalPath+"?limit=4", "entries")
	rest, end := s.list(t, journalPath+"?limit=4&cursor="+url.QueryEscape(next), "entries")
	if len(first) != 4 || len(rest) != 2 || end != "" || rest[1]["sequence"] != 1.0 || rest[1]["reason"] != "reason 0" {
		t.Errorf("%v\n%v", first, rest)
	}
	said := s.do(t, "admin", http.MethodPost, journalPath+"/6/erase", `{"reason":"asked to be forgotten"}`).want(t, http.StatusOK).json(t)
	if said["action"] != "erase" || said["reason"] != "entry 6: asked to be forgotten" {
		t.Errorf("%v", said)
	}
	everything := s.do(t, "admin", http.MethodGet, journalPath, "").body
	bans := s.do(t, "admin", http.MethodGet, bansPath, "").body
	if strings.Contains(string(everything)+string(bans), "Jane Roe") || !strings.Contains(string(everything), `"erased":true`) {
		t.Errorf("%s\n%s", everything, bans)
	}
	for _, sequence := range []string{"8", "0", "x", "-1", "18446744073709551616"} {
		s.do(t, "admin", http.MethodPost, journalPath+"/"+sequence+"/erase", `{"reason":"x"}`).want(t, http.StatusNotFound)
	}
}

// What of moderation is refused, and with which field.
func badModeration() (all []hostile) {
	const safety = collection + "/victim/safety"
	add := func(method, path, field string, bodies ...string) {
		for _, body := range bodies {
			all = append(all, hostile{name: method + " " + path + " " + clipped(body), method: method, path: path, body: body, want: 400, field: field})
		}
	}
	long := strings.Repeat("x", 1025)
	add("PUT", safety, "", "null", "[]", `"blocked"`, "{")
	add("PUT", safety, "safety", `{}`, `{"reason":"x"}`, `{"safety":"bad","reason":"x"}`, `{"safety":"Blocked","reason":"x"}`, `{"safety":4,"reason":"x"}`,
		`{"safety":null,"reason":"x"}`, `{"safety":"","reason":"x"}`, `{"safety":"warn","safety":"clean","reason":"x"}`, `{"safety":"warning","reason":"x"}`)
	add("PUT", safety, "reason", `{"safety":"warn"}`, `{"safety":"warn","reason":""}`, `{"safety":"warn","reason":" \n"}`, `{"safety":"warn","reason":"\u0000"}`,
		`{"safety":"warn","reason":"a\u202eb"}`, `{"safety":"warn","reason":"\r\nSet-Cookie: x"}`, `{"safety":"warn","reason":"`+long+`"}`, `{"safety":"warn","reason":1}`)
	add("PUT", safety, "score", `{"safety":"warn","reason":"x","score":1}`)
	add("PUT", safety, "actor", `{"safety":"warn","reason":"x","actor":"policy"}`)
	for _, path := range []string{bansPath, bansPath + "/preview"} {
		add("POST", path, "", "null", "[]", "{")
		reason := `,"reason":"x"`
		if path != bansPath {
			reason = ""
		}
		entity := func(kind, name string) string { return fmt.Sprintf(`{"kind":%q,"name":%q%s}`, kind, name, reason) }
		add("POST", path, "kind", entity("", "x"), entity("planet", "x"), entity("HOST", "x"), `{"kind":1,"name":"x"`+reason+`}`, `{"name":"x"`+reason+`}`)
		add("POST", path, "name", `{"kind":"host"`+reason+`}`, `{"kind":"host","name":["x"]`+reason+`}`, entity("host", ""), entity("host", "https://evil.example/"),
			entity("host", "a b"), entity("domain", "com"), entity("domain", "co.uk"), entity("domain", "192.0.2.1"), entity("network", "0.0.0.0/0"),
			entity("network", "::/0"), entity("network", "192.0.2.0/33"), entity("network", "evil.example"), entity("network", "192.0.2.1/24/25"),
			entity("link", "../../etc/passwd"), entity("link", "other.example/x"), entity("link", "a b"), entity("workspace", ""), entity("key", "a\nb"), entity("key", long))
		add("POST", path, "walk", `{"kind":"host","name":"evil.example","walk":null`+reason+`}`)
	}
	add("POST", bansPath, "reason", `{"kind":"host","name":"evil.example"}`, `{"kind":"host","name":"evil.example","reason":"`+long+`"}`)
	add("POST", bansPath, "safety", `{"kind":"host","name":"evil.example","reason":"x","safety":"clean"}`, `{"kind":"host","name":"evil.example","reason":"x","safety":""}`,
		`{"kind":"host","name":"evil.example","reason":"x","safety":5}`)
	add("POST", journalPath+"/1/erase", "reason", `{}`, `{"reason":""}`, `{"reason":"\u001b"}`, `{"reason":"`+long+`"}`)
	add("POST", journalPath+"/1/erase", "sequence", `{"reason":"x","sequence":2}`)
	for field, queries := range map[string][]string{
		"entity": {"host", ":", "host:", "planet:mars", "host:a%20b", "link:a/b/c", "link:other.example/x"},
		"cursor": {"x", "AAAA", strings.Repeat("A", 2000)}, "limit": {"0", "101", "-1", "01", "x"},
	} {
		for _, value := range queries {
			for _, path := range []string{journalPath, bansPath} {
				all = append(all, hostile{name: path + " " + field + "=" + clipped(value), method: "GET", path: path + "?" + field + "=" + value, want: 400, field: field})
			}
		}
	}
	for _, query := range []string{"since=yesterday", "since=2026-13-01", "until=2026-01-01", "actor="} {
		field, _, _ := strings.Cut(query, "=")
		all = append(all, hostile{name: "journal " + query, method: "GET", path: journalPath + "?" + query, want: 400, field: field})
	}
	return all
}

func clipped(text string) string { return text[:min(len(text), 60)] }

// Of a link that is gone, or never was, nothing is decided.
func TestWhatIsNotThereIsNotDecidedAbout(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"victim"}`)
	s.do(t, "acme", http.MethodDelete, collection+"/victim", "").want(t, http.StatusNoContent)
	for _, path := range []string{"/victim/safety", "/unknown/safety", "/victim/safety?domain=other.example", "/%00/safety"} {
		s.do(t, "admin", http.MethodGet, collection+path, "").want(t, http.StatusNotFound)
		s.do(t, "admin", http.MethodPut, collection+path, `{"safety":"blocked","reason":"x"}`).want(t, http.StatusNotFound)
	}
	s.do(t, "admin", http.MethodPost, bansPath, `{"kind":"link","name":"unknown","reason":"x"}`).want(t, http.StatusNotFound)
	if entries, _ := s.list(t, journalPath, "entries"); len(entries) != 0 {
		t.Errorf("%v", entries)
	}
	if l := s.links(t); len(l) > 0 && l[0].Safety != link.Clean {
		t.Errorf("%v", l)
	}
}
