package client_test

import (
	"io"
	"net/http"
	"testing"

	"curt.example/client"
)

func TestCreateOnceSendsAQuotedKey(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got, want := r.Header.Get("Idempotency-Key"), `"a \"b\" \\c"`; got != want {
			t.Errorf("key %s, want %s", got, want)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"short_code":"abc"}`)
	})
	if l, err := c.CreateOnce(t.Context(), `a "b" \c`, client.NewLink{LongURL: "https://example.com/"}); err != nil || l.ShortCode != "abc" {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestCreateManyOnceSendsAQuotedKey(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Idempotency-Key"); got != `"k"` || r.URL.Path != "/api/v1/links/bulk" {
			t.Errorf("%s: key %s", r.URL.Path, got)
		}
		w.WriteHeader(http.StatusMultiStatus)
		_, _ = io.WriteString(w, `{"results":[{"status":201,"link":{"short_code":"abc"}}]}`)
	})
	if got, err := c.CreateManyOnce(t.Context(), "k", []client.NewLink{{LongURL: "http://a"}}); err != nil || got[0].Link.ShortCode != "abc" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCreateManyReturnsAResultForEach(t *testing.T) {
	answer := `{"results":[{"status":201,"link":{"short_code":"abc"}},{"status":409,"problem":{"title":"taken","status":409}}]}`
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if want := `{"links":[{"long_url":"http://a","dedupe":true},{"long_url":"http://b"}]}`; err != nil || string(body) != want || r.URL.Path != "/api/v1/links/bulk" {
			t.Errorf("%s: %s, %v", r.URL.Path, body, err)
		}
		w.WriteHeader(http.StatusMultiStatus)
		_, _ = io.WriteString(w, answer)
	})
	links := []client.NewLink{{LongURL: "http://a", Dedupe: new(true)}, {LongURL: "http://b"}}
	got, err := c.CreateMany(t.Context(), links)
	if err != nil || len(got) != 2 || got[0].Link.ShortCode != "abc" || got[1].Problem.Status != 409 {
		t.Errorf("%+v, %v", got, err)
	}
	answer = `{"results":[]}`
	if _, err := c.CreateMany(t.Context(), links); err == nil {
		t.Error("an answer without results was believed")
	}
}
