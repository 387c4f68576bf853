package auth_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"curt/internal/auth"
)

func TestFirstStartMakesTheKeyAndLaterOnesReadIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.key")
	key, made, err := auth.LoadOrCreateAdminKey(path, rand.Reader)
	if err != nil || !made {
		t.Fatalf("first start: made %v, %v", made, err)
	}
	if err := auth.CheckKey(key); err != nil {
		t.Errorf("the key that was made: %v", err)
	}
	again, made, err := auth.LoadOrCreateAdminKey(path, failingReader{})
	if err != nil || made || again != key {
		t.Errorf("second start: key changed %v, made %v, %v", again != key, made, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %d files, want 1 (%v)", len(entries), err)
	}
}

// The umask belongs to the whole process, so this test is not parallel.
func TestKeyFileIsPrivateWhateverTheUmask(t *testing.T) {
	for _, mask := range []int{0o000, 0o022, 0o777} {
		path := filepath.Join(t.TempDir(), "admin.key")
		before := syscall.Umask(mask)
		_, _, err := auth.LoadOrCreateAdminKey(path, rand.Reader)
		syscall.Umask(before)
		if err != nil {
			t.Fatalf("umask %#o: %v", mask, err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("umask %#o: mode %#o, want 0600", mask, got)
		}
		if exposed, err := auth.KeyFileExposed(path); exposed || err != nil {
			t.Errorf("umask %#o: exposed %v, %v", mask, exposed, err)
		}
	}
}

func TestExposedKeyFileIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.key")
	for _, mode := range []os.FileMode{0o640, 0o604, 0o644, 0o620} {
		if err := os.WriteFile(path, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if exposed, err := auth.KeyFileExposed(path); !exposed || err != nil {
			t.Errorf("mode %#o: exposed %v, %v", mode, exposed, err)
		}
	}
	if _, err := auth.KeyFileExposed(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
}

func TestDamagedKeyFileIsLeftAlone(t *testing.T) {
	for _, text := range []string{"", "\n", "curt_", "hunter2", key + "\n" + key} {
		path := filepath.Join(t.TempDir(), "admin.key")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := auth.LoadOrCreateAdminKey(path, rand.Reader); err == nil {
			t.Errorf("%q was taken for a key", text)
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("%q: the error does not name the file: %v", text, err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != text {
			t.Errorf("%q was overwritten", text)
		}
	}
}

func TestFailureLeavesNoFile(t *testing.T) {
	folder := t.TempDir()
	if _, _, err := auth.LoadOrCreateAdminKey(filepath.Join(folder, "admin.key"), failingReader{}); err == nil {
		t.Error("made a key without random bits")
	}
	if _, _, err := auth.LoadOrCreateAdminKey(filepath.Join(folder, "none", "admin.key"), rand.Reader); err == nil {
		t.Error("wrote into a folder that is not there")
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("the folder holds %d files, want none (%v)", len(entries), err)
	}
}

func TestKeysDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		k, err := auth.NewKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if seen[k] {
			t.Fatal("the same key twice")
		}
		seen[k] = true
	}
	ones, err := auth.NewKey(bytes.NewReader(bytes.Repeat([]byte{0xff}, 20)))
	if err != nil {
		t.Fatal(err)
	}
	if want := auth.Prefix + strings.Repeat("7", 32); ones != want {
		t.Errorf("all bits set: got %s, want %s", ones, want)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("no entropy") }
