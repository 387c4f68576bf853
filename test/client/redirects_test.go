package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"curt.example/client"
)

// TestAKeyFollowsNoRedirect: to another port of the same host and from https to http
// net/http would send it again; with some of the statuses a body, too.
func TestAKeyFollowsNoRedirect(t *testing.T) {
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s reached another server, Authorization %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	defer stranger.Close()
	calls := map[string]func(*client.Client) error{
		"get": func(c *client.Client) error {
			_, err := c.Get(t.Context(), "x")
			return err
		},
		"create": func(c *client.Client) error {
			_, err := c.Create(t.Context(), client.NewLink{LongURL: "https://example.com/"})
			return err
		},
		"watch": func(c *client.Client) error {
			return c.WatchClicks(t.Context(), "x", "", func(uint64) { t.Error("clicks were told") })
		},
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		h := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, stranger.URL+r.URL.Path, status) }
		front := httptest.NewTLSServer(http.HandlerFunc(h))
		defer front.Close()
		trusting := front.Client()
		trusting.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
		secure, err := client.New(front.URL, client.WithKey("curt_test"), client.WithHTTPClient(trusting))
		if err != nil {
			t.Fatal(err)
		}
		for name, call := range calls {
			for scheme, c := range map[string]*client.Client{"http": serve(t, h), "https": secure} {
				err := call(c)
				if !errors.Is(err, client.ErrRedirect) || errors.Is(err, client.ErrNoAnswer) || !strings.Contains(err.Error(), stranger.URL) {
					t.Errorf("%s over %s, %d: %v", name, scheme, status, err)
				}
			}
		}
	}
}
