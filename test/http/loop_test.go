package http_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestLinksThatBecameACircle makes two links that lead to each other, which no
// single setting of our hosts allows, and follows them once both hosts are ours: the
// first answer is a page that says so, and counts as no click.
func TestLinksThatBecameACircle(t *testing.T) {
	t.Parallel()
	for _, lane := range []string{"on", "off"} {
		t.Run("lane "+lane, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			with := func(base, domains string) *curttest.Server {
				return curttest.Start(t, curttest.Options{Data: data, Env: []string{"CURT_LANE=" + lane, "CURT_BASE_URL=" + base, "CURT_DOMAINS=" + domains}})
			}
			// sho.rt is ours and go.example somebody else's.
			s := with("https://sho.rt", "")
			make201(t, s, `{"long_url":"https://go.example/bbb","custom_alias":"aaa"}`)
			make201(t, s, `{"long_url":"https://go.example/bbb","custom_alias":"query","forward_query":true}`)
			make201(t, s, `{"long_url":"https://go.example/bbb","custom_alias":"few","max_clicks":5,"redirect_status":308}`)
			make201(t, s, `{"long_url":"https://example.com/","custom_alias":"over","fallback_url":"https://go.example/bbb"}`)
			change200(t, s, "over", `{"status":"disabled"}`)
			if a := visitAs(t, s, "GET", "sho.rt", "aaa", "*/*"); a.Status != http.StatusFound {
				t.Fatalf("the destination is not ours yet: %d %s", a.Status, a.Body)
			}
			s.Terminate(t)

			// go.example is ours, and sho.rt no more.
			s = with("https://other.example", "go.example")
			make201(t, s, `{"long_url":"https://sho.rt/aaa","custom_alias":"bbb","domain":"go.example"}`)
			if a := visitAs(t, s, "GET", "go.example", "bbb", "*/*"); a.Status != http.StatusFound {
				t.Fatalf("the destination is not ours any more: %d %s", a.Status, a.Body)
			}
			s.Terminate(t)

			// Both are ours.
			s = with("https://sho.rt", "go.example")
			for range 3 { // from the store, and twice from memory
				for _, link := range [][2]string{{"sho.rt", "aaa"}, {"go.example", "bbb"}, {"sho.rt", "query?x=1"}, {"sho.rt", "few"}} {
					wantLoop(t, s, link[0], link[1])
				}
			}
			a := visitAs(t, s, "GET", "sho.rt", "over", "*/*")
			if a.Has("Location") || a.Status != http.StatusGone {
				t.Errorf("the fallback leads home: %d %s", a.Status, a.Raw)
			}
			// A visit that is counted: those before it would be by then.
			make201(t, s, `{"long_url":"https://example.com/","custom_alias":"last"}`)
			if a := visitAs(t, s, "GET", "sho.rt", "last", "*/*"); a.Status != http.StatusFound {
				t.Errorf("a link that leads elsewhere: %d %s", a.Status, a.Body)
			}
			if got := s.AwaitTotal(t, []curttest.Link{{Code: "last"}}, 1, 3*time.Minute); got != 1 {
				t.Errorf("%d clicks of it are counted", got)
			}
			var stats curttest.Stats
			if err := s.MustDial(t).GetJSON("/api/v1/links/aaa/stats", &stats); err != nil || stats.Total != 1 {
				t.Errorf("counted %d clicks, want the one before it became a circle (%v)", stats.Total, err)
			}
			var few struct {
				Left int `json:"clicks_left"`
			}
			if err := s.MustDial(t).GetJSON("/api/v1/links/few", &few); err != nil || few.Left != 5 {
				t.Errorf("%d clicks left of 5 (%v)", few.Left, err)
			}
			// Its owner can mend it without a restart.
			change200(t, s, "aaa", `{"long_url":"https://example.com/"}`)
			if a := visitAs(t, s, "GET", "sho.rt", "aaa", "*/*"); a.Status != http.StatusFound {
				t.Errorf("mended: %d %s", a.Status, a.Body)
			}
		})
	}
}

