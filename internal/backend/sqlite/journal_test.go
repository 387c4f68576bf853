package sqlite_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
)

func TestJournal(t *testing.T) {
	f := new(files)
	var opened sync.Map // of each journal, the links beside it
	beside := func(l *sqlite.Links) moderationtest.Store {
		j := l.Accounts().Journal()
		opened.Store(j, l)
		return j
	}
	moderationtest.Run(t, moderationtest.Harness{
		Open: func(t testing.TB) (moderationtest.Store, io.Closer) {
			l := f.fresh(t)
			return beside(l), l
		},
		Again: func(t testing.TB, s moderationtest.Store) moderationtest.Store {
			l, _ := opened.Load(s)
			return beside(f.again(t, l))
		},
	})
}

// What was erased is in no file any more, and neither is its salt.
func TestErasedTextsAreGoneFromTheDisk(t *testing.T) {
	folder := t.TempDir()
	l := new(files).open(t, filepath.Join(folder, "curt.db"))
	j, e := l.Accounts().Journal(), moderationtest.Decision(t, 1, link.Warn)
	e.Reason, e.Evidence = moderationtest.Text(t, "reported by Jane Roe"), moderationtest.Text(t, "jane.roe@example.com")
	if _, err := j.Append(t.Context(), e, moderationtest.Decision(t, 2, link.Warn)); err != nil {
		t.Fatal(err)
	}
	secrets := [][]byte{[]byte("Jane Roe"), []byte("jane.roe@example.com"), e.Reason.Salt[:], e.Evidence.Salt[:]}
	if n := onDisk(t, folder, secrets); n == 0 {
		t.Fatal("the texts were never on the disk: this test sees nothing")
	}
	by := moderation.Entry{At: e.At, Entity: e.Entity, Action: moderation.ActionErase, Safety: link.Clean, Actor: "moderator"}
	if _, err := j.Erase(t.Context(), 1, by); err != nil {
		t.Fatal(err)
	}
	if n := onDisk(t, folder, secrets); n > 0 {
		t.Errorf("%d of %d are still on the disk", n, len(secrets))
	}
	if _, err := moderation.Verify(t.Context(), j, nil); err != nil {
		t.Error(err)
	}
}

// onDisk counts the secrets that a folder's files hold.
func onDisk(t *testing.T, folder string, secrets [][]byte) (found int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, secret) {
				found++
				break
			}
		}
	}
	return found
}
