package httpapi_test

import (
	"net/http"
	"testing"

	"curt/internal/testkit"
)

func TestWithoutAKeyTheHostMustBeOurs(t *testing.T) {
	testkit.Unraced(t)
	const body = `{"long_url":"https://example.com/"}`
	for host, want := range map[string]int{
		"curt.test": 201, "CURT.test.": 201, "curt.test:8080": 201, "go.example": 201, "go.example:1": 201,
		"localhost": 201, "localhost:8080": 201, "x.localhost": 201, "127.0.0.1": 201, "127.0.0.1:8080": 201, "127.9.9.9": 201,
		"[::1]": 201, "[::1]:8080": 201, "192.0.2.1:80": 201, "[::ffff:127.0.0.1]:8080": 201,
		"evil.example": 421, "evil.example:8080": 421, "curt.test.evil.example": 421, "localhost.evil.example": 421, "evillocalhost": 421,
		"127.0.0.1.evil.example": 421, "xcurt.test": 421, "127.0.0.1.": 201, "2130706433": 421, "0x7f.1": 421, "127.1": 421, ".": 421,
		"curt.test@evil.example": 421, "curt.test..": 421,
	} {
		s := newService(t)
		got := s.do(t, "", http.MethodPost, collection, body, "Host: "+host)
		if got.StatusCode != want {
			t.Errorf("%q without a key: %d, want %d: %s", host, got.StatusCode, want, got.body)
		}
		if want != http.StatusCreated {
			if p := got.problem(t); p["type"] != "/problems/misdirected" || s.stored(t) != 0 {
				t.Errorf("%q: %v, %d links stored", host, p, s.stored(t))
			}
		}
		s.do(t, "acme", http.MethodPost, collection, body, "Host: "+host).want(t, http.StatusCreated)
		s.do(t, "wrong", http.MethodPost, collection, body, "Host: "+host).want(t, http.StatusUnauthorized)
		s.do(t, "", http.MethodGet, collection, "", "Host: "+host).want(t, http.StatusUnauthorized)
	}
}
