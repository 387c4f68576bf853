package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/leases"
	"curt/internal/backend/sqlite/snapshot"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// A snapshot is of its moment whatever is written afterwards, until Renew; a walk by
// pages sees every link once.
func TestSnapshotIsOfOneMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	s := new(files).open(t, path)
	code := countedCodes(t)(s)
	for n := range uint64(25) {
		mustCreate(t, s, linktest.Counted(code(n), n, linktest.Epoch()))
		mustCreate(t, s, alias(int(n)))
	}
	taken, err := sqlite.TakeSnapshot(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := taken.Close(); err != nil {
			t.Error(err)
		}
	}()
	mustCreate(t, s, alias(1000))
	if n := len(walked(t, taken)); n != 50 {
		t.Errorf("a snapshot of 50 links has %d", n)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := taken.Copy(t.Context(), copied, func(int64, int64) {}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(snapshot.Seal(t.Context(), copied, leases.ForgetDayKeys), snapshot.Check(t.Context(), copied)); err != nil {
		t.Fatal(err)
	}
	again := new(files).open(t, copied)
	if n, err := again.Count(t.Context()); n != 50 || err != nil {
		t.Errorf("the copy has %d links: %v", n, err)
	}
	if err := taken.Renew(); err != nil {
		t.Fatal(err)
	}
	if n := len(walked(t, taken)); n != 51 {
		t.Errorf("renewed, it has %d of 51", n)
	}
	version, err := taken.Schema()
	newest, known := sqlite.Schema()
	if version != newest || err != nil || known != nil {
		t.Errorf("schema %d, the program's is %d: %v %v", version, newest, err, known)
	}
	if _, err := sqlite.TakeSnapshot(t.Context(), filepath.Join(t.TempDir(), "none.db")); err == nil {
		t.Error("a snapshot of no file")
	}
}

func walked(t *testing.T, s *sqlite.Snapshot) map[link.Key]link.Link {
	t.Helper()
	all := map[link.Key]link.Link{}
	for after, first := link.Cursor(""), true; first || after != ""; first = false {
		page, _, next, err := s.Links(after, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page {
			if _, twice := all[l.Key]; twice {
				t.Errorf("%s was seen twice", l.Key)
			}
			all[l.Key] = l
		}
		after = next
	}
	return all
}

// Imported links are as they were in every respect but CodeKind; importing them again
// finds them, and a key that somebody else has stays theirs.
func TestImportKeepsEverything(t *testing.T) {
	s := new(files).fresh(t)
	taken := mustCreate(t, s, alias(1))
	changed := alias(2)
	changed.Version, changed.MaxClicks, changed.Spent, changed.Tags = 7, 10, 3, []string{"a"}
	counted := linktest.Counted("aaaaaaa", 3, linktest.Epoch())
	counted.Version = 1
	dead := alias(4).Tombstone(linktest.Epoch().Add(time.Hour))
	dead.Version = 2
	other, invalid := alias(5), alias(6)
	other.Key, other.Version = taken.Key, 1
	wanted := []link.Link{changed, counted, dead, other, invalid}
	for round := range 2 {
		results, err := s.Import(t.Context(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results[:3] {
			want := wanted[i]
			want.CodeKind = link.Chosen
			got, err := s.Get(t.Context(), want.Key)
			if d := cmp.Diff(want, got); d != "" || err != nil || r.Err != nil || r.Found != (round == 1) {
				t.Errorf("%s in round %d: %v %v, found %t\n%s", want.Key, round, err, r.Err, r.Found, d)
			}
		}
		if !errors.Is(results[3].Err, link.ErrExists) || !errors.Is(results[4].Err, link.ErrInvalid) {
			t.Errorf("a taken key: %v; version 0: %v", results[3].Err, results[4].Err)
		}
	}
	if err := s.Integrity(t.Context()); err != nil {
		t.Error(err)
	}
}

// A deleted link that still has its content, as a file written by others may have it, is
// imported as what a delete would have left of it.
func TestImportErasesTheContentOfADeletedLink(t *testing.T) {
	s := new(files).fresh(t)
	full := alias(1)
	full.Destination, full.Fallback = "https://secret.example/", "https://secret.example/fallback"
	full.Title, full.Tags = "secret", []string{"secret"}
	full.Expires, full.MaxClicks, full.Spent = linktest.Epoch().Add(time.Hour), 10, 3
	full.Status, full.Version, full.Updated = link.Deleted, 2, linktest.Epoch().Add(time.Minute)
	results, err := s.Import(t.Context(), []link.Link{full})
	if err != nil || results[0].Err != nil {
		t.Fatal(err, results)
	}
	want := full.Tombstone(full.Updated)
	if d := cmp.Diff(want, results[0].Link); d != "" {
		t.Errorf("answered (-want +got):\n%s", d)
	}
	got, err := s.Get(t.Context(), full.Key)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("stored: %v (-want +got):\n%s", err, d)
	}
}
