package main

import (
	"path/filepath"
	"strings"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/cli"
	"curt/internal/link"
	"curt/internal/moderation"
)

// What was decided about a link where it comes from is decided where it goes, once.
func TestImportKeepsDecisions(t *testing.T) {
	const row = `{"id":"019d0000-0000-7000-8000-00000000000N","short_code":"moved-N","long_url":"https://example.com/","workspace_id":"w","status":"active","safety":"SAFETY","redirect_status":302,"created_at":"2020-01-02T03:04:05Z","updated_at":"2020-01-02T03:04:05Z","version":1}` + "\n"
	var rows string
	for n, safety := range []string{"clean", "quarantined", "legal"} {
		rows += strings.NewReplacer("N", string(rune('1'+n)), "SAFETY", safety).Replace(row)
	}
	data := t.TempDir()
	for range 2 {
		if code, out, said := curt(t.Context(), "import", "--data="+data, tempFile(t, "rows.jsonl", rows)); code != cli.ExitDone {
			t.Fatalf("exit %d: %s %s", code, out, said)
		}
	}
	links, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: filepath.Join(data, "curt.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = links.Close() }()
	var decided []link.Safety
	if _, err := moderation.Verify(t.Context(), links.Accounts().Journal(), func(e *moderation.Entry) {
		l, err := links.Get(t.Context(), link.Key{Code: link.Code(strings.TrimPrefix(e.Entity.Name, "/"))})
		if err != nil || l.ID != e.Link || l.Safety != e.Safety || e.Actor != "import" {
			t.Errorf("%+v of %+v, %v", e, l, err)
		}
		decided = append(decided, e.Safety)
	}); err != nil {
		t.Fatal(err)
	}
	if len(decided) != 2 || decided[0] != link.Quarantined || decided[1] != link.Legal {
		t.Errorf("the journal holds %v", decided)
	}
}
