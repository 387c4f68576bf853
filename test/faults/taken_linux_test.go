package faults_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// metricOf returns a metric of a server that has just started.
func metricOf(t *testing.T, s *curttest.Server, name string) float64 {
	t.Helper()
	v, found, err := s.Metric(t.Context(), name)
	if err != nil || !found {
		t.Fatalf("%s: found %v, %v", name, found, err)
	}
	return v
}

// TestWhatAKillTookIsToldByTheNextStart kills a server under clicks: what the next start says
// was lost and what the log has are what was answered, but for what each client had under way. A
// gentle end loses nothing, and nothing is said of it.
func TestWhatAKillTookIsToldByTheNextStart(t *testing.T) {
	const clients = 16
	options := curttest.Options{Data: t.TempDir()}
	s := curttest.Start(t, options)
	links := s.MustCreate(t, 40)
	var logged, all int64
	for round := range rounds(4, 50) {
		c := s.Click(t, curttest.ClickPlan{Clients: clients, Links: links})
		awaitMetric(t, s, capturedClicks, func(v float64) bool { return v > 200 })
		someTime(0, 300*time.Millisecond)
		s.Kill()
		c.Wait()
		s = curttest.Start(t, options)
		now := recount(t, options.Data)
		told := int64(metricOf(t, s, "curt_clicks_killed_total"))
		if metricOf(t, s, "curt_clicks_killed_unknown") != 0 {
			t.Errorf("round %d: the server says that it does not know", round)
		}
		if got := now - logged + told; got < c.Answered()-clients || got > c.Sent() {
			t.Errorf("round %d: %d answered, %d sent; %d in the log and %d told as lost", round, c.Answered(), c.Sent(), now-logged, told)
		}
		logged, all = now, all+told
	}
	t.Logf("%d clicks lost and told", all)
	c := s.Click(t, curttest.ClickPlan{Clients: clients, Links: links})
	awaitMetric(t, s, capturedClicks, func(v float64) bool { return v > 200 })
	if code, _ := s.Terminate(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	c.Wait()
	s = curttest.Start(t, options)
	if n, u := metricOf(t, s, "curt_clicks_killed_total"), metricOf(t, s, "curt_clicks_killed_unknown"); n != 0 || u != 0 || strings.Contains(s.Log(), "was killed") {
		t.Errorf("after a gentle end: %g clicks, unknown %g\n%s", n, u, s.Log())
	}
}

// TestAStoppedMachineIsNotGuessedAt has a server die with its page, as a machine that goes down
// does: it says that nobody knows.
func TestAStoppedMachineIsNotGuessedAt(t *testing.T) {
	options := curttest.Options{Data: t.TempDir()}
	s := curttest.Start(t, options)
	s.Follow(t, s.MustCreate(t, 5), 1)
	s.Kill()
	state := filepath.Join(options.Data, "clicks.life")
	b, err := os.ReadFile(state)
	if err == nil {
		_, page, _ := strings.Cut(string(b), `"page":"`)
		page, _, _ = strings.Cut(page, `"`)
		err = os.Remove(page)
	}
	if err != nil {
		t.Fatal(err)
	}
	s = curttest.Start(t, options)
	shows(t, s, "unknown number of clicks lost")
	awaitMetric(t, s, "curt_clicks_killed_unknown", func(v float64) bool { return v == 1 })
	awaitMetric(t, s, "curt_clicks_killed_total", func(v float64) bool { return v == 0 })
}

// visitWithSecrets asks for a path as a browser does that carries secrets everywhere.
func visitWithSecrets(t *testing.T, s *curttest.Server, path string) {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // only read
	_, err = fmt.Fprintf(c, "GET %s?token=canary-query&utm_source=letter HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n"+
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64; canary-agent) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36\r\n"+
		"Referer: https://canary-user@mail.example.org/canary-path?canary-token#canary-part\r\n"+
		"Accept-Language: de, canary-language\r\nCookie: canary-cookie\r\n\r\n", path, s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
}

// TestNoFileHoldsWhatVisitorsCarry looks for what no statistics show in every file of the
// data folder and in the log, behind the lane and behind net/http, while the server runs and
// after it ended. With all details the click log has it, so that the look finds something.
func TestNoFileHoldsWhatVisitorsCarry(t *testing.T) {
	for _, c := range []struct {
		env  []string
		kept bool
	}{{nil, false}, {[]string{"CURT_LANE=off"}, false}, {[]string{"CURT_CLICK_DETAIL=full"}, true}} {
		data := t.TempDir()
		s := curttest.Start(t, curttest.Options{Data: data, Env: append([]string{foldOften}, c.env...)})
		links := s.MustCreate(t, 2)
		for range 3 {
			visitWithSecrets(t, s, "/"+links[0].Code)
			visitWithSecrets(t, s, "/canary-code")
		}
		if got := s.AwaitTotal(t, links, 3, 3*time.Minute); got != 3 {
			t.Fatalf("%d clicks are counted", got)
		}
		found := holding(t, data, "canary")
		if code, _ := s.Terminate(t); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		found = append(found, holding(t, data, "canary")...)
		if strings.Contains(s.Log(), "canary") {
			found = append(found, "the log")
		}
		if c.kept != (len(found) > 0) {
			t.Errorf("%v: found in %v", c.env, found)
		}
		if len(holding(t, data, "mail.example.org")) == 0 {
			t.Errorf("%v: nothing has the referrer's host", c.env)
		}
	}
}

// holding returns the files of a folder that hold a text.
func holding(t *testing.T, folder, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			found = append(found, filepath.Base(path))
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) { // what is replaced meanwhile
		t.Fatal(err)
	}
	return found
}
