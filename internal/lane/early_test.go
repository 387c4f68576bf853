package lane_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/redirect"
)

// A link before its start is an unknown code in every byte but those of Date, and in
// what is counted, whatever else the link is; with a lane and without.
func TestALinkBeforeItsStartIsUnknown(t *testing.T) {
	starts := time.Now().Add(24 * time.Hour).UnixMilli()
	for _, on := range []bool{true, false} {
		r := start(t, on)
		for code, target := range map[string]link.Target{
			"early1": {}, "early2": {Redirect: 308}, "early3": {Limited: true}, "early4": {Status: link.Disabled},
			"early5": {Status: link.Deleted}, "early6": {Safety: link.Blocked}, "early7": {Safety: link.Warn},
			"early8": {Expires: 1, Fallback: "https://back.example/"}, "early9": {Cacheable: true, ForwardQuery: true},
		} {
			target.Destination, target.Starts = dest, starts
			r.source.Put(link.Key{Code: link.Code(code)}, target)
			for _, method := range []string{"GET", "HEAD", "POST", "PUT"} {
				for _, accept := range []string{"text/html", "*/*"} {
					for range 2 { // from the store and from memory
						r.rec.take()
						want := answers(t, r.exchange(t, asked(method, "/nobody?a=b", accept, "192.0.2.7")))
						unknown := r.rec.take()
						got := answers(t, r.exchange(t, asked(method, "/"+code+"?a=b", accept, "192.0.2.7")))
						if diff := cmp.Diff(want, got); diff != "" || status(got[0]) != "404" {
							t.Errorf("lane %v: %s %s for %s:\n%s", on, method, code, accept, diff)
						}
						early := r.rec.take()
						if len(early) != 1 || len(unknown) != 1 || early[0].Outcome != clicks.Orphan || early[0].Outcome != unknown[0].Outcome || early[0].Flags != unknown[0].Flags {
							t.Errorf("lane %v: %s %s counts %+v, an unknown code %+v", on, method, code, early, unknown)
						}
					}
				}
			}
		}
	}
}

// Whoever tries codes pays for a link before its start as for one that is not there.
func TestALinkBeforeItsStartIsMetered(t *testing.T) {
	for _, on := range []bool{true, false} {
		r := start(t, on, func(s *setup) {
			s.links.Unknown = redirect.NewBudget(ratelimit.NewMemory(), ratelimit.Per(3, 24*time.Hour))
		})
		var got []string
		for range 5 {
			got = append(got, status(answers(t, r.exchange(t, asked("GET", "/later", "*/*", "192.0.2.7")))[0]))
		}
		if diff := cmp.Diff([]string{"404", "404", "404", "429", "429"}, got); diff != "" {
			t.Errorf("lane %v:\n%s", on, diff)
		}
	}
}

// A target that is in memory from before its start leads on when that has come, by
// itself: nobody changes the link, and the store is asked once.
func TestALinkStartsByItself(t *testing.T) {
	for _, on := range []bool{true, false} {
		r := start(t, on)
		k, starts := link.Key{Code: "dawn"}, time.Now().Add(time.Second)
		r.source.Put(k, link.Target{Destination: dest, Redirect: http.StatusFound, Starts: starts.UnixMilli()})
		var first string
		eventually(t, "the link starts", func() bool {
			now := status(answers(t, r.exchange(t, asked("GET", "/dawn", "*/*", "192.0.2.7")))[0])
			if first == "" {
				first = now
			}
			if now == "302" && time.Now().Before(starts.Truncate(time.Millisecond)) {
				t.Error("it started early")
			}
			return now == "302"
		})
		if n := r.source.Lookups(k); n != 1 {
			t.Errorf("lane %v: the store was asked %d times", on, n)
		}
		if first != "404" {
			t.Logf("lane %v: this machine was too slow to see it before its start", on)
		}
		if got := r.exchange(t, asked("GET", "/dawn", "*/*", "192.0.2.7")); !strings.Contains(got, "Location: "+dest+"\r\n") {
			t.Errorf("lane %v: %s", on, got)
		}
	}
}
