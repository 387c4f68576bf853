package sqlite_test

import (
	"sync"
	"testing"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/sqlite"
	"curt/internal/moderation/moderationtest"
)

// listing is the lists beside their journal.
type listing struct {
	coldsql.Journal
	coldsql.Lists
}

func TestLists(t *testing.T) {
	f := new(files)
	var opened sync.Map
	beside := func(l *sqlite.Links) moderationtest.Listing {
		s := &listing{l.Accounts().Accounts.Journal(), l.Accounts().Lists()}
		opened.Store(s, l)
		return s
	}
	moderationtest.RunLists(t, moderationtest.ListsHarness{
		Open: func(t testing.TB) moderationtest.Listing { return beside(f.fresh(t)) },
		Again: func(t testing.TB, s moderationtest.Listing) moderationtest.Listing {
			l, _ := opened.Load(s)
			return beside(f.again(t, l))
		},
	})
}
