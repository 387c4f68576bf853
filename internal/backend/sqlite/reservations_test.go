package sqlite_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
)

func reserveFor(t *testing.T, s link.Reserver, code link.Code, w link.WorkspaceID) {
	t.Helper()
	c := link.Claim{Key: link.Key{Code: code}, Workspace: w, For: 5 * time.Minute, Most: 10}
	if _, _, err := s.Reserve(t.Context(), c); err != nil {
		t.Fatalf("reserve %s for %s: %v", code, w, err)
	}
}

// When the index of aliases is made anew around a damaged entry, reservations stay: no create may have their codes.
func TestReservationsOutliveDamagedAliases(t *testing.T) {
	s := new(files).fresh(t)
	for i, code := range []link.Code{"aa-1", "aa-3", "aa-5"} {
		mustCreate(t, s, linktest.Chosen(i, code))
	}
	reserveFor(t, s, "aa-2", "mine")
	reserveFor(t, s, "aa-9", "mine")
	// The entry of aa-3 now bears another name, so that its link is found without the index alone.
	if err := s.Exec(t.Context(), `UPDATE aliases SET code = 'aa-7' WHERE code = 'aa-3'`); err != nil {
		t.Fatal(err)
	}
	reserveFor(t, s, "aa-8", "mine") // beside the damaged entry
	if n, err := s.CountRows(t.Context(), `SELECT count(*) FROM aliases WHERE code = 'aa-3'`); err != nil || n != 1 {
		t.Fatalf("the index was not made anew: %d entries, %v", n, err)
	}
	for _, code := range []link.Code{"aa-2", "aa-8", "aa-9"} {
		l := linktest.Chosen(20, code)
		l.Workspace = "theirs"
		_, err := s.Create(t.Context(), l)
		if _, held := errors.AsType[*link.HeldError](err); !held {
			t.Errorf("create %s: %v", code, err)
		}
	}
	for i, code := range []link.Code{"aa-1", "aa-3", "aa-5"} {
		if _, err := s.Get(t.Context(), link.Key{Code: code}); err != nil {
			t.Errorf("get %d: %v", i, err)
		}
	}
}

// A clock that was far ahead holds no alias until its time comes.
func TestAReservationOfTheFutureHasLapsed(t *testing.T) {
	s := new(files).fresh(t)
	reserveFor(t, s, "sale", "mine")
	ahead := time.Hour.Milliseconds()
	if err := s.Exec(t.Context(), fmt.Sprintf(`UPDATE reservations SET since = since + %d, until = until + %d`, ahead, ahead)); err != nil {
		t.Fatal(err)
	}
	all, err := s.Occupants(t.Context(), []link.Key{{Code: "sale"}})
	if err != nil || all[0].Held() {
		t.Errorf("%+v, %v", all, err)
	}
	l := linktest.Chosen(1, "sale")
	l.Workspace = "theirs"
	mustCreate(t, s, l)
}

// What was reserved leaves nothing behind.
func TestReservationsLeaveNothing(t *testing.T) {
	s := new(files).fresh(t)
	for i := range 4 {
		reserveFor(t, s, link.Code(fmt.Sprintf("alias-%d", i)), "mine")
	}
	l := linktest.Chosen(1, "alias-0")
	l.Workspace = "mine"
	mustCreate(t, s, l)
	if err := s.Release(t.Context(), link.Key{Code: "alias-1"}, "mine"); err != nil {
		t.Fatal(err)
	}
	if err := s.Exec(t.Context(), `UPDATE reservations SET until = 1 WHERE code = 'alias-2'`); err != nil {
		t.Fatal(err)
	}
	if n, err := s.RemoveLapsed(t.Context(), 10); err != nil || n != 1 {
		t.Errorf("removed %d, %v", n, err)
	}
	for table, want := range map[string]int{"reservations": 1, "aliases": 2, "links": 1} {
		if n, err := s.CountRows(t.Context(), `SELECT count(*) FROM `+table); err != nil || n != int64(want) {
			t.Errorf("%d rows of %s, want %d: %v", n, table, want, err)
		}
	}
}
