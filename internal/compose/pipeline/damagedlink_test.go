package pipeline

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // to damage a row

	"curt/internal/backend/sqlite"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/search"
	"curt/internal/search/searchtest"
)

// damagedLinks is a store of four links, of which the first two are damaged: one in what a
// redirect does not use, the other in its workspace.
func damagedLinks(t *testing.T) (s *sqlite.Links, keys []link.Key) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "curt.db")
	s = openLinks(t, path)
	for n := range uint64(4) {
		l := linktest.Counted(link.Code(fmt.Sprintf("code-%d", n)), n, linktest.Epoch())
		l.CodeKind = link.Chosen
		if _, err := s.Create(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, l.Key)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"DROP TRIGGER links_whole", "UPDATE links SET tags = '9:tag' WHERE code = 'code-0'",
		"UPDATE links SET workspace = 2 WHERE code = 'code-1'",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return openLinks(t, path), keys
}

func openLinks(t *testing.T, path string) *sqlite.Links {
	t.Helper()
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A damaged link keeps no click of another from being counted: it counts for its workspace, as
// far as that can be told.
func TestDamagedLinksCountForTheirWorkspaceOrNone(t *testing.T) {
	s, keys := damagedLinks(t)
	names, err := WorkspacesOf(t.Context(), s, append(keys, link.Key{Code: "nowhere"}))
	if want := []string{"default", "", "default", "default", ""}; err != nil || !slices.Equal(names, want) {
		t.Errorf("workspaces %q, %v; want %q", names, err, want)
	}
	if n, example := s.Damaged(); n != 2 || example != keys[0].String() {
		t.Errorf("%d links were found damaged, among them %s", n, example)
	}
}

// The index of words takes in every other link, and does not stop.
func TestTheSearchGoesOnPastDamagedLinks(t *testing.T) {
	s, _ := damagedLinks(t)
	x := search.NewIndexer(search.IndexerConfig{Links: s, Creates: s, Index: searchtest.NewMemory()})
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = x.Run(ctx) })
	defer running.Wait()
	defer end()
	until(t, "the walk has come to its end", func() bool { return x.Stats().Complete })
	if n := x.Stats().Indexed; n != 2 {
		t.Errorf("%d links are indexed, want those 2 that are whole", n)
	}
}
