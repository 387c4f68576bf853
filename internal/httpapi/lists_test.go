package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const listsPath = "/api/v1/lists"

// changed sends a change of a list, and returns how many entries it changed and left.
func (s service) changed(t *testing.T, method, path, body string) (changed, unchanged float64) {
	t.Helper()
	got := s.do(t, "admin", method, listsPath+path, body).want(t, http.StatusOK).json(t)
	changed, _ = got["changed"].(float64)
	unchanged, _ = got["unchanged"].(float64)
	return changed, unchanged
}

// TestListsOfModerators: entries are in effect with the answer, and the journal says who added them.
func TestListsOfModerators(t *testing.T) {
	s := newService(t)
	create := func(alias, to string) answer {
		return s.do(t, "admin", http.MethodPost, collection, fmt.Sprintf(`{"long_url":%q,"custom_alias":%q}`, to, alias))
	}
	create("adm1n", "https://example.com/").want(t, http.StatusConflict)
	if n, _ := s.changed(t, "POST", "/refused_words/entries", `{"value":"~Casino","reason":"no gambling"}`); n != 1 {
		t.Errorf("%v changed", n)
	}
	if n, same := s.changed(t, "POST", "/refused_words/entries", `{"value":"~casino","reason":"again"}`); n != 0 || same != 1 {
		t.Errorf("%v changed, %v unchanged", n, same)
	}
	if p := create("cas1no", "https://example.com/").want(t, http.StatusConflict).problem(t); p["type"] != "/problems/slug-refused" {
		t.Errorf("%v", p)
	}
	s.changed(t, "POST", "/look_alikes/entries", `{"value":"AcmeBank","reason":"ours"}`)
	create("acmebnak", "https://example.com/").want(t, http.StatusConflict)
	for alias, reason := range map[string]any{"cas1no": "refused", "acmebnak": "refused", "adm1n": "reserved", "summer": nil} {
		if got := s.do(t, "acme", http.MethodGet, "/api/v1/aliases/"+alias, "").want(t, http.StatusOK).json(t); got["reason"] != reason || got["available"] != (reason == nil) {
			t.Errorf("%s: %v", alias, got)
		}
	}
	s.changed(t, "POST", "/look_alikes/entries", `{"value":"-admin","reason":"an own page"}`)
	create("adm1n", "https://example.com/").want(t, http.StatusCreated)
	s.changed(t, "DELETE", "/look_alikes/entries/-admin", "")
	create("4dmin", "https://example.com/").want(t, http.StatusCreated) // reads like nothing
	create("admln", "https://example.com/").want(t, http.StatusConflict)

	entries, _ := s.list(t, journalPath+"?limit=1", "entries")
	if entity, _ := entries[0]["entity"].(map[string]any); entries[0]["action"] != "unlist" || entity["kind"] != "look_alike" || entity["name"] != "-admin" || entries[0]["actor"] != "admin" {
		t.Errorf("%v", entries)
	}
	if found, _ := s.list(t, journalPath+"?entity="+url.QueryEscape("refused_word:~casino"), "entries"); len(found) != 1 || found[0]["reason"] != "no gambling" {
		t.Errorf("%v", found)
	}
	lists, _ := s.list(t, listsPath, "lists")
	if len(lists) != 4 || lists[1]["entries"] != 1.0 || lists[1]["builtin"] != 14.0 || lists[1]["disabled"] != 0.0 {
		t.Errorf("%v", lists)
	}
}

