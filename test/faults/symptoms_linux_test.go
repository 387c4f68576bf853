package faults_test

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// The tests of this file show what docs/operations.md says of failures that the others
// do not: the words of the log, the metrics and the answers by which they are known, what
// curt does by itself, and that the way back leads back.

// shows waits until the log has the words.
func shows(t *testing.T, s *curttest.Server, words ...string) {
	t.Helper()
	for _, w := range words {
		for end := time.Now().Add(3 * time.Minute); !strings.Contains(s.Log(), w); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("the log never says %q:\n%s", w, s.Log())
				return
			}
		}
	}
}

// awaitMetric waits until a metric is as it should be.
func awaitMetric(t *testing.T, s *curttest.Server, name string, right func(v float64) bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		v, found, err := s.Metric(t.Context(), name)
		if err == nil && found && right(v) {
			return
		}
		if time.Now().After(end) {
			t.Errorf("%s is %v (%v, %v)", name, v, found, err)
			return
		}
	}
}

func positive(v float64) bool { return v > 0 }

// refuses starts a server that must not start, and returns the one line that it says.
func refuses(t *testing.T, code int, o curttest.Options) string {
	t.Helper()
	s, err := curttest.Launch(t, o)
	if err == nil {
		t.Error("it starts")
		return ""
	}
	text := strings.TrimSpace(s.Log())
	if got := s.Wait(t); got != code || strings.Count(text, "\n") != 0 {
		t.Errorf("exit %d, want %d and one line:\n%s", got, code, text)
	}
	return text
}

// lived is a data folder that had links and clicks, all of them counted.
func lived(t *testing.T) (data string, links []curttest.Link) {
	t.Helper()
	data = t.TempDir()
	s := curttest.Start(t, curttest.Options{Data: data})
	links = s.MustCreate(t, 20)
	s.Follow(t, links, 2)
	if code, _ := s.Terminate(t); code != 0 {
		t.Fatalf("exit %d", code)
	}
	return data, links
}

// scribble overwrites a part of a file.
func scribble(t *testing.T, file string, at int64, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt([]byte(text), at); err != nil {
		t.Fatal(err)
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	said := refuses(t, 1, curttest.Options{Env: []string{"CURT_LISTEN=" + l.Addr().String()}})
	if !strings.Contains(said, "address already in use") {
		t.Error(said)
	}
}

func TestFolderTaken(t *testing.T) {
	t.Parallel()
	s := curttest.Start(t, curttest.Options{})
	if said := refuses(t, 1, curttest.Options{Data: s.Data}); !strings.Contains(said, "another curt is using this folder") {
		t.Error(said)
	}
}

// TestDamagedFiles writes over the beginning of each database.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	const garbage = "this is no database, and never was one"
	t.Run("curt.db", func(t *testing.T) {
		t.Parallel()
		data, _ := lived(t)
		scribble(t, filepath.Join(data, "curt.db"), 0, garbage)
		if said := refuses(t, 1, curttest.Options{Data: data}); !strings.Contains(said, "curt.db") || !strings.Contains(said, "file is not a database") {
			t.Error(said)
		}
	})
	t.Run("clicks.db", func(t *testing.T) {
		t.Parallel()
		data, links := lived(t)
		file := filepath.Join(data, "clicks.db")
		scribble(t, file, 0, garbage)
		if said := refuses(t, 1, curttest.Options{Data: data}); !strings.Contains(said, "clicks.db") || !strings.Contains(said, "file is not a database") {
			t.Error(said)
		}
		if err := os.Rename(file, file+".damaged"); err != nil {
			t.Fatal(err)
		}
		s := curttest.Start(t, curttest.Options{Data: data})
		if got := s.AwaitTotal(t, links, int64(len(links)), 3*time.Minute); got != int64(len(links)) {
			t.Errorf("%d of %d clicks were counted again", got, len(links))
		}
	})
	t.Run("search.db", func(t *testing.T) {
		t.Parallel()
		data, links := lived(t)
		scribble(t, filepath.Join(data, "search.db"), 0, garbage)
		s := curttest.Start(t, curttest.Options{Data: data})
		shows(t, s, "search index is damaged, rebuilding it")
		awaitStatus(t, s, http.StatusOK, "GET", "/api/v1/links?q=example", "")
		for _, bad := range s.Follow(t, links, 1) {
			t.Error(bad)
		}
	})
}

// TestDamagedPages zeroes the pages of a curt.db behind its first.
func TestDamagedPages(t *testing.T) {
	t.Parallel()
	data, _ := lived(t)
	file := filepath.Join(data, "curt.db")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	scribble(t, file, 4096, strings.Repeat("\x00", int(info.Size()-4096)))
	if said := refuses(t, 1, curttest.Options{Data: data}); !strings.Contains(said, "curt.db is damaged") {
		t.Error(said)
	}
}

