package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// TestFrozenLinksAreRead: from Freeze to Thaw no write happens, each is refused as unavailable, and
// the store is healthy, since visitors are served. What was accepted before is there.
func TestFrozenLinksAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	f := sqlite.FreezerOf(s)
	var mu sync.Mutex
	var made []link.Key
	var writers sync.WaitGroup
	created := make(chan struct{}, 1)
	create := func(w, n int) error {
		l := linktest.Chosen(w*1_000_000+n, link.Code(fmt.Sprintf("code-%d-%d", w, n)))
		_, err := s.Create(t.Context(), l)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			made = append(made, l.Key)
		}
		return err
	}
	for w := range 4 {
		writers.Go(func() {
			for n := 0; ; n++ {
				err := create(w, n)
				if errors.Is(err, link.ErrUnavailable) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case created <- struct{}{}:
				default:
				}
			}
		})
	}
	<-created
	for range 2 { // frozen already is frozen
		if err := f.Freeze(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	writers.Wait()
	if after, err := s.Head(t.Context()); err != nil || after != before {
		t.Errorf("the change log went from %s to %s, %v", before, after, err)
	}
	if err := s.Healthy(); err != nil {
		t.Errorf("while it is frozen: %v", err)
	}
	for _, k := range made {
		if _, err := s.Lookup(t.Context(), k); err != nil {
			t.Errorf("%s was created: %v", k, err)
		}
	}
	f.Thaw()
	if err := create(5, 0); err != nil {
		t.Errorf("after the thaw: %v", err)
	}
	if err := f.Freeze(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil { // as the server of a folder that was moved
		t.Error(err)
	}
	again, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
