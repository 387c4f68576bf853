package http_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestReloadUnderTraffic has a server read a long blocklist anew while it redirects and
// makes links. All are answered as before; the figures are logged. The long form, of
// "make soak", has five million lines, which may take 100 MB of memory.
func TestReloadUnderTraffic(t *testing.T) {
	t.Parallel()
	hosts := 100_000
	idle := 50 * time.Millisecond
	if curttest.Long() {
		hosts, idle = 5_000_000, 3*time.Second
	}
	list := filepath.Join(t.TempDir(), "many.txt")
	writeHosts(t, list, "first", 0)
	// Tests run servers with more garbage than is usual; here memory is measured.
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_BLOCKLISTS=" + list, "GOGC=100"}})
	make201(t, s, `{"long_url":"https://example.com/","custom_alias":"there"}`)
	reload := func(entries int) {
		t.Helper()
		if err := syscall.Kill(s.PID, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(3 * time.Minute)
		for {
			if n, _, err := s.Metric(t.Context(), "curt_blocklist_entries"); err == nil && n == float64(entries) {
				return
			} else if time.Now().After(end) {
				t.Fatalf("%v entries, %v; want %d", n, err, entries)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	traffic := func(what string, during func()) (now, most int64) {
		t.Helper()
		done := make(chan struct{})
		var asking sync.WaitGroup
		visits := every(t, &asking, done, s, "GET", "/there", "", http.StatusFound)
		creates := every(t, &asking, done, s, "POST", "/api/v1/links", `{"long_url":"https://example.com/new"}`, http.StatusCreated)
		during()
		close(done)
		asking.Wait()
		now, most = resident(t, s.PID)
		heap, _, _ := s.Metric(t.Context(), "go_memstats_heap_inuse_bytes")
		t.Logf("%s: redirects %s; creates %s; resident %.1f MB, at most %.1f MB, heap %.1f MB",
			what, quantiles(*visits), quantiles(*creates), float64(now)/1e6, float64(most)/1e6, heap/1e6)
		return now, most
	}
	before, _ := traffic("before", func() { time.Sleep(idle) })
	writeHosts(t, list, "first", hosts)
	traffic(fmt.Sprintf("while the first %d hosts are read", hosts), func() { reload(hosts + 1) })
	writeHosts(t, list, "second", hosts+1)
	traffic("while their next version is read", func() { reload(hosts + 2) })
	after, most := traffic("afterwards", func() { time.Sleep(idle) })
	bytes, _, err := s.Metric(t.Context(), "curt_blocklist_bytes")
	t.Logf("%d entries: %.1f MB by the server's own account; resident %.1f MB more than before, at most %.1f MB more", hosts+2, bytes/1e6, float64(after-before)/1e6, float64(most-before)/1e6)
	if err != nil || most-before > 100e6 {
		t.Errorf("the lists took %d bytes of memory, want 100 MB at most; %v", most-before, err)
	}
	if a := asAdmin(t, s, "POST", "/api/v1/links", `{"long_url":"https://second-1.example.com/"}`); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("a host of the new version: %d %s", a.Status, a.Body)
	}
}

// every asks every few milliseconds on one connection, until done, and returns how
// long each answer took.
func every(t *testing.T, group *sync.WaitGroup, done chan struct{}, s *curttest.Server, method, path, body string, want int) *[]time.Duration {
	t.Helper()
	took := new([]time.Duration)
	open := s.MustDial(t)
	group.Go(func() {
		tick := time.NewTicker(3 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			begin := time.Now()
			a, err := open.Do(method, path, []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, body)
			if err != nil || a.Status != want {
				t.Errorf("%s %s: %d %v", method, path, a.Status, err)
				return
			}
			*took = append(*took, time.Since(begin))
		}
	})
	return took
}

func quantiles(took []time.Duration) string {
	if len(took) == 0 {
		return "none"
	}
	slices.Sort(took)
	return fmt.Sprintf("%d, p50 %v, p99 %v, longest %v", len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
}

// resident returns the bytes of a process in memory, now and at most so far.
func resident(t *testing.T, pid int) (now, most int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0 // where nobody says
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			now = kib << 10
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			most = kib << 10
		}
	}
	return now, most
}

// writeHosts writes a list of so many hosts and evil.example beside the file, and renames it.
func writeHosts(t *testing.T, path, prefix string, hosts int) {
	t.Helper()
	f, err := os.Create(path + ".new")
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range hosts {
		fmt.Fprintf(w, "%s-%d.example.com\n", prefix, i) //nolint:errcheck // Flush tells
	}
	_, err = w.WriteString("evil.example\n")
	for _, e := range []error{err, w.Flush(), f.Close(), os.Rename(path+".new", path)} {
		if e != nil {
			t.Fatal(e)
		}
	}
}
