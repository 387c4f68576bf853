package dashboard_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"curt/internal/testkit"
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

	Screens []string `json:"screens"` // whose files are run, one after the other
	Links   int      `json:"links"`
	Clicks  int      `json:"clicks"`  // of all of them
	Hostile string   `json:"hostile"` // the title of a link, as it was sent
	Spelled string   `json:"spelled"` // and as people may see it
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

// turned is what would turn the letters behind it around.
const turned = "\u202Egpj.exe"

// TestFirstMinutes has somebody use a new server.
func TestFirstMinutes(t *testing.T) {
	s := curttest.Start(t, curttest.Options{})
	needDashboard(t, s)
	_, port, _ := strings.Cut(s.Addr, ":")
	drive(t, "drive.mjs", plan{
		Program: browser.Program(t), Pictures: browser.Pictures(), Base: "http://localhost:" + port, Key: curttest.Key,
		Screens: []string{"first"}, Hostile: hostile,
	})
}

// TestDashboardInABrowser has the screens used, those of operators beside those of everybody,
// whose links are made meanwhile. Who makes links and who counts clicks have a server each,
// so that neither waits for the other or sees what the other does.
func TestDashboardInABrowser(t *testing.T) {
	testkit.Faults(t)
	t.Run("operators", func(t *testing.T) {
		t.Parallel()
		useAsOperators(t)
	})
	t.Run("everybody", func(t *testing.T) {
		t.Parallel()
		began := time.Now()
		folder, other := seed(t, began), t.TempDir()
		must(t, os.CopyFS(other, os.DirFS(folder)))
		t.Logf("%d links and %d clicks are there twice after %v", seededLinks, seededClicks, time.Since(began).Round(time.Millisecond))
		for data, screens := range map[string][]string{folder: {"links", "kept"}, other: {"one", "adverse"}} {
			t.Run(screens[0], func(t *testing.T) {
				t.Parallel()
				drive(t, "drive.mjs", plan{
					Program: browser.Program(t), Pictures: browser.Pictures(), Base: busy(t, data), Key: curttest.Key, Screens: screens,
					Links: seededLinks, Clicks: seededClicks, Hostile: hostile + turned, Spelled: hostile + "[U+202E]gpj.exe",
				})
			})
		}
	})
}

// busy starts a server on a folder that was seeded, and returns its address.
func busy(t *testing.T, folder string) string {
	t.Helper()
	s := curttest.Start(t, curttest.Options{Data: folder, Env: []string{"CURT_GEOIP=" + places(t), "CURT_TRUSTED_PROXIES=127.0.0.1/32,::1/128"}})
	needDashboard(t, s)
	_, port, _ := strings.Cut(s.Addr, ":")
	return "http://localhost:" + port
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
