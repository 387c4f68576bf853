package faults_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// beforeKill is a data folder with links that were there at an end in order, and others that
// were confirmed before a kill and stand in the write-ahead log alone.
func beforeKill(t *testing.T, last int) (data string, links, logged []curttest.Link) {
	t.Helper()
	data = t.TempDir()
	s := curttest.Start(t, curttest.Options{Data: data})
	links = s.MustCreate(t, 20)
	if code, _ := s.Terminate(t); code != 0 {
		t.Fatalf("exit %d", code)
	}
	s = curttest.Start(t, curttest.Options{Data: data})
	logged = s.MustCreate(t, last)
	s.Kill()
	return data, links, logged
}

// spoil flips a bit of a file.
func spoil(t *testing.T, name string, at int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // the write has said it
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 4
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

func sizeOf(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// disjoint fails the test when a code of one list is in the other.
func disjoint(t *testing.T, one, other []curttest.Link) {
	t.Helper()
	codes := map[string]string{}
	for _, l := range one {
		codes[l.Code] = l.LongURL
	}
	for _, l := range other {
		if before, twice := codes[l.Code]; twice {
			t.Errorf("%s was given to %s, and again to %s", l.Code, before, l.LongURL)
		}
	}
}

// A log that lost confirmed links stops the start, with one line; doctor and backup say the
// same and change nothing; by force the server goes on, says what it gave up, and gives no
// code to somebody else.
func TestADamagedWriteAheadLogIsRefused(t *testing.T) {
	testkit.Faults(t)
	for name, damage := range map[string]func(t *testing.T, log string){
		"header":      func(t *testing.T, log string) { spoil(t, log, 9) },
		"first frame": func(t *testing.T, log string) { spoil(t, log, 32+24+100) },
		"middle":      func(t *testing.T, log string) { spoil(t, log, sizeOf(t, log)/2) },
		"last frame":  func(t *testing.T, log string) { spoil(t, log, sizeOf(t, log)-5) },
		"cut":         func(t *testing.T, log string) { must(t, os.Truncate(log, sizeOf(t, log)/2)) },
		"emptied":     func(t *testing.T, log string) { must(t, os.Truncate(log, 0)) },
		"deleted":     func(t *testing.T, log string) { must(t, os.Remove(log)) },
		"both": func(t *testing.T, log string) {
			must(t, os.Remove(log), os.Remove(strings.TrimSuffix(log, "wal")+"shm"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, links, logged := beforeKill(t, 60)
			log := filepath.Join(data, "curt.db-wal")
			damage(t, log)
			for range 2 { // looking at it takes nothing away by which it is known
				doctor := exec.CommandContext(t.Context(), curttest.Binary(t), "doctor", "--data="+data, "--listen=127.0.0.1:0", "--admin-listen=")
				doctor.Env = []string{"PATH=" + os.Getenv("PATH")} // nobody's settings
				text, err := doctor.CombinedOutput()
				said := string(text)
				if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 || !strings.Contains(said, "failure  write-ahead log: curt.db-wal is ") {
					t.Errorf("doctor: %v\n%s", err, said)
				}
				if said, err := command(t, "backup", "--data", data, filepath.Join(t.TempDir(), "to")); err == nil || !strings.Contains(said, "curt.db-wal is ") {
					t.Errorf("backup: %v\n%s", err, said)
				}
				said = refuses(t, 78, curttest.Options{Data: data})
				for _, word := range []string{"curt.db-wal is ", "curt restore --force", "curt serve --force"} {
					if !strings.Contains(said, word) {
						t.Errorf("it does not say %q:\n%s", word, said)
					}
				}
			}
			s := curttest.Start(t, curttest.Options{Data: data, Args: []string{"--force"}})
			shows(t, s, "write-ahead log of curt.db was damaged, continuing without the lost transactions", "links_at_most")
			disjoint(t, append(links, logged...), s.MustCreate(t, 100))
			for _, wrong := range s.Follow(t, links, 2) {
				t.Error("confirmed before an end in order, but", wrong)
			}
			s.Kill()
			curttest.Start(t, curttest.Options{Data: data}) // force is for once
		})
	}
}

// An older curt.db in the place of the one that was there gives no code away again.
func TestAnOlderDatabaseGivesNoCodeTwice(t *testing.T) {
	data := t.TempDir()
	name := filepath.Join(data, "curt.db")
	s := curttest.Start(t, curttest.Options{Data: data})
	links := s.MustCreate(t, 20)
	s.Terminate(t)
	older, err := os.ReadFile(name)
	must(t, err)
	s = curttest.Start(t, curttest.Options{Data: data})
	links = append(links, s.MustCreate(t, 60)...)
	s.Terminate(t)
	must(t, os.WriteFile(name, older, 0o600))
	s = curttest.Start(t, curttest.Options{Data: data})
	shows(t, s, "curt.db is older than its state file")
	disjoint(t, links, s.MustCreate(t, 100))
	s.Terminate(t)
	if s = curttest.Start(t, curttest.Options{Data: data}); strings.Contains(s.Log(), "curt.db is older") {
		t.Error("it is said again")
	}
}

// Two copies of a folder, and the folder, go on with codes of their own; a folder that was
// renamed is no copy.
func TestCopiesGiveOtherCodes(t *testing.T) {
	const copied = "data folder was copied or moved"
	data, links, logged := beforeKill(t, 20)
	made := append(links, logged...)
	for range 2 {
		other := filepath.Join(t.TempDir(), "copy")
		must(t, os.CopyFS(other, os.DirFS(data)))
		for _, private := range []string{"curt.db", "curt.db.state"} { // what CopyFS leaves open to others
			must(t, os.Chmod(filepath.Join(other, private), 0o600))
		}
		s := curttest.Start(t, curttest.Options{Data: other})
		shows(t, s, copied)
		fresh := s.MustCreate(t, 20)
		disjoint(t, made, fresh)
		for _, wrong := range s.Follow(t, append(links, logged...), 2) {
			t.Error("in a copy:", wrong)
		}
		made = append(made, fresh...)
		s.Kill()
		if s = curttest.Start(t, curttest.Options{Data: other}); strings.Contains(s.Log(), copied) {
			t.Error("it is said again")
		}
		s.Kill()
	}
	renamed := filepath.Join(filepath.Dir(data), "renamed")
	must(t, os.Rename(data, renamed))
	s := curttest.Start(t, curttest.Options{Data: renamed})
	if strings.Contains(s.Log(), copied) {
		t.Error("a folder that was renamed is called a copy")
	}
	disjoint(t, made, s.MustCreate(t, 20))
}

// A state file that is missing or damaged stops no start, and gives no code away twice.
func TestAStateFileThatIsNoneStopsNothing(t *testing.T) {
	data, links, logged := beforeKill(t, 20)
	made := append(links, logged...)
	name := filepath.Join(data, "curt.db.state")
	must(t, os.Remove(name))
	s := curttest.Start(t, curttest.Options{Data: data})
	shows(t, s, "state file of curt.db is missing, recreated it")
	fresh := s.MustCreate(t, 20)
	disjoint(t, made, fresh)
	for _, wrong := range s.Follow(t, made, 2) {
		t.Error("without a state file:", wrong)
	}
	s.Kill()
	must(t, os.WriteFile(name, []byte("nothing of use\n"), 0o600))
	s = curttest.Start(t, curttest.Options{Data: data})
	shows(t, s, "state file of curt.db was damaged, recreated it")
	disjoint(t, append(made, fresh...), s.MustCreate(t, 20))
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
