package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"curt/internal/search"
)

// An index whose words were folded in the old way, or that lacks the hosts of fallbacks,
// is empty after the start, so that it is filled anew.
func TestSearchOfOtherWords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "search.db")
	x := searchFile(t, path)
	l := alias(1)
	if err := x.Apply(t.Context(), search.Batch{Position: search.Position{After: l.ID, Changes: 7, Filled: true}, Docs: []search.Document{search.NewDocument(&l)}}); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `ALTER TABLE state DROP COLUMN creates`); err != nil { // of version 5
		t.Fatal(err)
	}
	res, err := db.ExecContext(t.Context(), `DELETE FROM goose_db_version WHERE version_id >= 4`)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 2 {
		t.Fatalf("%d versions taken back: %v", n, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	x = searchFile(t, path)
	if at, err := x.Position(t.Context()); err != nil || at != (search.Position{}) {
		t.Errorf("position %+v: %v", at, err)
	}
	if hits, err := x.Find(t.Context(), search.Query{}, search.Page{Limit: 1}); err != nil || len(hits.Found) != 0 {
		t.Errorf("found %v: %v", hits, err)
	}
}
