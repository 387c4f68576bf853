package sqlite_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"curt/internal/link"
	"curt/internal/link/linktest"
)

// What reads ahead changes no answer, and ends with the store.
func TestLinksReadAhead(t *testing.T) {
	s := new(files).fresh(t)
	s.SetLarge(true)
	made := mustCreate(t, s, alias(1))
	entries := make([]link.Creation, 20)
	for i := range entries {
		entries[i].Link = alias(2 + i)
	}
	results, err := s.CreateMany(t.Context(), linktest.Epoch(), entries)
	if err != nil {
		t.Fatal(err)
	}
	for i := range results {
		if results[i].Err != nil || results[i].Link.Key != entries[i].Link.Key {
			t.Errorf("entry %d: %+v", i, results[i])
		}
	}
	twin := alias(100)
	twin.Destination = made.Destination
	if same, err := s.FindSame(t.Context(), twin, linktest.Epoch()); err != nil || same.Destination != made.Destination {
		t.Errorf("%+v, %v", same, err)
	}
	var callers sync.WaitGroup
	for i := range 50 {
		callers.Go(func() {
			l := alias(200 + i)
			l.Destination = fmt.Sprint("https://example.com/", i)
			if _, err := s.Create(t.Context(), l); err != nil && !errors.Is(err, link.ErrUnavailable) {
				t.Errorf("create while the store closes: %v", err)
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	callers.Wait()
}
