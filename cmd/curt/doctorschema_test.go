package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// schemas are folders of other releases: damages that the check of each file must notice.
// A database of clicks has had one schema only, and so no earlier one.
func schemas() (all []damage) {
	for _, file := range []string{"curt.db", "clicks.db", "search.db"} {
		state := func(statement string) func(*testing.T, string) {
			return func(t *testing.T, dir string) { change(t, filepath.Join(dir, file), statement) }
		}
		all = append(all,
			damage{file + " of a later release", file, "warning", "of a later release", nil, state("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)")},
			damage{file + " for later releases only", file, "failure", "does not start", nil, state("PRAGMA user_version = 99")},
			damage{file + " of no schema", file, "failure", "schema", nil, state("DROP TABLE goose_db_version")},
		)
		if file != "clicks.db" {
			all = append(all, damage{file + " of an earlier release", file, "warning", "this release uses", nil, state("DELETE FROM goose_db_version WHERE version_id > 1")})
		}
	}
	return all
}

// Each file's way back is its own: search.db is made again, the others are restored.
func TestDoctorSaysTheWayBackFromALaterSchema(t *testing.T) {
	healthy := inhabited(t)
	for file, way := range map[string]string{"curt.db": "restore a backup", "clicks.db": "restore a backup", "search.db": "delete search.db"} {
		change(t, filepath.Join(healthy, file), "PRAGMA user_version = 99")
		_, found := examine(t, healthy)
		said := ""
		for _, f := range found {
			if f.Check == file && f.Level == "failure" {
				said = f.Advice
			}
		}
		if !strings.Contains(said, "start the later release") || !strings.Contains(said, way) {
			t.Errorf("%s: the advice is %q, without %q", file, said, way)
		}
	}
}
