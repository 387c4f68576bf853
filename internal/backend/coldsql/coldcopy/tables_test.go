package coldcopy_test

import (
	"context"
	"database/sql/driver"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/snapshot"
	"curt/internal/backend/sqlite/sqlitedb"
)

// TestEveryTableHasItsPlace: a table of curt.db, or a column of one that is copied, that a migration
// adds is in a list, or a move would forget it.
func TestEveryTableHasItsPlace(t *testing.T) {
	s := emptyFolder(t)
	tables := names(t, s, `SELECT name FROM sqlite_schema WHERE type = 'table'`)
	for _, name := range tables {
		_, apart := coldcopy.Apart()[name]
		if copied := slices.Contains(coldcopy.Copied(), name); copied == apart {
			t.Errorf("%s: copied is %t, apart is %t: a table is in one of the two lists", name, copied, apart)
		}
	}
	for _, name := range coldcopy.Copied() {
		if !slices.Contains(tables, name) {
			t.Errorf("%s is copied, and curt.db has no such table", name)
		}
		got := coldcopy.Columns(name)
		want := names(t, s, `SELECT name FROM pragma_table_info('`+name+`')`)
		if name == "workspaces" { // their numbers are the file's own
			want = slices.DeleteFunc(want, func(column string) bool { return column == "n" })
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("columns of %s in curt.db (-) and in the list (+):\n%s", name, diff)
		}
	}
}

// emptyFolder is a snapshot of a new curt.db.
func emptyFolder(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	path := filepath.Join(t.TempDir(), "curt.db")
	l, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Take(context.WithoutCancel(t.Context()), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func names(t *testing.T, s *snapshot.Snapshot, query string) (all []string) {
	t.Helper()
	err := s.View("read", func(tx *sqlitedb.Tx) error {
		return tx.Each(query, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			all = append(all, sc.Text())
			return sc.Damage()
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
