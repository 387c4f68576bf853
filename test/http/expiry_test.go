package http_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestExpiryIsExact asks for a link again and again across its expiry: no answer
// that was there before that millisecond may say expired, and none that was asked
// for after it may redirect, although the link is cached.
func TestExpiryIsExact(t *testing.T) {
	t.Parallel()
	s := curttest.Start(t, curttest.Options{})
	c := s.MustDial(t)
	expires := time.Now().Add(700 * time.Millisecond).UTC().Truncate(time.Millisecond)
	body, err := json.Marshal(map[string]string{
		"long_url": "https://example.com/", "custom_alias": "exact", "expires_at": expires.Format(time.RFC3339Nano),
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Do("POST", "/api/v1/links", []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, string(body))
	if err != nil || a.Status != http.StatusCreated {
		t.Fatalf("create: %d %s %v", a.Status, a.Body, err)
	}
	c = s.MustDial(t) // the first one is net/http's now
	live, dead := 0, 0
	for end := expires.Add(100 * time.Millisecond); time.Now().Before(end); {
		asked := time.Now()
		a, err := c.Do("GET", "/exact", nil, "")
		answered := time.Now()
		switch {
		case err != nil:
			t.Fatal(err)
		case a.Status == http.StatusFound:
			live++
			if !asked.Before(expires) {
				t.Fatalf("redirected %s after the expiry", asked.Sub(expires))
			}
		case a.Status == http.StatusGone:
			dead++
			if answered.Before(expires) {
				t.Fatalf("gone %s before the expiry", expires.Sub(answered))
			}
		default:
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	if live < 100 || dead < 10 {
		t.Fatalf("%d answers before and %d after the expiry prove little", live, dead)
	}
}
