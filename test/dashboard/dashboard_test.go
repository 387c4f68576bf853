package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"curt/test/internal/browser"
	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// plan is what drive.mjs is told to do.
type plan struct {
	Program  string `json:"program"`
	Pictures string `json:"pictures,omitempty"` // a folder for screenshots
	Base     string `json:"base"`
	Key      string `json:"key"`
	Links    int    `json:"links"`
	Hostile  string `json:"hostile"` // the title of a link, as it was sent
	Spelled  string `json:"spelled"` // and as people may see it
}

// report is what drive.mjs found.
type report struct {
	Faults  []string `json:"faults"`
	Done    []string `json:"done"`
	Figures []string `json:"figures"`
	Tried   int      `json:"tried"`
}

// hostile is what a stranger may leave in titles and tags.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>`

const seeded = 100_000

func TestDashboardInABrowser(t *testing.T) {
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_GEOIP=" + places(t), "CURT_TRUSTED_PROXIES=127.0.0.1/32,::1/128"}})
	_, port, _ := strings.Cut(s.Addr, ":")
	p := plan{
		Program: browser.Program(t), Pictures: browser.Pictures(), Base: "http://localhost:" + port, Key: curttest.Key,
		Links: seeded, Hostile: hostile + "\u202Egpj.exe", Spelled: hostile + "[U+202E]gpj.exe",
	}
	needDashboard(t, s)
	began := time.Now()
	seed(t, s, &p)
	t.Logf("%d links are there after %v", p.Links, time.Since(began).Round(time.Millisecond))
	drive(t, "drive.mjs", p)
}

// needDashboard fails the test where the binary has no dashboard.
func needDashboard(t *testing.T, s *curttest.Server) {
	t.Helper()
	if a, err := s.MustDial(t).Do("GET", "/app/", nil, ""); err != nil || a.Status != http.StatusOK {
		curttest.Need(t, fmt.Sprintf("a binary with its dashboard (make build, with Node.js): /app/ answers %d, %v", a.Status, err))
	}
}

// drive runs a script, in which everybody gets to their end.
func drive(t *testing.T, script string, p any) {
	t.Helper()
	var r report
	browser.Run(t, script, p, &r)
	for _, f := range r.Faults {
		t.Error(f)
	}
	for _, f := range r.Figures {
		t.Log(f)
	}
	if len(r.Done) != r.Tried || r.Tried == 0 {
		t.Errorf("%d of %d were done: %q", len(r.Done), r.Tried, r.Done)
	}
}

// seed makes the links of a workspace that is in use, 1,000 at once.
func seed(t *testing.T, s *curttest.Server, p *plan) {
	t.Helper()
	c := s.MustDial(t)
	hosts := []string{"example.com", "shop.example", "docs.example.org", "www.news.example", "bücher.example"}
	for done := 0; done < p.Links; {
		var links []map[string]any
		for range min(1000, p.Links-done) {
			l := map[string]any{"long_url": fmt.Sprintf("https://%s/%s/%d?utm_source=mail", hosts[done%len(hosts)], []string{"spring-sale", "a/rather/long/path/to/an/article", "p"}[done%3], done), "dedupe": false}
			switch {
			case done == p.Links-1:
				l = map[string]any{"long_url": "https://a.example/" + hostile + "?q=%E2%80%AE", "title": p.Hostile, "tags": []string{hostile[:40], "b", "c"}, "custom_alias": "hostile"}
			case done%7 == 0:
				l["title"], l["tags"] = fmt.Sprintf("Campaign %d", done/7), []string{"campaign", "spring"}
			case done%11 == 0:
				l["expires_in"] = 1
			}
			links = append(links, l)
			done++
		}
		body, err := json.Marshal(map[string]any{"links": links})
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Do("POST", "/api/v1/links/bulk", []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, string(body))
		if err != nil || a.Status != http.StatusMultiStatus || strings.Contains(string(a.Body), `"problem"`) {
			t.Fatalf("bulk: %d %.300s %v", a.Status, a.Body, err)
		}
	}
}
