package http_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// together sends one request from each of n callers over 64 connections at once and
// returns the answers.
func together(t *testing.T, s *curttest.Server, n int, send func(c *curttest.Conn, i int) (curttest.Answer, error)) []curttest.Answer {
	t.Helper()
	const connections = 64
	answers := make([]curttest.Answer, n)
	var wg sync.WaitGroup
	for first := range connections {
		c := s.MustDial(t)
		wg.Go(func() {
			for i := first; i < n; i += connections {
				a, err := send(c, i)
				if err != nil {
					t.Errorf("request %d: %v", i, err)
					return
				}
				answers[i] = a
			}
		})
	}
	wg.Wait()
	return answers
}

func adminJSON(more ...string) []string {
	return append([]string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, more...)
}

// TestParallelCreatesOfOneKeyMakeOneLink: 1,000 requests with one Idempotency-Key, and
// 1,000 that dedupe, make one link each.
func TestParallelCreatesOfOneKeyMakeOneLink(t *testing.T) {
	s := curttest.Start(t, curttest.Options{})
	for name, request := range map[string]struct {
		body   string
		header []string
		found  int // how many are answered 200
	}{
		"idempotency key": {`{"long_url":"https://example.com/once"}`, []string{`Idempotency-Key: "k"`}, 0},
		"dedupe":          {`{"long_url":"https://example.com/same","dedupe":true}`, nil, 999},
	} {
		codes, found := map[string]int{}, 0
		for _, a := range together(t, s, 1000, func(c *curttest.Conn, _ int) (curttest.Answer, error) {
			for {
				a, err := c.Do("POST", "/api/v1/links", adminJSON(request.header...), request.body)
				if err != nil || a.Status != http.StatusConflict || !strings.Contains(string(a.Body), "/problems/idempotency-key-busy") {
					return a, err
				}
				time.Sleep(50 * time.Millisecond) // the first may take long on a busy machine: a client retries
			}
		}) {
			var l curttest.Link
			if err := json.Unmarshal(a.Body, &l); err != nil || a.Status != http.StatusCreated && a.Status != http.StatusOK {
				t.Fatalf("%s: %d %s", name, a.Status, a.Body)
			}
			if a.Status == http.StatusOK {
				found++
			}
			codes[l.Code]++
		}
		if len(codes) != 1 || found != request.found {
			t.Errorf("%s: %d codes, %d existing links, want 1 and %d", name, len(codes), found, request.found)
		}
	}
	if all := s.AllLinks(t); len(all) != 2 {
		t.Errorf("%d links, want 2", len(all))
	}
}

// browser is the line of a visitor who spends clicks: nobody is one without it.
const browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// TestBoundedLinkUnderParallelVisitors: of 1,000 visitors exactly 100 are redirected,
// the rest go to the fallback, and nobody who spends nothing sees the destination
// afterwards, not for a moment. A raised bound brings the link back.
func TestBoundedLinkUnderParallelVisitors(t *testing.T) {
	for _, lane := range []string{"on", "off"} {
		s := curttest.Start(t, curttest.Options{Env: []string{"CURT_LANE=" + lane}})
		c := s.MustDial(t)
		const body = `{"long_url":"https://example.com/prize","custom_alias":"prize","max_clicks":100,"fallback_url":"https://example.org/over"}`
		if a, err := c.Do("POST", "/api/v1/links", adminJSON(), body); err != nil || a.Status != http.StatusCreated {
			t.Fatalf("%d %s %v", a.Status, a.Body, err)
		}
		to := func(method string, lines ...string) string {
			t.Helper()
			a, err := c.Do(method, "/prize", lines, "")
			where, _ := a.Get("Location")
			if err != nil || a.Status != http.StatusFound {
				t.Fatalf("%s: %d %v", method, a.Status, err)
			}
			return where
		}
		quiet := func(want string) {
			t.Helper()
			for name, got := range map[string]string{
				"HEAD": to("HEAD"), "a prefetch": to("GET", browser, "Sec-Purpose: prefetch"), "a bot": to("GET", "User-Agent: Googlebot/2.1"),
			} {
				if got != want {
					t.Errorf("lane %s: %s was led to %s, want %s", lane, name, got, want)
				}
			}
		}
		quiet("https://example.com/prize")
		led := map[string]int{}
		for _, a := range together(t, s, 1000, func(c *curttest.Conn, _ int) (curttest.Answer, error) {
			return c.Do("GET", "/prize", []string{browser}, "")
		}) {
			where, _ := a.Get("Location")
			led[where]++
		}
		quiet("https://example.org/over")
		if led["https://example.com/prize"] != 100 || led["https://example.org/over"] != 900 {
			t.Errorf("lane %s: visitors were led to %v", lane, led)
		}
		if a, err := c.Do("PATCH", "/api/v1/links/prize", adminJSON(), `{"max_clicks":101}`); err != nil || a.Status != http.StatusOK {
			t.Fatalf("%d %s %v", a.Status, a.Body, err)
		}
		if first, second := to("GET", browser), to("GET", browser); first != "https://example.com/prize" || second != "https://example.org/over" {
			t.Errorf("lane %s: with one click more, led to %s and %s", lane, first, second)
		}
		quiet("https://example.org/over")
	}
}

// TestBulkOfAThousand makes 1,000 links with generated codes in one request.
func TestBulkOfAThousand(t *testing.T) {
	s := curttest.Start(t, curttest.Options{})
	c := s.MustDial(t)
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `,{"long_url":"https://example.com/bulk/%d"}`, i)
	}
	began := time.Now()
	a, err := c.Do("POST", "/api/v1/links/bulk", adminJSON(), `{"links":[`+b.String()[1:]+`]}`)
	t.Logf("1,000 links in %s", time.Since(began).Round(time.Millisecond))
	var answer struct {
		Results []struct {
			Status int
			Link   curttest.Link
		}
	}
	if err != nil || a.Status != http.StatusMultiStatus || json.Unmarshal(a.Body, &answer) != nil || len(answer.Results) != 1000 {
		t.Fatalf("%d %.200s %v", a.Status, a.Body, err)
	}
	var made []curttest.Link
	for i, r := range answer.Results {
		if r.Status != http.StatusCreated || r.Link.LongURL != fmt.Sprintf("https://example.com/bulk/%d", i) {
			t.Fatalf("result %d: %+v", i, r)
		}
		made = append(made, r.Link)
	}
	for _, wrong := range s.Follow(t, made, 4) {
		t.Error(wrong)
	}
	for i, l := range s.AllLinks(t) { // newest first
		if l.Code != made[999-i].Code {
			t.Fatalf("place %d of the list holds %s, want %s", i, l.LongURL, made[999-i].LongURL)
		}
	}
}