// wantLoop follows a link as a program, as HEAD and as a browser.
func wantLoop(t *testing.T, s *curttest.Server, host, target string) {
	t.Helper()
	for _, accept := range []string{"*/*", "text/html"} {
		for _, method := range []string{"GET", "HEAD"} {
			a := visitAs(t, s, method, host, target, accept)
			if a.Status != http.StatusLoopDetected || a.Has("Location") {
				t.Fatalf("%s %s/%s as %s: %s", method, host, target, accept, a.Raw)
			}
			want := `"type":"/problems/loop"`
			if accept == "text/html" {
				want = "<h1>Redirect loop</h1>"
			}
			if method == "GET" && !strings.Contains(string(a.Body), want) {
				t.Errorf("%s/%s: %s", host, target, a.Body)
			}
		}
	}
}

// visitAs asks for a link of a host on a connection of its own.
func visitAs(t *testing.T, s *curttest.Server, method, host, target, accept string) curttest.Answer {
	t.Helper()
	c := s.MustDial(t)
	if err := c.Send(fmt.Sprintf("%s /%s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\n\r\n", method, target, host, accept)); err != nil {
		t.Fatal(err)
	}
	a, err := c.Read(method)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func make201(t *testing.T, s *curttest.Server, body string) {
	t.Helper()
	a, err := s.MustDial(t).Do("POST", "/api/v1/links", []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, body)
	if err != nil || a.Status != http.StatusCreated {
		t.Fatalf("%s: %d %s %v", body, a.Status, a.Body, err)
	}
}

func change200(t *testing.T, s *curttest.Server, code, body string) {
	t.Helper()
	a, err := s.MustDial(t).Do("PATCH", "/api/v1/links/"+code, []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, body)
	if err != nil || a.Status != http.StatusOK {
		t.Fatalf("%s: %d %s %v", body, a.Status, a.Body, err)
	}
}

// TestCirclesThroughStrangeHostsEnd makes two links that lead to each other by names that
// nobody told us of, and follows them as a browser does: each hop asks the host that the last
// answer named.
func TestCirclesThroughStrangeHostsEnd(t *testing.T) {
	t.Parallel()
	for _, lane := range []string{"on", "off"} {
		t.Run("lane "+lane, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			hops := func(s *curttest.Server) (n int) {
				for host, code := "sho.rt", "aaa"; n < 25; n++ {
					a := visitAs(t, s, "GET", host, code, "*/*")
					location, _ := a.Get("Location")
					to, led := strings.CutPrefix(location, "http://")
					if !led {
						break
					}
					host, code, _ = strings.Cut(to, "/")
				}
				return n
			}
			start := func(env ...string) *curttest.Server {
				return curttest.Start(t, curttest.Options{Data: data, Env: append(env, "CURT_LANE="+lane, "CURT_BASE_URL=https://sho.rt")})
			}
			s := start()
			make201(t, s, `{"long_url":"http://one.example/bbb","custom_alias":"aaa"}`)
			make201(t, s, `{"long_url":"http://two.example/aaa","custom_alias":"bbb"}`)
			if n := hops(s); n != 1 {
				t.Errorf("%d hops, want the one from our own host", n)
			}
			for _, host := range []string{s.Addr, "localhost", "[::1]:80"} { // who asks the machine itself, as health checks do
				if a := visitAs(t, s, "GET", host, "aaa", "*/*"); a.Status != http.StatusFound {
					t.Errorf("%s: %d", host, a.Status)
				}
			}
			if a := visitAs(t, s, "GET", "one.example", "healthz", "*/*"); a.Status != http.StatusOK {
				t.Errorf("health at a strange host: %d", a.Status)
			}
			if said := s.Log(); !strings.Contains(said, "links are served on configured hosts only") {
				t.Errorf("the start does not say so:\n%s", said)
			}
			s.Terminate(t)
			s = start("CURT_STRICT_HOST=false")
			if n := hops(s); n != 25 {
				t.Errorf("%d hops without strict hosts: the test proves nothing", n)
			}
		})
	}
}
