package backup_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backup"
)

// A data folder says when it was backed up last, until what stands there is no note.
func TestTheLastBackupIsNoted(t *testing.T) {
	live := newFolder(t)
	if got := backup.Last(live.data); got != (backup.Note{}) {
		t.Errorf("before the first: %v", got)
	}
	var want backup.Note
	for _, to := range []string{"one", "two"} {
		m, err := backup.Take(t.Context(), backup.TakeConfig{Data: live.data, To: filepath.Join(t.TempDir(), to), Progress: silent})
		if err != nil {
			t.Fatal(err)
		}
		want = backup.Note{Taken: m.Taken, Bytes: m.Bytes()}
		if diff := cmp.Diff(want, backup.Last(live.data)); diff != "" || time.Since(want.Taken) > time.Minute {
			t.Errorf("after %s (-want +got):\n%s", to, diff)
		}
	}
	for _, text := range []string{"", "{", `{"taken":"yesterday"}`, "[]"} {
		put(t, filepath.Join(live.data, "last-backup.json"), []byte(text))
		if got := backup.Last(live.data); got != (backup.Note{}) {
			t.Errorf("of %q: %v", text, got)
		}
	}
}
