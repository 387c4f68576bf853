package faults_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // opens what the server left behind
)

// checkIntegrity opens both databases of an ended server and lets SQLite look at
// every page.
func checkIntegrity(t *testing.T, data string) {
	t.Helper()
	for _, name := range []string{"curt.db", "clicks.db"} {
		db, err := sql.Open("sqlite", filepath.Join(data, name))
		if err != nil {
			t.Fatal(err)
		}
		var verdict string
		if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
			t.Errorf("%s: %s %v", name, verdict, err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
