package sqlite_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// What cannot be read is neither "not found" nor done: every question whose table is gone
// is answered with link.ErrUnavailable.
func TestLinksSayWhatTheyCannotRead(t *testing.T) {
	stored, fresh := alias(1), alias(2)
	stored.Version = 1 // as Replace wants it; Create gives it
	asks := map[string]func(s *sqlite.Links, counted link.Link) error{
		"look up": func(s *sqlite.Links, _ link.Link) error { _, err := s.Lookup(t.Context(), stored.Key); return err },
		"look up a counted code": func(s *sqlite.Links, counted link.Link) error {
			_, err := s.Lookup(t.Context(), counted.Key)
			return err
		},
		"get": func(s *sqlite.Links, _ link.Link) error { _, err := s.Get(t.Context(), stored.Key); return err },
		"get many": func(s *sqlite.Links, _ link.Link) error {
			_, err := s.GetMany(t.Context(), []link.Key{stored.Key})
			return err
		},
		"replace": func(s *sqlite.Links, _ link.Link) error {
			_, err := s.Replace(t.Context(), stored, link.Edit{})
			return err
		},
		"create": func(s *sqlite.Links, _ link.Link) error { _, err := s.Create(t.Context(), fresh); return err },
		"spend":  func(s *sqlite.Links, _ link.Link) error { _, err := s.Spend(t.Context(), stored.Key, 1); return err },
		"find same": func(s *sqlite.Links, _ link.Link) error {
			_, err := s.FindSame(t.Context(), stored, linktest.Epoch())
			return err
		},
		"find or create": func(s *sqlite.Links, _ link.Link) error {
			_, _, err := s.FindOrCreate(t.Context(), fresh, linktest.Epoch())
			return err
		},
		"count": func(s *sqlite.Links, _ link.Link) error { _, err := s.Count(t.Context()); return err },
		"expired": func(s *sqlite.Links, _ link.Link) error {
			_, _, err := s.Expired(t.Context(), "", linktest.Epoch(), 9)
			return err
		},
		"chosen":  func(s *sqlite.Links, _ link.Link) error { _, _, err := s.Chosen(t.Context(), "", 9); return err },
		"changes": func(s *sqlite.Links, _ link.Link) error { _, _, err := s.Changes(t.Context(), "", 9); return err },
		"head":    func(s *sqlite.Links, _ link.Link) error { _, err := s.Head(t.Context()); return err },
		"lease":   func(s *sqlite.Links, _ link.Link) error { _, err := s.Lease(t.Context(), "codes-7", 1); return err },
		"leased":  func(s *sqlite.Links, _ link.Link) error { _, err := s.Leased(t.Context(), "codes-7"); return err },
		"day key": func(s *sqlite.Links, _ link.Link) error {
			_, err := s.DayKey(t.Context(), linktest.Epoch())
			return err
		},
	}
	writes := []string{"replace", "create", "find or create"}
	for table, names := range map[string][]string{
		"links":    {"look up", "look up a counted code", "get", "get many", "replace", "create", "spend", "find same", "find or create", "count", "expired", "chosen"},
		"aliases":  {"look up", "get", "get many", "replace", "create", "spend", "find or create"},
		"changes":  {"changes", "head", "replace", "create", "find or create"},
		"leases":   {"lease", "leased"},
		"day_keys": {"day key"},
	} {
		s := new(files).fresh(t)
		mustCreate(t, s, stored)
		counted := mustCreate(t, s, linktest.Counted(countedCodes(t)(s)(7), 7, linktest.Epoch()))
		before, err := s.Count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Write(t.Context(), "ALTER TABLE "+table+" RENAME TO gone"); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := asks[name](s, counted); !errors.Is(err, link.ErrUnavailable) {
				t.Errorf("%s without %s: %v, want %v", name, table, err, link.ErrUnavailable)
			}
			if table == "links" || !slices.Contains(writes, name) {
				continue
			}
			if after, err := s.Count(t.Context()); err != nil || after != before {
				t.Errorf("%s without %s was refused and left %d links of %d, %v", name, table, after, before, err)
			}
		}
	}
}

