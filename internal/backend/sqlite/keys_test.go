package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/codegen/keypool"
	"curt/internal/link"
)

// openPool opens a store until shut is called.
func openPool(t *testing.T, path string) (s *sqlite.Links, shut func()) {
	t.Helper()
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	shut = func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	return s, shut
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestUnusedKeysOfAnOldFileAreDropped: curt.db comes back from a copy by hand. Keys of it were taken since, with or
// without a lease, by the process that the copy was taken from.
func TestUnusedKeysOfAnOldFileAreDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	s, shut := openPool(t, path)
	keys := s.Keys()
	for _, k := range []link.Code{"aaaaaaa", "bbbbbbb", "ccccccc"} {
		if err := keys.Put(t.Context(), "codes-7", []link.Code{k}); err != nil {
			t.Fatal(err)
		}
	}
	take := func(k keypool.Store, want link.Code) {
		t.Helper()
		b, err := k.Take(t.Context(), "codes-7", "a")
		if err != nil || len(b.Keys) != 1 || b.Keys[0] != want {
			t.Fatalf("took %+v, %v; want %s", b, err, want)
		}
	}
	take(keys, "aaaaaaa")
	shut()
	saved := filepath.Join(t.TempDir(), "curt.db")
	copyFile(t, path, saved)

	s, shut = openPool(t, path) // a start as such drops nothing
	take(s.Keys(), "bbbbbbb")
	shut()

	copyFile(t, saved, path)
	s, shut = openPool(t, path)
	defer shut()
	if b, err := s.Keys().Take(t.Context(), "codes-7", "a"); !errors.Is(err, keypool.ErrEmpty) {
		t.Errorf("took %+v, %v from a file that is older than its state file", b, err)
	}
	if err := s.Keys().Put(t.Context(), "codes-7", []link.Code{"ddddddd"}); err != nil {
		t.Fatal(err)
	}
	take(s.Keys(), "ddddddd")
}

// TestTakesAreKeptOutside: the state file knows of a take that the files of the database do not have, in the same
// generation.
func TestTakesAreKeptOutside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	s, shut := openPool(t, path)
	defer shut()
	for _, k := range []link.Code{"aaaaaaa", "bbbbbbb"} {
		if err := s.Keys().Put(t.Context(), "codes-7", []link.Code{k}); err != nil {
			t.Fatal(err)
		}
	}
	before := kill(t, path)
	if _, err := s.Keys().Take(t.Context(), "codes-7", "a"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		left dead
		want link.Code // "" = none
	}{
		{kill(t, path), "bbbbbbb"},
		{before, "aaaaaaa"},
		{before.with(".state", kill(t, path)[".state"]), ""},
	} {
		other, done := openPool(t, c.left.in(t, t.TempDir()))
		b, err := other.Keys().Take(t.Context(), "codes-7", "a")
		switch {
		case c.want == "" && !errors.Is(err, keypool.ErrEmpty):
			t.Errorf("took %+v, %v, which another process had", b, err)
		case c.want != "" && (err != nil || b.Keys[0] != c.want):
			t.Errorf("took %+v, %v; want %s", b, err, c.want)
		}
		done()
	}
}

// TestACopyHasNoUnusedKeys: two stores that go on from one file never have the same keys.
func TestACopyHasNoUnusedKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	s, shut := openPool(t, path)
	if err := s.Keys().Put(t.Context(), "codes-7", []link.Code{"aaaaaaa"}); err != nil {
		t.Fatal(err)
	}
	shut()
	for _, withState := range []bool{false, true} {
		copied := filepath.Join(t.TempDir(), "curt.db")
		copyFile(t, path, copied)
		if withState {
			copyFile(t, path+".state", copied+".state")
		}
		other, done := openPool(t, copied)
		if b, err := other.Keys().Take(t.Context(), "codes-7", "a"); !errors.Is(err, keypool.ErrEmpty) {
			t.Errorf("a copy took %+v, %v; with its state file: %v", b, err, withState)
		}
		done()
	}
	s, shut = openPool(t, path)
	defer shut()
	if _, err := s.Keys().Take(t.Context(), "codes-7", "a"); err != nil {
		t.Errorf("the store that was copied: %v", err)
	}
}
