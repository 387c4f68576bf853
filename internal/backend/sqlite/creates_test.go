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
