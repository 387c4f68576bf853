package sqlite_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/codegen"
)

// TestACopyWithoutItsStateFileSkips copies curt.db alone, twice: neither copy, nor the store that
// goes on, may lease what another does.
func TestACopyWithoutItsStateFileSkips(t *testing.T) {
	from := filepath.Join(t.TempDir(), "curt.db")
	counter := codegen.Counter(codegen.DefaultPrefix, codegen.MinLength+3)
	lease := func(path string) uint64 {
		t.Helper()
		s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		first, err := s.Lease(t.Context(), counter, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return first
	}
	lease(from)
	var copies []string
	for range 2 {
		to := filepath.Join(t.TempDir(), "curt.db")
		in, err := os.Open(from)
		if err != nil {
			t.Fatal(err)
		}
		out, err := os.Create(to)
		if err == nil {
			_, err = io.Copy(out, in)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = in.Close(), out.Close()
		copies = append(copies, to)
	}
	next, one, two := lease(from), lease(copies[0]), lease(copies[1])
	if one < next+10_000 || two < next+10_000 || one == two {
		t.Errorf("the store goes on at %d, its copies at %d and %d", next, one, two)
	}
}
