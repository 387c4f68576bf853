package backup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/internal/backup"
)

// A restore that is interrupted while it moves files is finished by the next one,
// wherever that was: each move in turn fails, because something is in its way.
func TestInterruptedMovesAreFinished(t *testing.T) {
	from, whole := take(t, newFolder(t).data), newFolder(t).close(t)
	reference := t.TempDir()
	if _, err := restore(t, from, reference, false); err != nil {
		t.Fatal(err)
	}
	want := len(tree(t, reference))
	for _, name := range []string{"admin.key", "clicks", "clicks.db", "curt.db"} {
		data := t.TempDir()
		if err := os.CopyFS(data, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		before := len(tree(t, data))
		config := backup.RestoreConfig{From: from, Data: data, Force: true, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Progress: silent}
		aside := filepath.Join(data, "before-restore-20260102T030405Z")
		obstacle := filepath.Join(aside, name, "in-the-way")
		if err := os.MkdirAll(obstacle, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), config); err == nil || !strings.Contains(err.Error(), "aside") {
			t.Fatalf("%s was put aside over a folder: %v", name, err)
		}
		if err := backup.Unfinished(data); err == nil {
			t.Errorf("%s could not be moved, and a server may start", name)
		}
		if err := os.RemoveAll(filepath.Join(aside, name)); err != nil {
			t.Fatal(err)
		}
		r, err := backup.Restore(t.Context(), config)
		if err != nil || !r.Finished {
			t.Fatalf("finish: %v, %+v", err, r)
		}
		if err := backup.Unfinished(data); err != nil {
			t.Error(err)
		}
		all := tree(t, data)
		old := tree(t, aside)
		if len(all)-len(old) != want || len(old) != before {
			t.Errorf("%s: %d files of %d are new, %d of %d old", name, len(all)-len(old), want, len(old), before)
		}
	}
}
