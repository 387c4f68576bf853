package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// After a process that died, nothing may be written behind frames of its WAL: if an
// fsync of it failed, their pages are in memory only.
func TestLinksOpenBeginsTheWALAnew(t *testing.T) {
	old := filepath.Join(t.TempDir(), "curt.db")
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: old})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	code := countedCodes(t)(s)
	var stored []link.Link
	for n := range uint64(50) {
		stored = append(stored, mustCreate(t, s, linktest.Counted(code(n), n, linktest.Epoch())))
	}
	path := filepath.Join(t.TempDir(), "curt.db")
	for _, suffix := range []string{"", "-wal", ".state"} { // what a process that is killed here leaves
		bytes, err := os.ReadFile(old + suffix)
		if err == nil {
			err = os.WriteFile(path+suffix, bytes, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.Stat(path + "-wal"); err != nil || left.Size() == 0 {
		t.Fatalf("nothing is left in the WAL, so nothing is tried: %v", err)
	}
	again, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	// Two pages for each length of codes, of which ids are skipped, since this is a copy: what is
	// leased, and that this release did it; one more where that is kept; and one for the store's new generation.
	if left, err := os.Stat(path + "-wal"); err != nil || left.Size() > (3+2*(codegen.MaxLength-codegen.MinLength+1))*4200 {
		t.Errorf("the WAL holds %d bytes after opening: %v", left.Size(), err)
	}
	for _, l := range stored {
		if got, err := again.Get(t.Context(), l.Key); err != nil || got.ID != l.ID {
			t.Errorf("%s: %v, %v", l.Key, got.ID, err)
		}
	}
}
