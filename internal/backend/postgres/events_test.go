package postgres_test

import (
	"testing"
	"time"

	"curt/internal/backend/postgres"
	"curt/internal/link"
	"curt/internal/testkit"
)

// A release before this one writes entries without a kind, and deletes links whose old values
// are in the log, with the rights of before: they go all the same. So does the last click that it
// takes.
func TestEventsOfAnOlderRelease(t *testing.T) {
	server := testkit.StartPostgres(t, testkit.PostgresConfig{})
	d := server.URL(server.Copy(t, "template1"))
	s := opened(t, postgres.LinksConfig{URL: d, Region: "eu"})
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
	exec(t, d, `CREATE ROLE before; GRANT SELECT, UPDATE ON links TO before; GRANT SELECT, INSERT ON changes TO before`)
	exec(t, d, `SET ROLE before; UPDATE links SET spent = 1 WHERE code = 'alias'`)
	events, _, err := s.Events(t.Context(), "", 9)
	if err != nil || len(events) != 3 || events[0].Region != "eu" || len(events[1].Fields) != 1 || string(events[1].Fields[0].Old) != `"https://example.com/secret"` {
		t.Fatalf("%+v, %v", events, err)
	}
	if e := events[2]; e.Kind != link.WasExhausted || e.ID != l.ID || e.Workspace != "acme" || e.Version != 2 || time.Since(e.At).Abs() > time.Hour {
		t.Errorf("the last click: %+v", e)
	}
	exec(t, d, `SET ROLE before; UPDATE links SET status = 3, version = 3, destination = '' WHERE code = 'alias'`)
	exec(t, d, `SET ROLE before; INSERT INTO changes (seq, domain, code, version) VALUES (4, '', 'alias', 3)`)
	events, _, err = s.Events(t.Context(), "", 9)
	if err != nil || len(events) != 4 || events[1].Fields != nil {
		t.Fatalf("of a deleted link: %+v, %v", events, err)
	}
	if e := events[3]; e.Kind != "" || e.Key != l.Key || e.Version != 3 {
		t.Errorf("of the release before: %+v", e)
	}
}
