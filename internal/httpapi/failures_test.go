package httpapi_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
)

// A store that is full for two and a half minutes, a create each 100 ms: a line at the
// beginning and one each minute, each with the id of an answer; then one that it is over.
func TestAFullStoreIsLoggedEachMinute(t *testing.T) {
	const body = `{"long_url":"http://example.com"}`
	var full atomic.Bool
	full.Store(true)
	var passed time.Duration
	s := newService(t, func(p *parts) {
		p.Now = func() time.Time { return noon().Add(passed) }
		p.store = linktest.WithFaults(p.store, func(linktest.Op, link.Key) (bool, error) {
			if full.Load() {
				return false, link.ErrFull
			}
			return true, nil
		})
	})
	ids := 0
	for ; passed < 150*time.Second; passed += 100 * time.Millisecond {
		p := s.do(t, "admin", http.MethodPost, collection, body).want(t, http.StatusInsufficientStorage).problem(t)
		if id, _ := p["request_id"].(string); id != "" {
			ids++
			if !strings.Contains(s.log.String(), id) {
				t.Errorf("request id %s is not in the log", id)
			}
		}
	}
	log := s.log.String()
	if lines := strings.Count(log, "\n"); lines != 3 || ids != 3 || !strings.Contains(log, " times=601 ") || !strings.Contains(log, " times=1201 ") {
		t.Errorf("%d lines and %d request ids of 1500 refusals:\n%s", lines, ids, log)
	}
	full.Store(false)
	for range 20 {
		passed += 10 * time.Second
		s.do(t, "admin", http.MethodGet, collection+"/none", "").want(t, http.StatusNotFound)
	}
	if rest := strings.TrimPrefix(s.log.String(), log); strings.Count(rest, "\n") != 1 || !strings.Contains(rest, "requests succeed again") || !strings.Contains(rest, " times=1500 ") {
		t.Errorf("when it was over: %s", rest)
	}
}
