package backup_test

import (
	"os"
	"path/filepath"
	"testing"

	"curt/internal/backup"
)

// A data folder that a restore makes refuses servers from the moment it is there; one that was
// there is left as it is.
func TestAFolderMadeForARestoreRefusesServers(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(data+".restoring", "restore.partial"), 0o700); err != nil { // of one that was killed sooner
		t.Fatal(err)
	}
	if err := backup.Prepare(data + string(filepath.Separator)); err != nil {
		t.Fatal(err)
	}
	if err := backup.Unfinished(data); err == nil {
		t.Error("a server starts on it")
	}
	if _, err := os.Stat(data + ".restoring"); err == nil {
		t.Error("something is left beside it")
	}
	used := t.TempDir()
	if err := backup.Prepare(used); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(used); err != nil || len(entries) > 0 {
		t.Errorf("a folder that was there has %v, %v", entries, err)
	}
}
