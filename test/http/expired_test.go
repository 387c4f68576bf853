package http_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestWhatExpiredIsListedAndRemoved: lists and searches have a link as expired when it is, the metrics
// count it within five seconds, and behind its retention nothing but its code is left, also where the
// server was killed meanwhile.
func TestWhatExpiredIsListedAndRemoved(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := curttest.Start(t, curttest.Options{Data: data})
	c := s.MustDial(t)
	authorized := []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}
	do := func(method, target, body string, want int) string {
		t.Helper()
		a, err := c.Do(method, target, authorized, body)
		if err != nil || a.Status != want {
			t.Fatalf("%s %s: %d %s, %v", method, target, a.Status, a.Body, err)
		}
		return string(a.Body)
	}
	var created struct {
		Expires time.Time `json:"expires_at"`
	}
	do("POST", "/api/v1/links", `{"long_url":"https://example.com/","custom_alias":"kept","title":"wombat"}`, http.StatusCreated)
	text := do("POST", "/api/v1/links", `{"long_url":"https://example.com/","custom_alias":"brief","title":"wombat","expires_in":3}`, http.StatusCreated)
	if err := json.Unmarshal([]byte(text), &created); err != nil {
		t.Fatal(err)
	}
	// await asks until the answer is as it should be.
	await := func(what string, bound time.Time, ok func() bool) {
		t.Helper()
		for ; !ok(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(bound) {
				t.Fatal(what)
			}
		}
	}
	metric := func(name string) float64 {
		value, found, err := s.Metric(t.Context(), name)
		if err != nil || !found {
			t.Fatalf("metric %s: %v", name, err)
		}
		return value
	}
	for _, question := range []string{"/api/v1/links?state=expired", "/api/v1/links?state=expired&q=wombat"} {
		await("not listed as expired: "+question, created.Expires.Add(3*time.Minute), func() bool {
			a, err := c.Do("GET", question, authorized, "")
			return err == nil && a.Status == http.StatusOK && strings.Contains(string(a.Body), `"brief"`) && !strings.Contains(string(a.Body), `"kept"`)
		})
	}
	await("not announced", created.Expires.Add(3*time.Minute), func() bool { return metric("curt_expired_links_total") == 1 })
	await("the lag is never within its bound", time.Now().Add(3*time.Minute), func() bool { // a busy machine exceeds it at times
		lag := metric("curt_expired_links_lag_seconds")
		return lag > 0 && lag <= 5
	})
	do("PATCH", "/api/v1/links/brief", `{"expires_in":1}`, http.StatusOK)

	s.Kill()
	time.Sleep(2100 * time.Millisecond) // until the retention has passed: a server looks at its start, and then each minute
	s = curttest.Start(t, curttest.Options{Data: data, Env: []string{"CURT_EXPIRED_RETENTION=1s"}})
	c = s.MustDial(t)
	await("the content is not removed", time.Now().Add(3*time.Minute), func() bool { return metric("curt_expired_links_removed_total") == 1 })
	if text := do("PATCH", "/api/v1/links/brief", `{"expires_in":60}`, http.StatusGone); !strings.Contains(text, "/problems/content-removed") {
		t.Errorf("a late change: %s", text)
	}
	do("POST", "/api/v1/links", `{"long_url":"https://example.com/","custom_alias":"brief"}`, http.StatusConflict)
	do("GET", "/api/v1/links/kept", "", http.StatusOK)
	if a, err := c.Do("GET", "/brief", nil, ""); err != nil || a.Status != http.StatusGone {
		t.Errorf("a visitor: %d %s, %v", a.Status, a.Body, err)
	}
	await("search still has the link", time.Now().Add(3*time.Minute), func() bool {
		a, err := c.Do("GET", "/api/v1/links?q=wombat", authorized, "")
		return err == nil && a.Status == http.StatusOK && strings.Contains(string(a.Body), `"kept"`) && !strings.Contains(string(a.Body), `"brief"`)
	})
}
