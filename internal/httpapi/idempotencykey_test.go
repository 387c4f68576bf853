package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/testkit"
)

// Whatever happened to the link's clicks since, a replay is the same bytes.
func TestReplaysAreTheSameAnswer(t *testing.T) {
	s := newService(t)
	const body = `{"long_url":"http://example.com","max_clicks":3}`
	first := s.do(t, "acme", http.MethodPost, collection, body, `Idempotency-Key: "a b"`).want(t, http.StatusCreated)
	key := link.Key{Code: link.Code(first.json(t)["short_code"].(string))}
	if _, err := s.store.Spend(t.Context(), key, 2); err != nil {
		t.Fatal(err)
	}
	s.stats.counts = map[link.Key]uint64{key: 2}
	again := s.do(t, "acme", http.MethodPost, collection, ` { "max_clicks":3.0, "long_url":"http://ex\u0061mple.com" } `, `Idempotency-Key: "a b"`)
	if again.want(t, http.StatusCreated); string(again.body) != string(first.body) {
		t.Errorf("the replay differs:\n%s\n%s", first.body, again.body)
	}
	for _, h := range []string{"Location", "Etag", "Content-Type"} {
		if first.Header.Get(h) != again.Header.Get(h) || again.Header.Get(h) == "" {
			t.Errorf("%s: %q, then %q", h, first.Header.Get(h), again.Header.Get(h))
		}
	}
	s.do(t, "acme", http.MethodPatch, collection+"/"+string(key.Code), `{"title":"new"}`).want(t, http.StatusOK)
	changed := s.do(t, "acme", http.MethodPost, collection, body, `Idempotency-Key: "a b"`).want(t, http.StatusCreated)
	if got := changed.json(t); got["title"] != "new" || got["clicks"] != 2.0 || got["clicks_left"] != 1.0 || changed.Header.Get("Etag") != `"2"` {
		t.Errorf("after a change: %s", changed.body)
	}
	s.do(t, "acme", http.MethodDelete, collection+"/"+string(key.Code), "").want(t, http.StatusNoContent)
	gone := s.do(t, "acme", http.MethodPost, collection, body, `Idempotency-Key: "a b"`).want(t, http.StatusConflict)
	if p := gone.problem(t); p["type"] != "/problems/link-deleted" {
		t.Errorf("after the deletion: %s", gone.body)
	}
}

func TestIdempotencyKeysAreOfOneCallerAndOneRequest(t *testing.T) {
	s := newService(t)
	create := func(key, body, header string, want int) answer {
		t.Helper()
		return s.do(t, key, http.MethodPost, collection, body, "Idempotency-Key: "+header).want(t, want)
	}
	const one, two = `{"long_url":"http://example.com/1"}`, `{"long_url":"http://example.com/2"}`
	bare := create("acme", one, `k-1`, 201)
	if quoted := create("acme", one, `"k-1"`, 201); string(quoted.body) != string(bare.body) {
		t.Error("the quoted key is another key")
	}
	reused := create("acme", two, `k-1`, 422)
	if p := reused.problem(t); p["type"] != "/problems/idempotency-key-reused" {
		t.Errorf("%s", reused.body)
	}
	create("admin", two, `k-1`, 201)
	if p := create("", one, `k-1`, 400).problem(t); p["field"] != "Idempotency-Key" {
		t.Errorf("without a key: %v", p)
	}
	create("acme", `{"long_url":""}`, `k-2`, 400)
	create("acme", two, `k-2`, 201)
	if n := s.stored(t); n != 3 {
		t.Errorf("%d links, want 3", n)
	}
}

func TestParallelRequestsOfOneKey(t *testing.T) {
	s := newService(t)
	bodies := make([]string, 1000)
	var wg sync.WaitGroup
	for i := range bodies {
		wg.Go(func() {
			var got answer
			for retry := true; retry; retry = got.StatusCode == http.StatusConflict && strings.Contains(string(got.body), "idempotency-key-busy") {
				got = s.do(t, "acme", http.MethodPost, collection, `{"long_url":"http://example.com"}`, "Idempotency-Key: k")
			}
			bodies[i] = fmt.Sprint(got.StatusCode, string(got.body))
		})
	}
	wg.Wait()
	for i := range bodies {
		if bodies[i] != bodies[0] || !strings.HasPrefix(bodies[i], "201{") {
			t.Fatalf("answer %d: %s\nthe first: %s", i, bodies[i], bodies[0])
		}
	}
	if n := s.stored(t); n != 1 {
		t.Errorf("%d links", n)
	}
}

