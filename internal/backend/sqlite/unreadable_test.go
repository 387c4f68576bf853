package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
)

// spoiled is a store of which SQLite cannot read the names of links: no request has yet.
func spoiled(t *testing.T) (s *sqlite.Links, mend func()) {
	t.Helper()
	f, path := new(files), filepath.Join(t.TempDir(), "curt.db")
	s = f.open(t, path)
	for n := range 9 {
		mustCreate(t, s, alias(n))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var root int64
	if err := errors.Join(db.QueryRowContext(t.Context(), "SELECT rootpage FROM sqlite_schema WHERE name = 'aliases'").Scan(&root), db.Close()); err != nil {
		t.Fatal(err)
	}
	s = f.open(t, path)
	file, err := os.OpenFile(path, os.O_RDWR, 0) // closed at the end, because of SQLite's locks
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	page := make([]byte, pageBytes)
	if _, err := file.ReadAt(page, (root-1)*pageBytes); err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) {
		if _, err := file.WriteAt(b, (root-1)*pageBytes); err != nil {
			t.Fatal(err)
		}
	}
	write(make([]byte, pageBytes))
	return s, func() { write(page) }
}

// A disk that does not read for a while is told from a damaged file, and the writer goes on
// without a restart when it reads again.
func TestLinksWriteOnWhenTheDiskReadsAgain(t *testing.T) {
	s, mend := spoiled(t)
	var failing atomic.Bool
	failing.Store(true)
	s.SetDisk(func() error {
		if failing.Load() {
			return fmt.Errorf("%w: %w", sqlitedb.ErrUnreadable, syscall.EIO)
		}
		return nil
	})
	for what, err := range map[string]error{
		"a read":  func() error { _, err := s.Get(t.Context(), alias(1).Key); return err }(),
		"a write": func() error { _, err := s.Create(t.Context(), alias(10)); return err }(),
	} {
		if !errors.Is(err, link.ErrUnavailable) || !errors.Is(err, sqlitedb.ErrUnreadable) || errors.Is(err, sqlitedb.ErrCorrupt) || !strings.Contains(err.Error(), "input/output error") {
			t.Errorf("%s: %v", what, err)
		}
	}
	await(t, "the reason is told", func() bool {
		err := s.Healthy()
		return errors.Is(err, sqlitedb.ErrUnreadable) && strings.Contains(err.Error(), "input/output error") && !strings.Contains(err.Error(), "damaged")
	})
	mend()
	failing.Store(false)
	await(t, "writes are accepted again", func() bool { return s.Healthy() == nil })
	mustCreate(t, s, alias(11))
	if n, err := s.Count(t.Context()); err != nil || n != 10 {
		t.Errorf("%d links, %v", n, err)
	}
}

// What the disk reads, and is damage all the same, stays so.
func TestLinksRefuseWritesToADamagedFile(t *testing.T) {
	s, _ := spoiled(t)
	if _, err := s.Create(t.Context(), alias(10)); !errors.Is(err, sqlitedb.ErrCorrupt) {
		t.Errorf("a write: %v, want %v", err, sqlitedb.ErrCorrupt)
	}
	await(t, "the damage is told", func() bool { return errors.Is(s.Healthy(), sqlitedb.ErrCorrupt) })
	if _, err := s.Create(t.Context(), alias(11)); !errors.Is(err, sqlitedb.ErrCorrupt) || !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("a write after it: %v", err)
	}
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s", what)
		}
	}
}
