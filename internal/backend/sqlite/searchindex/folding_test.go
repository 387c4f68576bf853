package searchindex_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"curt/internal/link"
	"curt/internal/search"
)

// An index whose words were folded in the old way, or that lacks the hosts of fallbacks,
// is empty after the start, so that it is filled anew.
func TestSearchOfOtherWords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "search.db")
	x := searchFile(t, path)
	l := alias(1)
	if err := x.Apply(t.Context(), search.Batch{Position: search.Position{After: l.ID, Changes: "7", Filled: true}, Docs: []search.Document{search.NewDocument(&l)}}); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `ALTER TABLE state DROP COLUMN creates; ALTER TABLE state DROP COLUMN partitions`); err != nil { // of versions 5 and 6
		t.Fatal(err)
	}
	res, err := db.ExecContext(t.Context(), `DELETE FROM goose_db_version WHERE version_id >= 4`)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 3 {
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

// Where a change log has one partition, an index has its position where the release before had it,
// and each reads the other's.
func TestSearchPositionsOfTheReleaseBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "search.db")
	x := searchFile(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, c := range []struct {
		at         link.Position
		changes    int64
		partitions string
	}{{"7", 7, ""}, {"1:9,4", 9, "1:9,4"}, {"8", 8, ""}, {"", 0, ""}} {
		if err := x.Apply(t.Context(), search.Batch{Position: search.Position{Changes: c.at}}); err != nil {
			t.Fatal(err)
		}
		var changes int64
		var partitions string
		err := db.QueryRowContext(t.Context(), `SELECT changes, partitions FROM state`).Scan(&changes, &partitions)
		if err != nil || changes != c.changes || partitions != c.partitions {
			t.Errorf("%s is stored as %d, %q, %v", c.at, changes, partitions, err)
		}
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE state SET changes = 17`); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if at, err := searchFile(t, path).Position(t.Context()); err != nil || at.Changes != "17" {
		t.Errorf("position %+v, %v", at, err)
	}
}
