package faults_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/test/internal/curttest"
)

// slowWay is a way to the server on which the first bulk request is slow: when forward is
// closed it reaches the server, and its answer never reaches the client.
type slowWay struct {
	server  string
	arrived chan struct{} // closed when the first request is here
	forward chan struct{}
	stored  chan error    // its answer's arrival
	again   chan struct{} // closed when the second request is here
	seen    atomic.Int32
	t       *testing.T
}

func (w *slowWay) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its client was killed in the middle of it
	}
	// The request outlives its client, as on a network.
	onward, err := http.NewRequestWithContext(w.t.Context(), r.Method, w.server+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		w.t.Error(err)
		return
	}
	onward.Header = r.Header.Clone()
	switch {
	case !strings.HasSuffix(r.URL.Path, "/bulk"):
	case w.seen.Add(1) == 1:
		close(w.arrived)
		select {
		case <-w.forward:
		case <-w.t.Context().Done(): // the test failed
		}
		_, err := send(onward)
		w.stored <- err
		panic(http.ErrAbortHandler)
	case w.seen.Load() == 2:
		close(w.again)
	}
	resp, err := send(onward)
	if err != nil {
		w.t.Error(err)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(resp.status)
	_, _ = rw.Write(resp.body)
}

type sent struct {
	status int
	body   []byte
}

func send(r *http.Request) (sent, error) {
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return sent{}, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err == nil && resp.StatusCode >= 400 {
		err = fmt.Errorf("%d %s", resp.StatusCode, body)
	}
	return sent{resp.StatusCode, body}, err
}

// pairedRows writes a file of as many rows, of which each third has a code of its own and
// each hundredth is the same as the one before, and returns how many links are to lead to
// each destination.
func pairedRows(t *testing.T, name string, rows int) (file string, want map[string]int) {
	t.Helper()
	var text strings.Builder
	text.WriteString("keyword,url\n")
	want = map[string]int{}
	for i := range rows {
		code, to := "", i
		if i%3 == 0 {
			code = fmt.Sprintf("%s-%d", name, i)
		}
		if i%100 == 99 {
			to--
		}
		url := fmt.Sprintf("https://%s.example/%d", name, to)
		_, _ = fmt.Fprintf(&text, "%s,%s\n", code, url)
		want[url]++
	}
	file = filepath.Join(t.TempDir(), "links.csv")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, want
}

// TestResumedImportMeetsItsOwnRequest kills an import while its request is on its way and
// goes on at once: whether the server gets that request before the one of the resumed run,
// beside it or after it, each row has one link. Two rows that are the same get two.
func TestResumedImportMeetsItsOwnRequest(t *testing.T) {
	s := curttest.Start(t, curttest.Options{})
	const rows = 1000 // one request
	for _, when := range []string{"before", "beside", "after"} {
		t.Run(when, func(t *testing.T) {
			file, want := pairedRows(t, when, rows)
			way := &slowWay{
				server: "http://" + s.Addr, t: t, arrived: make(chan struct{}), forward: make(chan struct{}),
				stored: make(chan error, 1), again: make(chan struct{}),
			}
			proxy := httptest.NewServer(way)
			t.Cleanup(proxy.Close)
			killed, _ := startImport(t, proxy.URL, "import", file)
			<-way.arrived
			var err error
			if when == "before" {
				close(way.forward)
				err = <-way.stored
			}
			if err := killed.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = killed.Wait()
			resumed, said := startImport(t, proxy.URL, "import", "--resume", file)
			if when == "beside" {
				<-way.again
				close(way.forward)
			}
			if err := resumed.Wait(); err != nil || !strings.Contains(said.String(), fmt.Sprintf("%d made, 0 failed", rows)) {
				t.Fatalf("%v\n%s", err, said)
			}
			if when == "after" {
				close(way.forward)
			}
			if when != "before" {
				err = <-way.stored
			}
			if err != nil {
				t.Errorf("the killed run's request: %v", err)
			}
			made := map[string]int{}
			for _, l := range s.AllLinks(t) {
				if strings.HasPrefix(l.LongURL, "https://"+when+".") {
					made[l.LongURL]++
				}
			}
			if d := cmp.Diff(want, made); d != "" {
				t.Errorf("links by destination:\n%s", d)
			}
		})
	}
}

func startImport(t *testing.T, server string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), curttest.Binary(t), args...)
	cmd.Env = append(os.Environ(), "CURT_SERVER="+server, "CURT_API_KEY="+curttest.Key)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &said
}
