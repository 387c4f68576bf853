package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"curt/internal/search"
	"curt/internal/search/searchtest"
)

// filledIndex is an index that has read everything there was.
func filledIndex(tb testing.TB) *searchtest.Memory {
	tb.Helper()
	m := searchtest.NewMemory()
	if err := m.Apply(tb.Context(), search.Batch{Position: search.Position{Filled: true}}); err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestListRefusesBadQuestions(t *testing.T) {
	s := newService(t, func(p *parts) { p.index = filledIndex(t) })
	for name, values := range map[string][]string{
		"q":     {"", "+", "\x00", "\xff", strings.Repeat("a", 257), "a b c d e f g h i j k", strings.Repeat("w ", 1000)},
		"tag":   {"", "a\nb", "\xff", strings.Repeat("t", 65)},
		"state": {"", "deleted", "LIVE", "live,expired"},
		"sort":  {"", "clicks", "-clicks ", "title"},
	} {
		for _, v := range values {
			if name == "q" && v == strings.Repeat("w ", 1000) {
				v = strings.Join(strings.Split(strings.Repeat("x", 1000), ""), " ")
			}
			p := s.do(t, "admin", http.MethodGet, collection+"?"+name+"="+url.QueryEscape(v), "").want(t, http.StatusBadRequest).problem(t)
			if v != "" && p["field"] != name && !strings.Contains(p["detail"].(string), name) {
				t.Errorf("%s=%q blames %v", name, v, p)
			}
		}
	}
}

// A cursor belongs to its question.
func TestListCursorsAreBoundToTheQuestion(t *testing.T) {
	index := filledIndex(t)
	s := newService(t, func(p *parts) { p.index = index })
	batch := search.Batch{Position: search.Position{Filled: true}}
	for range 3 {
		s.create(t, "admin", `{"long_url":"http://example.com/word","tags":["a","b"]}`)
	}
	for _, l := range s.links(t) {
		batch.Docs = append(batch.Docs, search.NewDocument(&l))
	}
	if err := index.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	first := s.do(t, "admin", http.MethodGet, collection+"?q=word&tag=a&limit=2", "").want(t, http.StatusOK).json(t)
	cursor, _ := first["next_cursor"].(string)
	if cursor == "" {
		t.Fatalf("no cursor: %v", first)
	}
	for question, status := range map[string]int{
		"q=word&tag=a": 200, "q=WORD&tag=a": 200, "q=wor&tag=a": 400, "q=word&tag=b": 400, "q=word": 400, "tag=a": 400, "": 400,
		"q=word&tag=a&sort=created_at": 400, "q=word&tag=a&state=live": 400, "q=word&tag=a&sort=-clicks": 400,
	} {
		s.do(t, "admin", http.MethodGet, collection+"?"+question+"&cursor="+cursor, "").want(t, status)
	}
	s.do(t, "acme", http.MethodGet, collection+"?q=word&tag=a&cursor="+cursor, "").want(t, http.StatusBadRequest)
}

// Without an index, and before it is filled, such lists are 503, and others go on.
func TestListsWithoutTheIndex(t *testing.T) {
	for name, index := range map[string]search.Index{"none": nil, "not filled": searchtest.NewMemory()} {
		s := newService(t, func(p *parts) { p.index = index })
		if got := s.do(t, "admin", http.MethodGet, collection+"?q=a", ""); got.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", name, got.StatusCode)
		}
		s.do(t, "admin", http.MethodGet, collection, "").want(t, http.StatusOK)
	}
}

// Whole URLs are found as they are printed, and of short ones only the code counts.
func TestListFindsWholeURLs(t *testing.T) {
	index := filledIndex(t)
	s := newService(t, func(p *parts) { p.index = index })
	s.create(t, "admin", `{"long_url":"https://many.example/","custom_alias":"Quagga-Alias_1","title":"Größe der straße"}`)
	batch := search.Batch{Position: search.Position{Filled: true}}
	for _, l := range s.links(t) {
		batch.Docs = append(batch.Docs, search.NewDocument(&l))
	}
	if err := index.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for q, want := range map[string]int{
		"https://many.example/": 1, "HTTP://many.example": 1, "many.example https://many.example/": 1, "https many": 0,
		"https://many.example/Quagga-Alias_1": 1, "https://many.example/nothing": 0,
		"http://curt.test/Quagga-Alias_1": 1, "https://CURT.test/Quagga-Alias_1?x=y#z": 1, "http://curt.test/Quagga-Alias_2": 0,
		"http://curt.test/Quagga-Alias_1 größe": 1, "http://curt.test/": 0, "http://other.test/Quagga-Alias_1": 0,
		"GRÖSSE": 1, "größe": 1, "Grösse": 1, "STRASSE": 1, "straße": 1,
	} {
		got := s.do(t, "admin", http.MethodGet, collection+"?q="+url.QueryEscape(q), "").want(t, http.StatusOK).json(t)
		if found, _ := got["links"].([]any); len(found) != want {
			t.Errorf("q=%s: %d links, want %d", q, len(found), want)
		}
	}
	for _, nothing := range []string{"https://", "http:// https://"} {
		s.do(t, "admin", http.MethodGet, collection+"?q="+url.QueryEscape(nothing), "").want(t, http.StatusBadRequest)
	}
}
