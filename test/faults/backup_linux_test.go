package faults_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// command runs curt with the arguments and returns what it printed.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), curttest.Binary(t), args...).CombinedOutput()
	return string(text), err
}

func mustCommand(t *testing.T, args ...string) string {
	t.Helper()
	text, err := command(t, args...)
	if err != nil {
		t.Fatalf("curt %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return text
}

// TestBackupUnderLoadRestoresEverything backs up a server that creates, deletes and
// redirects, goes on with that for a while, then destroys the data folder. What was
// acknowledged before the backup is there after the restore, statistics equal the click
// log, and no code that anybody was ever given is given to somebody else.
func TestBackupUnderLoadRestoresEverything(t *testing.T) {
	testkit.Faults(t)
	options := curttest.Options{Data: filepath.Join(t.TempDir(), "data"), Env: []string{foldOften}}
	s := curttest.Start(t, options)
	links := s.MustCreate(t, 40)
	clickers := s.Click(t, curttest.ClickPlan{Clients: 4, Links: links})
	c := s.Create(t, 8, prefix(t, 0))
	c.AwaitMade(t, 500)
	to := filepath.Join(t.TempDir(), "backup")
	captured, _, err := s.Metric(t.Context(), capturedClicks)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	t.Log(mustCommand(t, "backup", "--data", s.Data, to))
	took := time.Since(began)
	c.AwaitMore(t, 500)
	c.Stop()
	clickers.Stop()
	only201(t, c)
	for _, wrong := range append(c.Bad(), clickers.Bad()...) {
		t.Error("while the backup was made:", wrong)
	}
	s.Kill()
	if err := os.RemoveAll(s.Data); err != nil {
		t.Fatal(err)
	}
	t.Log(mustCommand(t, "restore", "--data", s.Data, to))
	logged := recount(t, s.Data)

	s = curttest.Start(t, options)
	var before []curttest.Link
	codes := map[string]bool{}
	for _, l := range append(c.Made(), links...) {
		codes[l.Code] = true
		if l.At.Before(began) {
			before = append(before, l)
		}
	}
	for _, wrong := range s.Follow(t, before, 8) {
		t.Error("acknowledged before the backup, but", wrong)
	}
	for _, l := range s.MustCreate(t, 500) {
		if codes[l.Code] {
			t.Errorf("%s was given away before the restore, and again", l.Code)
		}
	}
	// Follow has clicked on each of the forty once.
	if got, want := s.AwaitTotal(t, links, logged+int64(len(links)), 3*time.Minute), logged+int64(len(links)); got != want {
		t.Errorf("statistics say %d clicks, the restored log and this test %d", got, want)
	}
	if logged < int64(captured) || logged > clickers.Sent() {
		t.Errorf("the backup holds %d clicks; %.0f were in the log before it, %d sent at all", logged, captured, clickers.Sent())
	}
	t.Logf("backup of %d links and %d clicks in %s, %d links were made after it began", len(before), logged, took, len(c.Made())+len(links)-len(before))
}

// TestKilledBackupIsNone kills backups and restores at random moments: there is a whole
// one or none, the server under the backup goes on, and a server starts on no folder
// that a restore left half.
func TestKilledBackupIsNone(t *testing.T) {
	testkit.Faults(t)
	s := curttest.Start(t, curttest.Options{Data: filepath.Join(t.TempDir(), "data")})
	links := s.MustCreate(t, 300)
	folder := t.TempDir()
	whole := filepath.Join(folder, "whole")
	began := time.Now()
	mustCommand(t, "backup", "--data", s.Data, whole)
	took := time.Since(began)
	// The first command may have taken longer than others do: then there are more of them.
	early := 0 // were killed before their end
	for i := 0; i < rounds(8, 100) || early == 0 && i < 100; i++ {
		to := filepath.Join(folder, fmt.Sprint("b", i%3))
		if killed(t, took, "backup", "--data", s.Data, to) {
			early++
		}
		if _, err := os.Stat(to); err == nil {
			mustCommand(t, "restore", "--check", to)
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
		}
	}
	mustCommand(t, "backup", "--data", s.Data, filepath.Join(folder, "b0"))
	for _, wrong := range s.Follow(t, links, 4) {
		t.Error("under killed backups:", wrong)
	}
	s.Kill()
	if early == 0 {
		t.Error("no backup was killed: this shows nothing")
	}
	early = 0
	for i := 0; i < rounds(8, 100) || early == 0 && i < 100; i++ {
		data := filepath.Join(folder, fmt.Sprint("d", i))
		if killed(t, took, "restore", "--data", data, whole) {
			early++
		}
		again, err := curttest.Launch(t, curttest.Options{Data: data})
		if err != nil {
			if again == nil || !strings.Contains(again.Log(), "a restore into") {
				t.Fatalf("a server on an interrupted restore: %v", err)
			}
			mustCommand(t, "restore", "--data", data, whole)
			again = curttest.Start(t, curttest.Options{Data: data})
		}
		if n := len(again.AllLinks(t)); n != len(links) && n != 0 {
			t.Errorf("a server on an interrupted restore has %d of %d links", n, len(links))
		}
		again.Kill()
	}
	if early == 0 {
		t.Error("no restore was killed: this shows nothing")
	}
}

// killed runs curt and kills it within the time that the command may take, and reports whether it had not ended.
func killed(t *testing.T, took time.Duration, args ...string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), curttest.Binary(t), args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	someTime(0, took)
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()         // how it ended is asked for
	return !cmd.ProcessState.Exited()
}

// A disk without room for the backup is said in one line that names the file, and
// nothing is left on it.
func TestBackupToAFullDiskIsOneLine(t *testing.T) {
	s := curttest.Start(t, curttest.Options{Data: filepath.Join(t.TempDir(), "data")})
	s.MustCreate(t, 300)
	disk := curttest.NewDisk(t, 16)
	filler, err := os.OpenFile(filepath.Join(disk.Path, "filler"), os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()                            //nolint:errcheck // it is to fail
	for _, chunk := range []int{1 << 20, 4 << 10} { // the rest of a block, too
		for err = nil; err == nil; {
			_, err = filler.Write(make([]byte, chunk))
		}
	}
	to := filepath.Join(disk.Path, "backup")
	said, err := command(t, "backup", "--data", s.Data, to)
	if err == nil || strings.Count(said, "\n") != 1 || !strings.Contains(said, to+".partial") || !strings.Contains(said, "no space left on device") || strings.Contains(said, "link store") {
		t.Errorf("%v\n%s", err, said)
	}
	if left, err := filepath.Glob(to + "*"); len(left) > 0 || err != nil {
		t.Error("left:", left, err)
	}
}
