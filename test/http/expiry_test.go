package http_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestExpiryIsExact asks for a link again and again across its expiry: no answer
// that was there before that millisecond may say expired, and none that was asked
// for after it may redirect, although the link is cached. Where a machine is too busy to ask
// often enough, another link lives longer.
func TestExpiryIsExact(t *testing.T) {
	t.Parallel()
	s := curttest.Start(t, curttest.Options{})
	live, dead := 0, 0
	for lead := 700 * time.Millisecond; lead < time.Minute; lead *= 2 {
		if live, dead = acrossExpiry(t, s, lead); live >= 100 && dead >= 10 {
			return
		}
	}
	t.Fatalf("%d answers before and %d after the expiry prove little", live, dead)
}

// acrossExpiry makes a link that lives for so long, and counts the answers before its expiry
// and soon after it; none when it could not be made in time.
func acrossExpiry(t *testing.T, s *curttest.Server, lead time.Duration) (live, dead int) {
	t.Helper()
	c := s.MustDial(t)
	expires := time.Now().Add(lead).UTC().Truncate(time.Millisecond)
	alias := "exact-" + strconv.FormatInt(lead.Milliseconds(), 10)
	body, err := json.Marshal(map[string]string{
		"long_url": "https://example.com/", "custom_alias": alias, "expires_at": expires.Format(time.RFC3339Nano),
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Do("POST", "/api/v1/links", []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, string(body))
	switch {
	case err == nil && a.Status != http.StatusCreated && time.Now().After(expires):
		return 0, 0
	case err != nil || a.Status != http.StatusCreated:
		t.Fatalf("create: %d %s %v", a.Status, a.Body, err)
	}
	c = s.MustDial(t) // the first one is net/http's now
	for end := expires.Add(lead / 7); time.Now().Before(end); {
		asked := time.Now()
		a, err := c.Do("GET", "/"+alias, nil, "")
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
	return live, dead
}