// TestDamagedRow changes where a link leads behind the server's back: nobody is ever sent
// there, and the other links go on.
func TestDamagedRow(t *testing.T) {
	t.Parallel()
	data, links := lived(t)
	db, err := sql.Open("sqlite", filepath.Join(data, "curt.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `UPDATE links SET destination = 'https://evil.example/' WHERE destination = ?`, links[0].LongURL)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	s := curttest.Start(t, curttest.Options{Data: data})
	a, err := s.MustDial(t).Do("GET", "/"+links[0].Code, nil, "")
	if to, _ := a.Get("Location"); err != nil || a.Status != http.StatusServiceUnavailable || to != "" {
		t.Errorf("the damaged link answers %d to %q: %v", a.Status, to, err)
	}
	for _, bad := range s.Follow(t, links[1:], 2) {
		t.Error(bad)
	}
	awaitMetric(t, s, "curt_cache_load_failures_total", positive)
	awaitMetric(t, s, "curt_redirect_problems_total", positive)
}

// TestDamagedClickLog changes a byte of clicks that were not counted yet, in the first and
// in the last block of a log: that block alone is lost, and it is no torn end.
func TestDamagedClickLog(t *testing.T) {
	t.Parallel()
	for _, last := range []bool{false, true} {
		data := t.TempDir()
		s := curttest.Start(t, curttest.Options{Data: data, Env: []string{"CURT_FOLD=pause"}})
		links := s.MustCreate(t, 20)
		for _, sum := range []float64{20, 40} {
			s.Follow(t, links, 1)
			awaitMetric(t, s, "curt_clicks_captured_total", func(v float64) bool { return v == sum })
		}
		if code, _ := s.Terminate(t); code != 0 {
			t.Fatalf("exit %d", code)
		}
		segments, err := filepath.Glob(filepath.Join(data, "clicks", "*.clicks"))
		if err != nil || len(segments) != 1 {
			t.Fatalf("%v %v", segments, err)
		}
		text, err := os.ReadFile(segments[0])
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		if last {
			at = bytes.LastIndex(text, []byte("CURTCLK2"))
		}
		lost := int64(binary.LittleEndian.Uint32(text[at+16:]))
		at += 64 // its base time, which every block has; one of a single click is 100 bytes
		scribble(t, segments[0], int64(at), string([]byte{^text[at]}))
		s = curttest.Start(t, curttest.Options{Data: data})
		shows(t, s, "click log is damaged, skipping clicks in the damaged part")
		awaitMetric(t, s, "curt_click_log_damages_total", func(v float64) bool { return v == 1 })
		s.Follow(t, links, 1)
		if got := s.AwaitTotal(t, links, 60-lost, 3*time.Minute); got != 60-lost {
			t.Errorf("last %v: %d clicks are counted, want all 60 but %d", last, got, lost)
		}
		if info, err := os.Stat(segments[0]); err != nil || info.Size() != int64(len(text)) {
			t.Errorf("last %v: the damaged segment has %d bytes, had %d: %v", last, info.Size(), len(text), err)
		}
	}
}

// TestTornClickLog cuts a log within its last block, as the power does: the rest is cut
// off, told, and nothing is damaged.
func TestTornClickLog(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := curttest.Start(t, curttest.Options{Data: data, Env: []string{"CURT_FOLD=pause"}})
	links := s.MustCreate(t, 20)
	s.Follow(t, links, 1)
	if code, _ := s.Terminate(t); code != 0 {
		t.Fatalf("exit %d", code)
	}
	segments, err := filepath.Glob(filepath.Join(data, "clicks", "*.clicks"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("%v %v", segments, err)
	}
	text, err := os.ReadFile(segments[0])
	if err == nil {
		err = os.Truncate(segments[0], int64(len(text)-1))
	}
	if err != nil {
		t.Fatal(err)
	}
	lost := int64(binary.LittleEndian.Uint32(text[bytes.LastIndex(text, []byte("CURTCLK2"))+16:]))
	s = curttest.Start(t, curttest.Options{Data: data})
	shows(t, s, "click log had a torn tail, truncated it")
	awaitMetric(t, s, "curt_click_log_torn_bytes_total", positive)
	awaitMetric(t, s, "curt_click_log_damages_total", func(v float64) bool { return v == 0 })
	s.Follow(t, links, 1)
	if got := s.AwaitTotal(t, links, 40-lost, 3*time.Minute); got != 40-lost {
		t.Errorf("%d clicks are counted, want all 40 but %d", got, lost)
	}
}

// TestDamagedLists gives the server a map and a list that are none.
func TestDamagedLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	places, hosts := filepath.Join(dir, "places.mmdb"), filepath.Join(dir, "hosts.txt")
	for file, text := range map[string]string{places: "no map", hosts: "<html>\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_GEOIP=" + places, "CURT_BLOCKLISTS=" + hosts}})
	shows(t, s, "loading the geoip database failed, keeping previous version", "list reload failed, keeping previous version")
	awaitMetric(t, s, "curt_geoip_failures_total", positive)
	awaitMetric(t, s, "curt_blocklists_unusable", positive)
	s.Follow(t, s.MustCreate(t, 3), 1)
	if said := refuses(t, 78, curttest.Options{Env: []string{"CURT_GEOIP=" + places + ".gone"}}); !strings.Contains(said, "CURT_GEOIP") {
		t.Error(said)
	}
}