// A row that is damaged keeps its code: who wants it is refused, and does not get a
// second link of that code.
func TestLinksADamagedRowKeepsItsCode(t *testing.T) {
	s := new(files).fresh(t)
	code := countedCodes(t)(s)
	counted := mustCreate(t, s, linktest.Counted(code(7), 7, linktest.Epoch()))
	if err := s.Write(t.Context(), "UPDATE links SET destination = 'https://evil.example/'"); err != nil {
		t.Fatal(err)
	}
	for _, byHand := range []bool{true, false} {
		rival := linktest.Counted(counted.Key.Code, 8, linktest.Epoch())
		rival.CodeKind = linktest.Kind(!byHand)
		if got, err := s.Create(t.Context(), rival); !errors.Is(err, sqlitedb.ErrCorrupt) {
			t.Errorf("create over a damaged row (by hand %t): %v, %v; want %v", byHand, got.Key, err, sqlitedb.ErrCorrupt)
		}
	}
	if n, err := s.Count(t.Context()); err != nil || n != 1 {
		t.Errorf("%d links, %v", n, err)
	}
	if same, err := s.FindSame(t.Context(), counted, linktest.Epoch()); !errors.Is(err, sqlitedb.ErrCorrupt) && !errors.Is(err, link.ErrNotFound) {
		t.Errorf("a damaged row stands in: %v, %v", same.Key, err)
	}
}

// A commit that fails has an unknown end, so nothing is written behind it; reads go on.
func TestLinksAFailedCommitIsUncertain(t *testing.T) {
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: filepath.Join(t.TempDir(), "curt.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	first := mustCreate(t, s, alias(1))
	for _, q := range []string{
		"PRAGMA foreign_keys = ON", "CREATE TABLE parents (n INTEGER PRIMARY KEY)",
		"CREATE TABLE children (parent REFERENCES parents (n) DEFERRABLE INITIALLY DEFERRED)",
	} {
		if err := s.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	// The statement succeeds; what it broke is found by COMMIT.
	if err := s.Write(t.Context(), "INSERT INTO children VALUES (7)"); !errors.Is(err, link.ErrUncertain) {
		t.Errorf("a commit that failed: %v, want %v", err, link.ErrUncertain)
	}
	if err := s.Healthy(); !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("healthy after it: %v", err)
	}
	if _, err := s.Create(t.Context(), alias(2)); !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("a create after it: %v, want %v", err, link.ErrUnavailable)
	}
	if got, err := s.Get(t.Context(), first.Key); err != nil || !cmp.Equal(got, first) {
		t.Errorf("a read after it: %v", err)
	}
}

// Stored hears of each link that is durable, once, however it was made, and of none that
// was refused or rolled back.
func TestLinksStoredHearsOfEachLink(t *testing.T) {
	var heard []link.ID
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{
		Path: filepath.Join(t.TempDir(), "curt.db"), Stored: func(id link.ID) { heard = append(heard, id) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	counted := mustCreate(t, s, linktest.Counted(countedCodes(t)(s)(7), 7, linktest.Epoch()))
	byHand := mustCreate(t, s, alias(1))
	mustCreate(t, s, byHand) // again: it is there already
	rival := alias(3)
	rival.Key = byHand.Key
	if _, err := s.Create(t.Context(), rival); !errors.Is(err, link.ErrExists) {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), "CREATE TRIGGER full BEFORE INSERT ON changes BEGIN SELECT RAISE(ABORT, 'no'); END"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), alias(4)); !errors.Is(err, link.ErrUnavailable) {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), "DROP TRIGGER full"); err != nil {
		t.Fatal(err)
	}
	last := mustCreate(t, s, alias(5))
	if want := []link.ID{counted.ID, byHand.ID, last.ID}; !slices.Equal(heard, want) {
		t.Errorf("heard of %v, want %v", heard, want)
	}
}

// A key of visitor tags that could not be kept is given to nobody: the next start would
// have another for the same day.
func TestLinksAKeyThatIsNotKeptIsNotGiven(t *testing.T) {
	s := new(files).fresh(t)
	if err := s.Write(t.Context(), "CREATE TRIGGER full BEFORE INSERT ON day_keys BEGIN SELECT RAISE(ABORT, 'no'); END"); err != nil {
		t.Fatal(err)
	}
	if key, err := s.DayKey(t.Context(), linktest.Epoch().Add(time.Hour)); !errors.Is(err, link.ErrUnavailable) || key != [16]byte{} {
		t.Errorf("a key that was not kept: %x, %v", key, err)
	}
}

// Unset caches have the sizes that the configuration promises.
func TestLinksDefaultCaches(t *testing.T) {
	s := new(files).fresh(t)
	caches, err := s.ReaderCaches(t.Context())
	if want := []int64{-1024, -1024, -256, -256}; err != nil || !slices.Equal(caches, want) {
		t.Errorf("page caches of the readers %d, %v; want %d", caches, err, want)
	}
}
