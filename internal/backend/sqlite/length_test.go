package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/counts"
	"curt/internal/backend/sqlite/leases"
	"curt/internal/backend/sqlite/sqlitedb"
)

// TestClicksThatAreCutAreNotOpened cuts clicks.db at each length: SQLite would read zeros.
func TestClicksThatAreCutAreNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clicks.db")
	s, err := counts.Open(t.Context(), counts.Config{Path: path})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, missing := range []int{0, 1, 100, 4095, 4096, len(whole) - 4096} {
		path := filepath.Join(t.TempDir(), "clicks.db")
		if err := os.WriteFile(path, whole[:len(whole)-missing], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := counts.Open(t.Context(), counts.Config{Path: path})
		if err == nil {
			_ = s.Close()
		}
		if errors.Is(err, sqlitedb.ErrCut) != (missing > 0) {
			t.Errorf("%d bytes missing: %v", missing, err)
		}
	}
}

// TestACheckpointThatWasKilledIsNoCut leaves a short file with the log that makes it whole.
func TestACheckpointThatWasKilledIsNoCut(t *testing.T) {
	from := filepath.Join(t.TempDir(), "clicks.db")
	s, err := counts.Open(t.Context(), counts.Config{Path: from})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // read only
	to := filepath.Join(t.TempDir(), "clicks.db")
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(from + suffix)
		if err == nil {
			err = os.WriteFile(to+suffix, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	again, err := counts.Open(t.Context(), counts.Config{Path: to})
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

// TestAnOlderFileUnderANewerLog puts back an old curt.db alone, as from a backup by hand.
func TestAnOlderFileUnderANewerLog(t *testing.T) {
	from := filepath.Join(t.TempDir(), "curt.db")
	old := strings.Repeat("x", 4096)
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: from})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // read only
	log, err := os.ReadFile(from + "-wal")
	if err != nil || len(log) == 0 {
		t.Fatalf("%d bytes of log: %v", len(log), err)
	}
	to := filepath.Join(t.TempDir(), "curt.db")
	file, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	for at := 4096; at+4096 <= len(file); at += 4096 { // all pages but the first are of something else
		copy(file[at:], old)
	}
	for suffix, b := range map[string][]byte{"": file, "-wal": log} {
		if err := os.WriteFile(to+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: to}); !errors.Is(err, leases.ErrUnfit) {
		t.Errorf("it was opened: %v", err)
	}
}
