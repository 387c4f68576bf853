package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"curt/internal/backend/sqlite"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// What a release created that writes no creates is told by the next start of one that does.
func TestLinksCreatesOfAnOlderRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	open := func() *sqlite.Links {
		s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	first, err := s.Lease(t.Context(), codegen.Counter(codegen.DefaultPrefix, 7), 100)
	if err != nil {
		t.Fatal(err)
	}
	code := countedCodes(t)(s)
	put := func(n uint64) {
		t.Helper()
		if _, err := s.Create(t.Context(), linktest.Counted(code(first+n), n, linktest.Epoch())); err != nil {
			t.Fatal(err)
		}
	}
	put(0)
	at, err := s.CreatesHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(1)
	put(2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `DELETE FROM creates WHERE seq > 1; UPDATE creates_leased SET next = ?`, int64(first)+1); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // once
		s = open()
		got, _, err := s.Creates(t.Context(), at, 10)
		if err != nil || len(got) != 2 || got[0].Key.Code != code(first+1) || got[1].Key.Code != code(first+2) {
			t.Errorf("%+v, %v", got, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A filter that denies a code saves look-ups and decides nothing: the insert does.
func TestLinksCreateACodeThatWasNeverIssued(t *testing.T) {
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{
		Path: filepath.Join(t.TempDir(), "curt.db"), NeverIssued: func(link.Code) bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for n, ends := range []time.Time{{}, linktest.Epoch().Add(time.Hour)} {
		l := linktest.Counted(link.Code(fmt.Sprint("drawn-", n)), uint64(2*n), linktest.Epoch())
		l.CodeKind, l.Expires = link.Chosen, ends
		made, err := s.Create(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := s.Create(t.Context(), l); err != nil || again.ID != made.ID {
			t.Errorf("the same create once more: %+v, %v", again, err)
		}
		other := linktest.Counted(l.Key.Code, uint64(2*n+1), linktest.Epoch())
		other.CodeKind = link.Chosen
		if _, err := s.Create(t.Context(), other); !errors.Is(err, link.ErrExists) {
			t.Errorf("another create of the code: %v", err)
		}
		events, _, err := s.Events(t.Context(), link.Sequence(n).Position(), 2)
		if err != nil || len(events) != 1 || !reflect.DeepEqual(events[0].Fields, link.CreatedFields(&made)) {
			t.Errorf("events: %+v, %v", events, err)
		}
	}
}

// A create that is refused for its id leaves nothing of the code that it asked for, whether it is deduped or not.
func TestLinksRefusedCreateLeavesItsCode(t *testing.T) {
	f := new(files)
	s := f.fresh(t)
	other := f.again(t, s) // whose rows are numbered behind those of the first
	chosen := func(code string, n int) link.Link { return linktest.Chosen(n, link.Code(code)) }
	for n, create := range []func(link.Link) error{
		func(l link.Link) error { _, err := s.Create(t.Context(), l); return err },
		func(l link.Link) error { _, _, err := s.FindOrCreate(t.Context(), l, linktest.Epoch()); return err },
	} {
		taken, wanted := chosen(fmt.Sprint("taken-", n), 10*n+1), chosen(fmt.Sprint("wanted-", n), 10*n+1)
		if err := create(taken); err != nil {
			t.Fatal(err)
		}
		if err := create(wanted); !errors.Is(err, link.ErrConflict) {
			t.Errorf("the id of another link: %v", err)
		}
		between := chosen(fmt.Sprint("between-", n), 10*n+2)
		if _, err := other.Create(t.Context(), between); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), wanted.Key); !errors.Is(err, link.ErrNotFound) {
			t.Errorf("the link that was refused: %v", err)
		}
		wanted = chosen(string(wanted.Key.Code), 10*n+3)
		if err := create(wanted); err != nil { // the row behind taken is that of between
			t.Errorf("its code: %v", err)
		}
		for _, l := range []link.Link{taken, between, wanted} {
			if got, err := s.Get(t.Context(), l.Key); err != nil || got.ID != l.ID {
				t.Errorf("%s: %+v, %v", l.Key, got, err)
			}
		}
	}
}
