package http_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestCodesAreHandedOutOnce makes 1,000 links from 32 connections with each strategy
// in the smallest space, every second of them to one URL, and follows all of them;
// then again after a restart on the same folder.
func TestCodesAreHandedOutOnce(t *testing.T) {
	for _, strategy := range strategies() {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			options := curttest.Options{Data: t.TempDir(), Env: []string{"CURT_CODES=" + strategy, "CURT_CODE_LENGTH=4"}}
			owner := map[string]string{}
			for range 2 {
				s := curttest.Start(t, options)
				for _, l := range makeTogether(t, s, 400) {
					if first, twice := owner[l.Code]; twice {
						t.Errorf("%s was given to %s and %s", l.Code, first, l.LongURL)
					}
					owner[l.Code] = l.LongURL
				}
				follow(t, s, owner)
				if code, _ := s.Terminate(t); code != 0 {
					t.Fatalf("exit code %d\n%s", code, s.Log())
				}
			}
		})
	}
}

// strategies are the values of CURT_CODES.
func strategies() []string { return []string{"range", "random", "hash", "words", "snowflake", "pool"} }

// TestTheStrategyChanges: one data folder goes from each strategy to each other, back and forth; no code is
// generated twice, and every link of every strategy redirects under every other.
func TestTheStrategyChanges(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	var turns []string
	all := strategies()
	for i, one := range all {
		turns = append(turns, one)
		for _, other := range all[i+1:] {
			turns = append(turns, other, one)
		}
	}
	data, owner := t.TempDir(), map[string]string{}
	for i, strategy := range turns {
		keys := []string{"range", "snowflake"}[i/2%2] // in half of the turns of pool each
		s := curttest.Start(t, curttest.Options{Data: data, Env: []string{"CURT_CODES=" + strategy, "CURT_CODE_LENGTH=4", "CURT_SNOWFLAKE=plain", "CURT_POOL_KEYS=" + keys}})
		for _, l := range makeTogether(t, s, 16) {
			if first, twice := owner[l.Code]; twice {
				t.Errorf("%s: %s was given to %s and %s", strategy, l.Code, first, l.LongURL)
			}
			owner[l.Code] = l.LongURL
		}
		follow(t, s, owner)
		if code, _ := s.Terminate(t); code != 0 {
			t.Fatalf("exit code %d\n%s", code, s.Log())
		}
	}
}

// TestNoCodeComesTwiceWhateverTheClockShows: while links are created the clock goes back, ahead and back again, and the server is killed and starts
// with a clock that was ahead before. Creates are 201, or 503 for a moment; no code is generated twice, and each link redirects. A step back is one line
// in the log.
func TestNoCodeComesTwiceWhateverTheClockShows(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	for _, strategy := range []string{"snowflake", "pool"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			options := curttest.Options{Data: t.TempDir(), Env: []string{"CURT_CODES=" + strategy, "CURT_POOL_KEYS=snowflake"}}
			s := curttest.Start(t, options)
			owner := map[string]string{}
			const hour = 3600 * time.Second
			for i, offset := range []time.Duration{0, -hour, hour, -time.Second, 0, 24 * hour, 0} {
				if i > 0 {
					s.SetClock(t, offset)
				}
				createAgain(t, s, owner, fmt.Sprintf("%d-%s", i, offset), 200)
			}
			refusals, _, err := s.Metric(t.Context(), "curt_code_clock_refusals_total")
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(s.Log(), "clock went backwards, creates are refused"); strategy == "snowflake" && (n > 3 || refusals > 0 && n == 0) {
				t.Errorf("three steps back are %d lines in the log, with %v refusals:\n%s", n, refusals, s.Log())
			}
			s.Kill()
			s = curttest.Start(t, options)
			createAgain(t, s, owner, "restart", 200)
			follow(t, s, owner)
		})
	}
}

// createAgain creates n links, each until it is there: a create may be refused with 503 while another machine id is leased.
func createAgain(t *testing.T, s *curttest.Server, owner map[string]string, name string, n int) {
	t.Helper()
	c := s.MustDial(t)
	for i := range n {
		url := fmt.Sprintf("https://example.com/%s/%d", name, i)
		for deadline := time.Now().Add(time.Minute); ; {
			l, a, err := c.Create(url)
			if err == nil && a.Status == http.StatusCreated {
				if first, twice := owner[l.Code]; twice {
					t.Fatalf("%s was given to %s and %s", l.Code, first, url)
				}
				owner[l.Code] = url
				break
			}
			if err != nil || a.Status != http.StatusServiceUnavailable || time.Now().After(deadline) {
				t.Fatalf("%s: %d %s, %v", url, a.Status, a.Body, err)
			}
		}
	}
}

// TestTheSameURLGetsTheSameLink is what people who choose hash expect.
func TestTheSameURLGetsTheSameLink(t *testing.T) {
	t.Parallel()
	s := curttest.Start(t, curttest.Options{Data: t.TempDir(), Env: []string{"CURT_CODES=hash"}})
	c := s.MustDial(t)
	first, a, err := c.Create("https://example.com/same")
	if err != nil || a.Status != http.StatusCreated {
		t.Fatalf("create: %d %s %v", a.Status, a.Body, err)
	}
	headers := []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}
	a, err = c.Do("POST", "/api/v1/links", headers, `{"long_url":"https://EXAMPLE.com/same"}`)
	if told, _ := a.Get("Curt-Deduplicated"); err != nil || a.Status != http.StatusOK || told != "true" || !strings.Contains(string(a.Body), `"`+first.Code+`"`) {
		t.Errorf("again: %d %s %v, want 200 and %s", a.Status, a.Body, err, first.Code)
	}
}

// makeTogether makes n links at once.
func makeTogether(t *testing.T, s *curttest.Server, n int) []curttest.Link {
	const connections = 32
	made := make([]curttest.Link, n)
	var wg sync.WaitGroup
	for first := range connections {
		c := s.MustDial(t)
		wg.Go(func() {
			for i := first; i < n; i += connections {
				url := "https://example.com/same"
				if i%2 == 0 {
					url = fmt.Sprintf("https://example.com/%d", i)
				}
				l, a, err := c.Create(url)
				if err != nil || a.Status != http.StatusCreated {
					t.Errorf("create: %d %s %v", a.Status, a.Body, err)
					return
				}
				made[i] = l
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return made
}

// follow visits every code.
func follow(t *testing.T, s *curttest.Server, owner map[string]string) {
	c := s.MustDial(t)
	for code, want := range owner {
		a, err := c.Do("GET", "/"+code, nil, "")
		if to, _ := a.Get("Location"); err != nil || a.Status != http.StatusFound || to != want {
			t.Fatalf("%s: %d to %q, %v; want %s", code, a.Status, to, err, want)
		}
	}
}
