package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"curt/internal/backend/sqlite"
	"curt/internal/link"
)

// A release before this one writes entries without a kind, and deletes links whose old values
// are in the log: they go all the same. So does the last click that it takes.
func TestLinksEventsOfAnOlderRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path, Region: "eu"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	l, err := s.Create(t.Context(), link.Link{
		ID: link.ID{1}, Key: link.Key{Code: "alias"}, Destination: "https://example.com/secret", Workspace: "acme",
		Status: link.Active, Safety: link.Clean, Redirect: 302, MaxClicks: 1, Created: time.UnixMilli(1).UTC(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = link.Update(t.Context(), s, l.Key, "me", func(l *link.Link) error { l.Destination = "https://example.com/"; return nil }); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	old := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	old(`UPDATE links SET spent = 1 WHERE code = 'alias'`)
	events, _, err := s.Events(t.Context(), "", 9)
	if err != nil || len(events) != 3 || events[0].Region != "eu" || len(events[1].Fields) != 1 || string(events[1].Fields[0].Old) != `"https://example.com/secret"` {
		t.Fatalf("%+v, %v", events, err)
	}
	if e := events[2]; e.Kind != link.WasExhausted || e.ID != l.ID || e.Workspace != "acme" || e.Version != 2 || time.Since(e.At).Abs() > time.Hour {
		t.Errorf("the last click: %+v", e)
	}
	old(`UPDATE links SET status = 3, version = 3, destination = '' WHERE code = 'alias'`)
	old(`INSERT INTO changes (domain, code, version) VALUES ('', 'alias', 3)`)
	events, _, err = s.Events(t.Context(), "", 9)
	if err != nil || len(events) != 4 || events[1].Fields != nil {
		t.Fatalf("of a deleted link: %+v, %v", events, err)
	}
	if e := events[3]; e.Kind != "" || e.Key != l.Key || e.Version != 3 {
		t.Errorf("of the release before: %+v", e)
	}
	keys, next, more, err := s.ExpiryChanges(t.Context(), "3", 9)
	if err != nil || len(keys) != 1 || keys[0] != l.Key || next != "4" || more {
		t.Errorf("of the release before, which does not say what changed: %v, %q, %v, %v", keys, next, more, err)
	}
}
