package postgres_test

import (
	"errors"
	"testing"

	"curt/internal/link"
	"curt/internal/link/linktest"
)

// refusedRows has the database refuse what this program would store: the one link is invalid,
// and those that came with it are made.
func refusedRows(t *testing.T, d *databases) {
	s := d.fresh(t)
	url, _ := d.urls.Load(s)
	exec(t, url.(string), "ALTER TABLE links ADD CONSTRAINT narrow CHECK (title <> 'refused')")
	of := func(n int, code string) link.Link {
		l := newLink(n, code)
		l.Destination += code
		return l
	}
	bad := of(1, "bad")
	bad.Title = "refused"
	if _, err := s.Create(t.Context(), bad); !errors.Is(err, link.ErrInvalid) {
		t.Errorf("create: %v, want ErrInvalid", err)
	}
	if _, _, err := s.FindOrCreate(t.Context(), bad, linktest.Epoch()); !errors.Is(err, link.ErrInvalid) {
		t.Errorf("find or create: %v, want ErrInvalid", err)
	}
	entries := linktest.Entries(of(2, "one"), bad, of(3, "two"), bad, of(4, "three"))
	entries[3].Dedupe, entries[4].Dedupe = true, true
	results, err := s.CreateMany(t.Context(), linktest.Epoch(), entries)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		_, got := s.Get(t.Context(), e.Link.Key)
		if e.Link.Title == "refused" {
			if !errors.Is(results[i].Err, link.ErrInvalid) || !errors.Is(got, link.ErrNotFound) {
				t.Errorf("entry %d: %v, and then %v; want ErrInvalid and nothing stored", i, results[i].Err, got)
			}
		} else if results[i].Err != nil || got != nil {
			t.Errorf("entry %d: %v, and then %v", i, results[i].Err, got)
		}
	}
}
