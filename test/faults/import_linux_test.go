package faults_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestKilledImportMakesNothingTwice kills imports at random moments and goes on with
// them: each row of the file has one link and one result in the end, with a code of its
// own or one that the server chose. Where a machine is so fast that the first kill came too
// late, another import is killed sooner.
func TestKilledImportMakesNothingTwice(t *testing.T) {
	testkit.Faults(t)
	for most := 400 * time.Millisecond; most > time.Millisecond; most /= 2 {
		if kills := killedCommands(t, most); kills > 0 {
			t.Logf("%d kills", kills)
			return
		}
	}
	t.Error("it was never killed: this shows nothing")
}

// killedCommands imports a file by commands that are killed within so much time each, and
// returns how many were.
func killedCommands(t *testing.T, most time.Duration) (kills int) {
	t.Helper()
	s := curttest.Start(t, curttest.Options{})
	const rows = 24_000
	var text strings.Builder
	text.WriteString("keyword,url\n")
	for i := range rows {
		code := ""
		if i%2 == 0 {
			code = fmt.Sprintf("own-%d", i)
		}
		_, _ = fmt.Fprintf(&text, "%s,https://example.com/%d\n", code, i)
	}
	file := filepath.Join(t.TempDir(), "links.csv")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(kill bool) (string, error) {
		args := []string{"import", file}
		if _, err := os.Stat(file + ".results.jsonl.state"); err == nil {
			args = append(args, "--resume")
		} else if err := os.RemoveAll(file + ".results.jsonl"); err != nil { // killed before its first row
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), curttest.Binary(t), args...)
		cmd.Env = append(os.Environ(), "CURT_SERVER=http://"+s.Addr, "CURT_API_KEY="+curttest.Key)
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if kill {
			someTime(0, most)
			_ = cmd.Process.Kill() // it may have ended
		}
		err := cmd.Wait()
		return said.String(), err
	}
	ended := func() bool { // it leaves a state unless it has
		_, err := os.Stat(file + ".results.jsonl.state")
		results, _ := os.ReadFile(file + ".results.jsonl") // none: it has not begun
		return errors.Is(err, fs.ErrNotExist) && bytes.Count(results, []byte("\n")) == rows
	}
	for range rounds(6, 60) {
		if _, err := run(true); err == nil || ended() {
			break
		}
		kills++
	}
	if !ended() {
		if said, err := run(false); err != nil || !strings.Contains(said, fmt.Sprintf("%d made, 0 failed", rows)) {
			t.Fatalf("%v\n%s", err, said)
		}
	}
	text.Reset()
	seen := map[string]bool{}
	for _, l := range s.AllLinks(t) {
		if seen[l.LongURL] {
			t.Errorf("%s was made twice", l.LongURL)
		}
		seen[l.LongURL] = true
	}
	results, err := os.ReadFile(file + ".results.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(results)), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, fmt.Sprintf(`{"line":%d,"short_code":"`, i+2)) {
			t.Fatalf("result %d is %s", i, line)
		}
	}
	if len(seen) != rows || len(lines) != rows {
		t.Errorf("%d links and %d results of %d rows", len(seen), len(lines), rows)
	}
	return kills
}
