package postgres_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks/ship"
)

// senders enlists lives of folders, and looks who is waited for.
func senders(t *testing.T, d *databases) {
	s := d.fresh(t).Senders()
	now := time.Now().UTC().Truncate(time.Millisecond)
	at := func(ago time.Duration) time.Time { return now.Add(-ago) }
	enlist := func(all ...ship.Sender) {
		t.Helper()
		for _, one := range all {
			if err := s.Enlist(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
	}
	are := func(what string, want ...ship.Sender) {
		t.Helper()
		got, err := s.All(t.Context())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	are("before the first")
	a, b := ship.Sender{Folder: "A", Host: "one", Instance: math.MaxUint64, Began: at(time.Hour)}, ship.Sender{Folder: "b", Host: "two", Instance: 7, Began: at(time.Minute)}
	enlist(b, a, a)
	are("two folders", a, b)

	earlier, later := a, a
	earlier.Began, later.Began = at(2*time.Hour), at(0)
	enlist(earlier, later)
	are("what is older is still to come", earlier, b)

	// Another life of the folder says anew how old what it holds is; the end of the one before
	// does not end it.
	next := ship.Sender{Folder: "A", Host: "three", Instance: 8, Began: at(time.Second)}
	enlist(next)
	if err := s.Dismiss(t.Context(), earlier); err != nil {
		t.Fatal(err)
	}
	are("another life", next, b)

	for folder, want := range map[string]bool{"b": true, "B": false, "": false} {
		if found, err := s.Forget(t.Context(), folder); err != nil || found != want {
			t.Errorf("forget %q: %v, %v", folder, found, err)
		}
	}
	enlist(b)
	all, err := s.All(t.Context())
	if err != nil || len(all) != 2 || all[1].Forgotten.Before(now.Add(-time.Minute)) || !all[0].Forgotten.IsZero() {
		t.Errorf("forgotten: %+v, %v", all, err)
	}
	b.Instance = 9
	enlist(b)
	are("a folder that was forgotten lives again", next, b)

	if err := errors.Join(s.Dismiss(t.Context(), next), s.Dismiss(t.Context(), b)); err != nil {
		t.Fatal(err)
	}
	are("after all have ended")

	// The clock of a server that is ahead is not believed.
	ahead := ship.Sender{Folder: "c", Instance: 1, Began: now.Add(24 * time.Hour)}
	enlist(ahead)
	if all, err := s.All(t.Context()); err != nil || len(all) != 1 || all[0].Began.After(now.Add(time.Hour)) || all[0].Began.Before(now.Add(-time.Hour)) {
		t.Errorf("a clock that is ahead: %+v, %v", all, err)
	}
	enlist(ship.Sender{Folder: "c", Instance: 1})
	if all, err := s.All(t.Context()); err != nil || len(all) != 1 || all[0].Began.UnixMilli() != 0 {
		t.Errorf("nothing is known of what it holds: %+v, %v", all, err)
	}
}