// TestDescriptorsRunOut bounds the descriptors of the process and opens more
// connections than that.
func TestDescriptorsRunOut(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	s := curttest.Start(t, curttest.Options{Wrap: []string{"sh", "-c", `ulimit -n 170; exec "$0" "$@"`}})
	links := s.MustCreate(t, 3)
	shows(t, s, "descriptor limit too low, lowering CURT_MAX_CONNECTIONS")
	for range 200 {
		c, err := curttest.Dial(t.Context(), s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
	}
	awaitMetric(t, s, "curt_lane_evicted_total", positive)
	bad := s.Follow(t, links, 1)
	for end := time.Now().Add(3 * time.Minute); len(bad) > 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		bad = s.Follow(t, links, 1) // a newcomer can be evicted while others still close (docs/decisions/0009)
	}
	for _, b := range bad {
		t.Error(b)
	}
}

// TestTooFewDescriptors has a limit with which connections would take a store's.
func TestTooFewDescriptors(t *testing.T) {
	t.Parallel()
	said := refuses(t, 78, curttest.Options{Wrap: []string{"sh", "-c", `ulimit -n 96; exec "$0" "$@"`}})
	if !strings.Contains(said, "RLIMIT_NOFILE=96: ") {
		t.Error(said)
	}
}

// TestAddressesHidden has a proxy in front that nobody told the server of.
func TestAddressesHidden(t *testing.T) {
	t.Parallel()
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_UNKNOWN_LIMIT=3/h"}})
	c, last := s.MustDial(t), 0
	for _, from := range []string{"198.51.100.1", "198.51.100.2", "198.51.100.3", "198.51.100.4"} {
		a, err := c.Do("GET", "/nobody", []string{"X-Forwarded-For: " + from}, "")
		if err != nil {
			t.Fatal(err)
		}
		last = a.Status
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("the fourth visitor is answered %d", last)
	}
	awaitMetric(t, s, "curt_unknown_refused_total", positive)
}

// TestDiskTurnsReadOnly has the kernel find a fault in the file system, upon which it
// lets nobody write to it any more.
func TestDiskTurnsReadOnly(t *testing.T) {
	disk := curttest.NewDisk(t, 48)
	s := curttest.Start(t, curttest.Options{Data: disk.Path})
	links := s.MustCreate(t, 5)
	disk.TurnReadOnly(t)
	for _, bad := range s.Follow(t, links, 1) {
		t.Error(bad)
	}
	if _, a, err := s.MustDial(t).Create("https://example.com/late"); err != nil || a.Status != http.StatusServiceUnavailable {
		t.Errorf("a create is answered %d %s: %v", a.Status, a.Body, err)
	}
	awaitMetric(t, s, "curt_ready", func(v float64) bool { return v == 0 })
	awaitMetric(t, s, "curt_click_log_append_errors_total", positive)
	shows(t, s, "writing the click log failed, clicks wait in memory")
	s.Kill()
	if said := refuses(t, 78, curttest.Options{Data: disk.Path}); !strings.Contains(said, "CURT_DATA") || !strings.Contains(said, "read-only file system") {
		t.Error(said)
	}
	disk.Remount(t)
	s = curttest.Start(t, curttest.Options{Data: disk.Path})
	for _, bad := range s.Follow(t, links, 1) {
		t.Error(bad)
	}
}

// awaitStatus asks until the answer has the status.
func awaitStatus(t *testing.T, s *curttest.Server, status int, method, path, body string) {
	t.Helper()
	c := s.MustDial(t)
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		a, err := c.Do(method, path, []string{"Authorization: Bearer " + curttest.Key}, body)
		if err != nil {
			t.Fatal(err)
		}
		if a.Status == status {
			return
		}
		if time.Now().After(end) {
			t.Errorf("%s %s: %d %s, want %d", method, path, a.Status, a.Body, status)
			return
		}
	}
}