// TestBlockedDestinationsAreBans: the list is a view of them, so that links that are there are
// blocked, and allowed destinations do not matter.
func TestBlockedDestinationsAreBans(t *testing.T) {
	s := newService(t)
	const path = "/blocked_destinations/entries"
	s.create(t, "acme", `{"long_url":"https://a.evil.example/","custom_alias":"victim"}`)
	s.ban(t, `{"kind":"host","name":"one.example","reason":"x"}`)                   // of one host alone: no entry
	s.ban(t, `{"kind":"domain","name":"odd.example","safety":"warn","reason":"x"}`) // blocks nothing
	s.ban(t, `{"kind":"domain","name":"law.example","safety":"legal","reason":"x"}`)
	for _, value := range []string{"EVIL.example", "odd.example", "192.0.2.1", "2001:db8::1"} {
		if n, _ := s.changed(t, "POST", path, fmt.Sprintf(`{"value":%q,"reason":"phishing"}`, value)); n != 1 {
			t.Errorf("%s: %v changed", value, n)
		}
	}
	if n, same := s.changed(t, "POST", "/blocked_destinations/import", `{"text":"law.example\nevil.example # known\n\nnew.example\nNEW.example\n","reason":"many"}`); n != 1 || same != 3 {
		t.Errorf("%v changed, %v unchanged", n, same)
	}
	s.changed(t, "POST", "/allowed_destinations/entries", `{"value":"evil.example","reason":"a mistake"}`)
	for _, to := range []string{"https://evil.example/", "https://b.evil.example/", "http://192.0.2.1/", "http://[2001:db8::1]/"} {
		if p := s.do(t, "acme", http.MethodPost, collection, fmt.Sprintf(`{"long_url":%q}`, to)).problem(t); p["type"] != "/problems/destination-banned" {
			t.Errorf("%s: %v", to, p)
		}
	}
	var values []string
	for target := listsPath + path + "?limit=2"; target != ""; {
		page, next := s.list(t, target, "entries")
		for _, e := range page {
			values = append(values, fmt.Sprint(e["value"]))
		}
		if target = ""; next != "" {
			target = listsPath + path + "?limit=2&cursor=" + next
			s.do(t, "admin", http.MethodGet, listsPath+"/refused_words/entries?cursor="+next, "").want(t, http.StatusBadRequest)
		}
	}
	if got := fmt.Sprint(values); got != "[192.0.2.1 2001:db8::1 evil.example law.example new.example odd.example]" {
		t.Error(got)
	}
	if n, _ := s.changed(t, "DELETE", path+"/evil.example?reason=cleaned", ""); n != 1 {
		t.Errorf("%v changed", n)
	}
	if _, same := s.changed(t, "DELETE", path+"/one.example", ""); same != 1 {
		t.Errorf("the ban of one host was lifted")
	}
	s.do(t, "acme", http.MethodPost, collection, `{"long_url":"https://evil.example/"}`).want(t, http.StatusCreated)
}

// TestAnExportIsAnImport: what a list exports it takes again, on another server.
func TestAnExportIsAnImport(t *testing.T) {
	for list, text := range map[string]string{
		"refused_words": "~münze\nbingo*\nlotto\n-~fuck\n", "look_alikes": "acmebank\n~initech\n!googel\n-admin\n",
		"allowed_destinations": "good.example\n192.0.2.1\n2001:db8::1\n", "blocked_destinations": "evil.example\n192.0.2.1\n",
	} {
		first, second := newService(t), newService(t)
		n, _ := first.changed(t, "POST", "/"+list+"/import", fmt.Sprintf(`{"text":%q,"reason":"one\nreason # of two lines"}`, "\ufeff"+text))
		exported := first.do(t, "admin", http.MethodGet, listsPath+"/"+list+"/export", "").want(t, http.StatusOK)
		if h := exported.Header.Get("Content-Type"); h != "text/plain; charset=utf-8" || n != float64(strings.Count(text, "\n")) {
			t.Errorf("%s: %v changed, %s", list, n, h)
		}
		if m, _ := second.changed(t, "POST", "/"+list+"/import", fmt.Sprintf(`{"text":%q,"reason":"moved"}`, exported.body)); m != n {
			t.Errorf("%s: %v of %v: %s", list, m, n, exported.body)
		}
	}
}

// TestALongListIsWalked: page by page, also at the largest size of a page, and exported as a whole.
func TestALongListIsWalked(t *testing.T) {
	s := newService(t)
	var text strings.Builder
	for i := range 2001 {
		fmt.Fprintf(&text, "word-%d\\n", i)
	}
	s.changed(t, "POST", "/refused_words/import", `{"text":"`+text.String()+`","reason":"many"}`)
	seen := map[any]bool{}
	const first = listsPath + "/refused_words/entries?limit=500"
	for target := first; target != ""; {
		page, next := s.list(t, target, "entries")
		for _, e := range page {
			seen[e["value"]] = true
		}
		if target = ""; next != "" {
			target = first + "&cursor=" + next
		}
	}
	exported := s.do(t, "admin", http.MethodGet, listsPath+"/refused_words/export", "").want(t, http.StatusOK)
	if n := strings.Count(string(exported.body), "\n"); len(seen) != 2001 || n != 2001 {
		t.Errorf("%d entries, %d exported", len(seen), n)
	}
}