func badKeys() []string {
	return []string{
		``, ` `, `""`, `"`, `"a`, `"a"b`, `a"b`, `"a" "b"`, `"a";x=1`, `a;b`, `a,b`, `a b`, `a\b`, `"a\b"`, `"a\`, `"ü"`, `ü`,
		"a\tb", "\"a\x00\"", "a\x7f", `"` + strings.Repeat("k", 256) + `"`, strings.Repeat("k", 256), strings.Repeat(`\"`, 200),
	}
}

func TestHostileIdempotencyKeys(t *testing.T) {
	testkit.Unraced(t)
	s := newService(t)
	for _, key := range badKeys() {
		got := s.do(t, "admin", http.MethodPost, collection, `{"long_url":"http://example.com"}`, "Idempotency-Key: "+key)
		if got.StatusCode != http.StatusBadRequest || got.problem(t)["field"] != "Idempotency-Key" {
			t.Errorf("%q: %d %s", key, got.StatusCode, got.body)
		}
	}
	if n := s.stored(t); n != 0 {
		t.Errorf("%d links were stored", n)
	}
}

// FuzzIdempotencyKey: whatever the header, the answer is 201, and the same again, or a
// problem of that header.
func FuzzIdempotencyKey(f *testing.F) {
	for _, key := range append(badKeys(), `"8e03978e-40d5-43dd-bc93-6894a57f9324"`, `k`, `"a\\\"b"`) {
		f.Add(key)
	}
	s := newService(f)
	f.Fuzz(func(t *testing.T, key string) {
		first := s.do(t, "admin", http.MethodPost, collection, `{"long_url":"http://example.com"}`, "Idempotency-Key: "+key)
		again := s.do(t, "admin", http.MethodPost, collection, `{"long_url":"http://example.com"}`, "Idempotency-Key: "+key)
		switch {
		case first.StatusCode == http.StatusBadRequest && first.problem(t)["field"] == "Idempotency-Key":
		case first.StatusCode != http.StatusCreated || string(first.body) != string(again.body):
			t.Errorf("%q: %d %s, then %s", key, first.StatusCode, first.body, again.body)
		}
	})
}

func TestDedupeAnswers200WithTheExistingLink(t *testing.T) {
	s := newService(t)
	made := s.do(t, "acme", http.MethodPost, collection, `{"long_url":"http://example.com","dedupe":true}`).want(t, http.StatusCreated)
	if made.Header.Get("Curt-Deduplicated") != "" {
		t.Error("a new link is called deduplicated")
	}
	key := link.Key{Code: link.Code(made.json(t)["short_code"].(string))}
	s.stats.counts = map[link.Key]uint64{key: 7}
	found := s.do(t, "acme", http.MethodPost, collection, `{"long_url":"HTTP://EXAMPLE.com/","dedupe":true,"title":"x"}`).want(t, http.StatusOK)
	if got := found.json(t); found.Header.Get("Curt-Deduplicated") != "true" || got["short_code"] != string(key.Code) || got["clicks"] != 7.0 {
		t.Errorf("%v %s", found.Header, found.body)
	}
	s.do(t, "acme", http.MethodPost, collection, `{"long_url":"http://example.com"}`).want(t, http.StatusCreated)
	s.do(t, "", http.MethodPost, collection, `{"long_url":"http://example.com","dedupe":true}`).want(t, http.StatusBadRequest)
}

// Whoever reads the log finds the failure that an answer names.
func TestFailuresAreLoggedUnderTheirRequestID(t *testing.T) {
	for _, failure := range []error{link.ErrFull, link.ErrUnavailable, errors.New("surprise")} {
		s := newService(t, func(p *parts) {
			p.store = linktest.WithFaults(p.store, func(op linktest.Op, _ link.Key) (bool, error) {
				return op != linktest.OpCreate, map[bool]error{true: failure}[op == linktest.OpCreate]
			})
		})
		got := s.do(t, "admin", http.MethodPost, collection, `{"long_url":"http://example.com"}`)
		id, _ := got.problem(t)["request_id"].(string)
		if got.StatusCode < 500 || id == "" || !strings.Contains(s.log.String(), "request_id="+id) {
			t.Errorf("%v: %d %s, logged %s", failure, got.StatusCode, got.body, s.log)
		}
	}
}
