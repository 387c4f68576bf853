package faults_test

import (
	"database/sql"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestADiskThatDoesNotRead fails every read of curt.db for a while: it is told from damage, no
// link leads elsewhere, and when the disk reads again writes go on without a restart.
func TestADiskThatDoesNotRead(t *testing.T) {
	t.Parallel()
	data, links := lived(t)
	s := curttest.Start(t, curttest.Options{Data: data})
	heal := failReads(t, s, filepath.Join(data, "curt.db"))
	conn := s.MustDial(t)
	for end := time.Now().Add(3 * time.Minute); ; { // what is in memory needs no read
		code, err := create(conn)
		if err != nil {
			t.Fatal(err)
		}
		if code == http.StatusServiceUnavailable {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no create needed a read")
		}
	}
	awaitMetric(t, s, "curt_ready", func(v float64) bool { return v == 0 })
	for _, l := range links {
		a, err := conn.Do("GET", "/"+l.Code, nil, "")
		if to, _ := a.Get("Location"); err != nil || a.Status != http.StatusServiceUnavailable && to != l.LongURL {
			t.Errorf("%s answers %d to %q: %v", l.Code, a.Status, to, err)
		}
	}
	heal()
	awaitMetric(t, s, "curt_ready", positive)
	shows(t, s, "curt.db is readable again, writes resumed")
	if code, err := create(conn); err != nil || code != http.StatusCreated {
		t.Errorf("a create after it: %d, %v", code, err)
	}
	for _, bad := range s.Follow(t, links, 2) {
		t.Error(bad)
	}
}

// create makes a link.
func create(c *curttest.Conn) (status int, err error) {
	_, a, err := c.Create("https://example.com/" + strconv.FormatInt(time.Now().UnixNano(), 36))
	return a.Status, err
}

// failReads has every pread of a file answer EIO until it is called off.
func failReads(t *testing.T, s *curttest.Server, file string) (heal func()) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "strace")
	cmd := exec.CommandContext(t.Context(), curttest.Strace(t), "-f", "-o", trace, "-p", strconv.Itoa(s.PID),
		"-P", file, "-e", "trace=pread64", "-e", "inject=pread64:error=EIO", "-e", "signal=none")
	attached, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 4096)
	if n, err := attached.Read(said); err != nil || !strings.Contains(string(said[:n]), "attached") {
		t.Fatalf("strace: %s, %v", said[:n], err)
	}
	ended := false
	heal = func() {
		if ended {
			return
		}
		ended = true
		_ = cmd.Process.Signal(os.Interrupt) // it detaches
		_ = cmd.Wait()
		if text, err := os.ReadFile(trace); err != nil || !strings.Contains(string(text), "INJECTED") {
			t.Errorf("no read failed, so nothing was shown: %v", err)
		}
	}
	t.Cleanup(heal)
	return heal
}

// TestCountsThatCannotBeWritten damages clicks.db where a start does not look: links go on, and
// it is told that counts are in memory alone.
func TestCountsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	data, links := lived(t)
	file := filepath.Join(data, "clicks.db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	var root int64
	err = db.QueryRowContext(t.Context(), "SELECT rootpage FROM sqlite_schema WHERE name = 'rollups'").Scan(&root)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	scribble(t, file, (root-1)*4096, strings.Repeat("\x00", 4096))
	s := curttest.Start(t, curttest.Options{Data: data, Env: []string{foldOften}})
	for _, bad := range s.Follow(t, links, 2) {
		t.Error(bad)
	}
	awaitMetric(t, s, "curt_statistics_unstored_seconds", positive)
	awaitMetric(t, s, "curt_click_batch_errors_total", positive)
	shows(t, s, "writing roll-ups failed, retrying")
}
