package main

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"curt/internal/cli"
	"curt/internal/testkit"
)

// TestHealth: 0 and silence when the server wants traffic, 69 and one line otherwise.
func TestHealth(t *testing.T) {
	for _, c := range []struct {
		status, code int
		says         string
	}{{http.StatusOK, 0, ""}, {http.StatusServiceUnavailable, 69, "curt: not ready: /readyz says 503 Service Unavailable\n"}} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				t.Errorf("asked for %s", r.URL)
			}
			w.WriteHeader(c.status)
		}))
		_, port, err := net.SplitHostPort(s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		for _, address := range []string{s.Listener.Addr().String(), ":" + port, "0.0.0.0:" + port} {
			var out, wrong bytes.Buffer
			code := run(t.Context(), []string{"health", "--admin-listen", address}, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &wrong})
			if code != c.code || wrong.String() != c.says || out.Len() > 0 {
				t.Errorf("%s with %d: code %d, %q, %q", address, c.status, code, out.String(), wrong.String())
			}
		}
		s.Close()
	}
}

func TestHealthOfNobody(t *testing.T) {
	address := "127.0.0.1:" + testkit.FreePort(t)
	for want, args := range map[int][]string{
		69: {"health", "--admin-listen", address},
		78: {"health", "--admin-listen=", "--tls-cert=c", "--tls-key=k"},
	} {
		var out, wrong bytes.Buffer
		code := run(t.Context(), args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &wrong})
		if code != want || strings.Count(wrong.String(), "\n") != 1 {
			t.Errorf("%v: code %d, %q", args, code, wrong.String())
		}
	}
}
