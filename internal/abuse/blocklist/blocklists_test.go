package blocklist_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"curt/internal/abuse/abusetest"
	"curt/internal/abuse/blocklist"
	"curt/internal/abuse/listfile"
	"curt/internal/weburl"
)

func TestANewVersionTakesThePlaceOfTheOld(t *testing.T) {
	now := time.Now()
	path := abusetest.Write(t, "bad.txt", "old.example")
	b := open(t, path)
	abusetest.Put(t, path, "new.example\n", now.Add(-time.Minute))
	b.Round(t.Context(), now)
	if forbids(t, b, "https://old.example/").Entry != "" || forbids(t, b, "https://new.example/").Entry == "" {
		t.Error("the old version is still in use")
	}

	abusetest.Put(t, path, "newer.example\n", now.Add(-time.Millisecond))
	b.Round(t.Context(), now)
	if forbids(t, b, "https://newer.example/").Entry != "" {
		t.Error("a file that may still be written was read")
	}
	b.Round(t.Context(), now.Add(time.Minute))
	if forbids(t, b, "https://newer.example/").Entry == "" {
		t.Error("a file at rest was not read")
	}

	abusetest.Put(t, path, "newest.example\n", now.Add(time.Hour)) // by a clock that is ahead
	b.Round(t.Context(), now)
	if forbids(t, b, "https://newest.example/").Entry == "" {
		t.Error("a file of the future was not read")
	}

	other := abusetest.Write(t, "other.txt", "other.example") // renamed over it, as programs should
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	b.Round(t.Context(), now.Add(time.Minute))
	if forbids(t, b, "https://other.example/").Entry == "" {
		t.Error("a file renamed into place was not read")
	}
}

func TestAnExchangedLinkIsANewVersion(t *testing.T) {
	dir := t.TempDir()
	one, two, link := abusetest.Write(t, "1.txt", "one.example"), abusetest.Write(t, "2.txt", "two.example"), filepath.Join(dir, "bad.txt")
	if err := os.Symlink(one, link); err != nil {
		t.Fatal(err)
	}
	b := open(t, link)
	if err := errors.Join(os.Remove(link), os.Symlink(two, link)); err != nil {
		t.Fatal(err)
	}
	b.Round(t.Context(), time.Now().Add(time.Minute))
	if forbids(t, b, "https://two.example/").Entry == "" {
		t.Error("the new target was not read")
	}
}

func TestABadVersionLeavesTheOldInUse(t *testing.T) {
	now := time.Now()
	path := filepath.Join(t.TempDir(), "bad.txt")
	for name, spoil := range map[string]func() error{
		"damaged": func() error { return os.WriteFile(path, []byte("\x00\x00\x00"), 0o600) },
		"half":    func() error { return os.WriteFile(path, []byte("a.example\nb.exa"), 0o600) },
		"empty":   func() error { return os.Truncate(path, 0) },
		"no host": func() error {
			return os.WriteFile(path, []byte("# none yet\n127.0.0.1 localhost\n||ads.example^$script\n"), 0o600)
		},
		"a page":  func() error { return os.WriteFile(path, []byte("<html>\n"), 0o600) },
		"gzip":    func() error { return os.WriteFile(path, []byte("\x1f\x8b\x08\x00\n"), 0o600) },
		"endless": func() error { return os.WriteFile(path, bytes.Repeat([]byte("a"), 1<<20), 0o600) },
		"sparse":  func() error { return os.Truncate(path, 1<<30) },
		"5 GB":    func() error { return os.Truncate(path, 5<<30) },
		"huge":    func() error { return os.Truncate(path, 1<<31) },
		"missing": func() error { return os.Remove(path) },
		"folder":  func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"pipe":    func() error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			abusetest.Put(t, path, "evil.example\n", now.Add(-time.Hour))
			var log bytes.Buffer
			b, err := blocklist.Open(t.Context(), blocklist.Config{Paths: []string{path}, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
			for i := range 3 { // told once
				b.Round(t.Context(), now.Add(time.Duration(i+1)*time.Minute))
			}
			if forbids(t, b, "https://evil.example/").Entry == "" {
				t.Error("the version before is gone")
			}
			if s := b.Stats(); s.Failures != 1 || s.Unusable != 1 || strings.Count(log.String(), "list reload failed") != 1 {
				t.Errorf("%+v, log:\n%s", s, log.String())
			}
			if err := b.Reload(t.Context()); err == nil {
				t.Error("a reload that failed said nothing")
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			abusetest.Put(t, path, "good.example\n", now.Add(-time.Hour))
			b.Round(t.Context(), now.Add(time.Hour))
			if forbids(t, b, "https://good.example/").Entry == "" || b.Stats().Unusable != 0 {
				t.Error("a good version was not taken")
			}
		})
	}
}

func TestLinesThatForbidNothingAreTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.txt")
	abusetest.Put(t, path, "a.example\n\n<b>\nc.example:443\nd.example\n", time.Now().Add(-time.Hour))
	var log bytes.Buffer
	b, err := blocklist.Open(t.Context(), blocklist.Config{Paths: []string{path}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if s := b.Stats(); s.Entries != 2 || s.Invalid != 2 || s.Unusable != 0 {
		t.Errorf("%+v", s)
	}
	if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "lines=2 first=3") {
		t.Error(text)
	}
	abusetest.Put(t, path, "a.example\n", time.Now().Add(-time.Minute))
	if err := b.Reload(t.Context()); err != nil || b.Stats().Invalid != 0 {
		t.Errorf("%v, %+v", err, b.Stats())
	}
}

func TestStartWithABadFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "missing"), dir, pipe} {
		if _, err := blocklist.Open(t.Context(), blocklist.Config{Paths: []string{path}}); !errors.Is(err, listfile.ErrFile) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := blocklist.Open(t.Context(), blocklist.Config{Paths: make([]string, listfile.MaxLists+1)}); err == nil {
		t.Error("too many lists are taken")
	}
	// One that is damaged stops nobody, and the others count.
	b := open(t, abusetest.Write(t, "good.txt", "evil.example"), abusetest.Write(t, "bad.txt", "<html>"))
	if forbids(t, b, "https://evil.example/").List != "good" || b.Stats().Unusable != 1 {
		t.Errorf("%+v", b.Stats())
	}
}

// Reading a version keeps nobody from asking, and who asks meets one version whole.
func TestMatchWhileFilesAreRead(t *testing.T) {
	path := abusetest.Write(t, "bad.txt", "evil.example", "a.example")
	b := open(t, path)
	evil, err := weburl.Parse("https://evil.example/")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if _, listed := b.Match(evil); !listed {
						t.Error("evil.example is listed in every version")
						return
					}
				}
			}
		})
	}
	for i := range 50 {
		abusetest.Put(t, path, []string{"evil.example\nb.example\n", "<html>\n", "a.example\nevil.example\n"}[i%3], time.Now())
		_ = b.Reload(t.Context())
	}
	close(done)
	asking.Wait()
}
