package sqlite_test

import (
	"path/filepath"
	"slices"
	"testing"

	"curt/internal/backend/sqlite"
)

func TestFirstIdleReaderIsLent(t *testing.T) {
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: filepath.Join(t.TempDir(), "curt.db"), Readers: 4, ReaderCacheKiB: 1024})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	caches, again, err := s.ReaderCaches()
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{-1024, -1024, -256, -256}; !slices.Equal(caches, want) {
		t.Errorf("page caches of the readers in the order of lending: %d, want %d", caches, want)
	}
	// Two were given back, the first one first: the first is lent all the same.
	if want := int64(-1024); again != want {
		t.Errorf("the reader that is lent next has a cache of %d, want that of the first, %d", again, want)
	}
}
