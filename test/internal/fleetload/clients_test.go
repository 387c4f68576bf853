package fleetload_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
	"curt/test/internal/fleetload"
)

// service is a shortener that can be wrong. Codes are the destinations behind their host.
func service(t *testing.T, wrong func(w http.ResponseWriter, r *http.Request) bool) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wrong(w, r) {
			return
		}
		if r.Method == http.MethodGet {
			http.Redirect(w, r, "https://example.com"+r.URL.Path, http.StatusFound)
			return
		}
		var asked curttest.Link
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"short_code":%q,"long_url":%q}`, strings.TrimPrefix(asked.LongURL, "https://example.com/"), asked.LongURL)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func config(servers ...string) fleetload.Config {
	return fleetload.Config{
		Client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		API:    servers, Links: servers, Creators: 2, Visitors: 4, First: 2, Newest: true,
	}
}

// TestClients: a server that refuses connections is no failure beside one that does not; an answer that is
// wrong is, and so is one that a client may not send again.
func TestClients(t *testing.T) {
	never := func(http.ResponseWriter, *http.Request) bool { return false }
	gone := "http://127.0.0.1:" + testkit.FreePort(t)
	at := service(t, never)
	l := fleetload.Start(t, config(gone, at))
	l.Progress(t, 20, 10)
	l.Report(t)
	if l.Retried() == 0 || l.Answered() < 20 || l.Sent() <= l.Answered() || len(l.Links()) < 12 {
		t.Errorf("%d visits sent, %d answered, %d links, %d retried", l.Sent(), l.Answered(), len(l.Links()), l.Retried())
	}
	for _, to := range l.Links() {
		if err := l.Follow(t.Context(), at, to); err != nil {
			t.Error(err)
		}
	}
	if err := l.Follow(t.Context(), gone, l.Links()[0]); err == nil {
		t.Error("a server that is gone has links")
	}
}

func TestFailuresAreNoted(t *testing.T) {
	for name, wrong := range map[string]func(w http.ResponseWriter, r *http.Request){
		"the destination of another link": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.com/other", http.StatusFound)
		},
		"an error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"a body that ends in between": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.WriteHeader(http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var bad atomic.Bool
			at := service(t, func(w http.ResponseWriter, r *http.Request) bool {
				if bad.Load() {
					wrong(w, r)
				}
				return bad.Load()
			})
			c := config(at)
			c.Creators, c.Visitors = 0, 0
			l := fleetload.Start(t, c)
			l.Visit(t.Context(), 0)
			if failed := l.Failed(); len(failed) > 0 {
				t.Fatal(failed)
			}
			bad.Store(true)
			l.Visit(t.Context(), 1)
			if failed := l.Failed(); len(failed) != 1 || l.Answered() != 1 || l.Retried() != 0 {
				t.Errorf("%d failures, %d answered, %d retried", len(failed), l.Answered(), l.Retried())
			}
		})
	}
}

// TestAgain: an answer may be a reason to send a request once more, and not twice.
func TestAgain(t *testing.T) {
	var requests atomic.Int64
	at := service(t, func(w http.ResponseWriter, r *http.Request) bool {
		if requests.Add(1); r.Method == http.MethodPost && requests.Load() == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		return false
	})
	c := config(at)
	c.Creators, c.Visitors, c.First = 0, 0, 1
	c.Again = func(method string, status int) bool {
		return method == http.MethodPost && status == http.StatusBadGateway
	}
	l := fleetload.Start(t, c)
	if len(l.Links()) != 1 || l.Retried() != 1 || requests.Load() != 2 {
		t.Errorf("%d links of %d requests, %d retried", len(l.Links()), requests.Load(), l.Retried())
	}
}
