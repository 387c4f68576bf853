package sqlite_test

import (
	"io"
	"sync"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/moderation/moderationtest"
)

func TestJournal(t *testing.T) {
	f := new(files)
	var opened sync.Map // of each journal, the links beside it
	beside := func(l *sqlite.Links) moderationtest.Store {
		j := l.Journal()
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