// TestHostileLists: whatever is sent, the answer says which field is wrong, and nothing changes.
func TestHostileLists(t *testing.T) {
	s := newService(t)
	post := func(path, body, field string, want int) {
		t.Helper()
		p := s.do(t, "admin", http.MethodPost, listsPath+path, body).want(t, want).problem(t)
		if got, _ := p["field"].(string); got != field {
			t.Errorf("%s %.80s: field %q, want %q: %v", path, body, got, field, p["detail"])
		}
	}
	long := strings.Repeat("a", 300)
	for list, values := range map[string][]string{
		"refused_words":        {"", "a*", "~ab", "a b", "*", "~", "-unknown", "a#b", `a\u0000b`, `\u202e`, long},
		"look_alikes":          {"", "ab", "acme corp", "-unknown", "!", "münchen", long},
		"allowed_destinations": {"", "com", "https://good.example/", "good.example/x", "a b", long},
		"blocked_destinations": {"", "-evil.example", "co.uk", "https://evil.example/", "evil.example:443", long},
	} {
		for _, value := range values {
			post("/"+list+"/entries", `{"value":"`+value+`","reason":"x"}`, "value", http.StatusBadRequest)
			field := "text"
			if value == "" || strings.Contains(value, "#") {
				continue // an empty line, or a comment
			}
			post("/"+list+"/import", `{"text":"`+value+`","reason":"x"}`, field, http.StatusBadRequest)
		}
		post("/"+list+"/entries", `{"value":"good.example","reason":""}`, "reason", http.StatusBadRequest)
		post("/"+list+"/entries", `{"value":"good.example"}`, "reason", http.StatusBadRequest)
		post("/"+list+"/entries", `{"value":1,"reason":"x"}`, "value", http.StatusBadRequest)
		post("/"+list+"/entries", `{"value":"a.example","reason":"x","kind":"word"}`, "kind", http.StatusBadRequest)
		post("/"+list+"/import", `{"text":"`+strings.Repeat(`a\n`, 10_001)+`","reason":"x"}`, "text", http.StatusBadRequest)
		post("/"+list+"/import", `{"text":"`+strings.Repeat("a", 1<<20)+`","reason":"x"}`, "", http.StatusRequestEntityTooLarge)
		s.do(t, "admin", http.MethodGet, listsPath+"/"+list+"/entries?limit=501", "").want(t, http.StatusBadRequest)
		s.do(t, "admin", http.MethodGet, listsPath+"/"+list+"/entries?cursor=x", "").want(t, http.StatusBadRequest)
		s.do(t, "admin", http.MethodDelete, listsPath+"/"+list+"/entries/"+url.PathEscape("a b"), "").want(t, http.StatusBadRequest)
	}
	for _, list := range []string{"unknown", "Refused_Words", "%00", "domain"} {
		post("/"+list+"/entries", `{"value":"x","reason":"x"}`, "", http.StatusNotFound)
		s.do(t, "admin", http.MethodGet, listsPath+"/"+list+"/entries", "").want(t, http.StatusNotFound)
		s.do(t, "admin", http.MethodGet, listsPath+"/"+list+"/export", "").want(t, http.StatusNotFound)
	}
	// A ban of a line is none, and a line of a ban neither.
	for _, kind := range []string{"refused_word", "look_alike", "allowed_destination"} {
		s.do(t, "admin", http.MethodPost, bansPath, fmt.Sprintf(`{"kind":%q,"name":"x.example","reason":"x"}`, kind)).want(t, http.StatusBadRequest)
	}
	if entries, _ := s.list(t, journalPath, "entries"); len(entries) != 0 {
		t.Errorf("%v", entries)
	}
}
