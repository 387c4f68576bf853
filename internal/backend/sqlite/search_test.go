package sqlite_test

import (
	"path/filepath"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/search"
	"curt/internal/search/searchtest"
)

// searchFile opens search.db; small segments, so that a few hundred documents are
// merged as millions are.
func searchFile(t testing.TB, path string) *sqlite.Search {
	t.Helper()
	x, err := sqlite.OpenSearch(t.Context(), sqlite.SearchConfig{Path: path, SegmentDocs: 600, Log: nil})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return x
}

func TestSearch(t *testing.T) {
	paths := map[search.Index]string{}
	open := func(t testing.TB, path string) search.Index {
		x := searchFile(t, path)
		paths[x] = path
		return x
	}
	searchtest.Run(t, searchtest.Harness{
		Open: func(t testing.TB) search.Index { return open(t, filepath.Join(t.TempDir(), "search.db")) },
		Again: func(t testing.TB, x search.Index) search.Index {
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, paths[x])
		},
	})
}
