package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/counts"
	"curt/internal/backend/sqlite/leases"
	"curt/internal/backend/sqlite/searchindex"
	"curt/internal/backend/sqlite/snapshot"
	"curt/internal/link"
)

// schema1 makes a database as it was with the first migration only, with rows in it.
func schema1(t *testing.T, name, file string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), file)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	migrations := os.DirFS(migrationsOf(name))
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile("testdata/schema1/" + name + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), string(rows)); err != nil {
		t.Fatal(err)
	}
	return path
}

// migrationsOf returns the folder of a database's migrations.
func migrationsOf(name string) string {
	return map[string]string{"links": "migrations/links", "clicks": "counts/migrations/clicks", "search": "searchindex/migrations/search"}[name]
}

// newest is the last migration.
func newest(t *testing.T, name string) (version int64) {
	t.Helper()
	files, err := fs.Glob(os.DirFS(migrationsOf(name)), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		number, _, _ := strings.Cut(f, "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		version = max(version, n)
	}
	return version
}

// checkNewest fails unless the file has the newest schema, whole.
func checkNewest(t *testing.T, name, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var version int64
	var state string
	if err := db.QueryRowContext(t.Context(), `SELECT max(version_id) FROM goose_db_version`).Scan(&version); err != nil || version != newest(t, name) {
		t.Errorf("schema %d, %v", version, err)
	}
	if err := db.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&state); err != nil || state != "ok" {
		t.Errorf("integrity: %s, %v", state, err)
	}
}

// TestLinksOfSchema1 reads links of every kind, and goes on with them.
func TestLinksOfSchema1(t *testing.T) {
	path := schema1(t, "links", "curt.db")
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.List(t.Context(), link.Filter{Workspace: link.WorkspaceDefault}, link.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	byTitle := map[string]link.Link{}
	for _, l := range all.Links {
		byTitle[l.Title] = l
		target, err := s.Lookup(t.Context(), l.Key)
		if err != nil || target.Destination != l.Destination || target.Version != l.Version {
			t.Errorf("%s %q leads to %+v, %v", l.Key, l.Title, target, err)
		}
	}
	checkOldLinks(t, s, byTitle)
	title := byTitle["changed"]
	title.Title = "changed again"
	if l, err := s.Replace(t.Context(), title, link.Edit{}); err != nil || l.Version != title.Version+1 {
		t.Errorf("replace: %+v, %v", l, err)
	}
	if _, err := s.Create(t.Context(), link.Link{
		ID: link.ID{1}, Key: link.Key{Code: "gone-for-good"}, Destination: "https://example.com/", Workspace: link.WorkspaceDefault,
		Status: link.Active, Safety: link.Clean, Redirect: 302, Created: time.Now().UTC(),
	}); err == nil {
		t.Error("the code of a deleted link was given away again")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	checkNewest(t, "links", path)
}

// TestSnapshotOfSchema1: a backup before the upgrade is taken by the new program, and one
// from before it is restored by the new program.
func TestSnapshotOfSchema1(t *testing.T) {
	path := schema1(t, "links", "curt.db")
	s, err := sqlite.TakeSnapshot(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	byTitle := map[string]link.Link{}
	rows, err := s.EachLink(t.Context(), func(l *link.Link) { byTitle[l.Title] = *l })
	if err != nil || rows.Read < uint64(len(byTitle)) || len(rows.Damaged) > 0 || rows.Hidden > 0 {
		t.Errorf("%+v, %v", rows, err)
	}
	if l := byTitle["tagged"]; strings.Join(l.Tags, "|") != "a|ä ö|x:y|2025" {
		t.Errorf("a link is %+v", l)
	}
	if lengths, err := s.StaleLeases(); err != nil || len(lengths) > 0 {
		t.Errorf("stale leases: %v, %v", lengths, err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := errors.Join(s.Copy(t.Context(), copied, func(int64, int64) {}), s.Close(), snapshot.Seal(t.Context(), copied, leases.ForgetDayKeys)); err != nil {
		t.Error(err)
	}
}

func checkOldLinks(t *testing.T, s *sqlite.Links, of map[string]link.Link) {
	t.Helper()
	for title, want := range map[string]link.Link{
		"an alias":              {Key: link.Key{Code: "spring-sale"}, Redirect: 302, Version: 1},
		"another case":          {Key: link.Key{Code: "Spring-Sale"}, Redirect: 302, Version: 1},
		"an alias there":        {Key: link.Key{Domain: "second.example", Code: "spring-sale"}, Redirect: 302, Version: 1},
		"308 with a query":      {Redirect: 308, ForwardQuery: true, Version: 1},
		"over, with a fallback": {Redirect: 302, Fallback: "https://example.com/over", Version: 1},
		"three clicks":          {Redirect: 302, MaxClicks: 3, Spent: 1, Version: 1},
		"tagged":                {Redirect: 302, Tags: []string{"a", "ä ö", "x:y", "2025"}, Version: 1},
		"changed":               {Redirect: 302, Tags: []string{"changed"}, Version: 4},
	} {
		got := of[title]
		if want.Key.Code == "" {
			want.Key = got.Key
		}
		if got.Key != want.Key || got.Redirect != want.Redirect || got.ForwardQuery != want.ForwardQuery || got.Fallback != want.Fallback ||
			got.MaxClicks != want.MaxClicks || got.Spent != want.Spent || strings.Join(got.Tags, "|") != strings.Join(want.Tags, "|") ||
			got.Version != want.Version || !strings.HasPrefix(got.Destination, "https://example.com/") {
			t.Errorf("%q is %+v", title, got)
		}
	}
	gone, err := s.Get(context.Background(), link.Key{Code: "gone-for-good"})
	if err != nil || gone.Status != link.Deleted || gone.Destination != "" {
		t.Errorf("a deleted link is %+v, %v", gone, err)
	}
}

// TestRollupsOfSchema1 reads what was counted.
func TestRollupsOfSchema1(t *testing.T) {
	path := schema1(t, "clicks", "clicks.db")
	s, err := counts.Open(t.Context(), counts.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	totals, generation, err := s.Totals(t.Context(), []link.Key{{Code: "spring-sale"}, {Domain: "second.example", Code: "spring-sale"}, {Code: "three-clicks"}, {}})
	if err != nil || generation == 0 {
		t.Fatalf("generation %d, %v", generation, err)
	}
	if a, b := totals[0], totals[1]; a.Clicks != 10 || a.Humans != 0 || b.Clicks != 10 || b.Humans != 10 || totals[2].Clicks != 0 || totals[3].Clicks != 20 {
		t.Errorf("totals are %+v", totals)
	}
	checkNewest(t, "clicks", path)
}

// TestSearchOfSchema1: the index of then is emptied, to be filled anew.
func TestSearchOfSchema1(t *testing.T) {
	path := schema1(t, "search", "search.db")
	s, err := searchindex.Open(t.Context(), searchindex.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if at, err := s.Position(t.Context()); err != nil || at.Filled || at.Changes != "" {
		t.Errorf("position %+v, %v", at, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	checkNewest(t, "search", path)
}
