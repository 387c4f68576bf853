package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"curt/internal/backend/sqlite"
	"curt/internal/link"
)

// openLists opens links whose lists run in aside.
func openLists(t *testing.T, aside sqlite.Aside) *sqlite.Links {
	t.Helper()
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: filepath.Join(t.TempDir(), "curt.db"), Aside: aside})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// visit asks what visitors ask.
func visit(t *testing.T, s *sqlite.Links, k link.Key) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Lookup(ctx, k); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("look up: %v, want %v", err, link.ErrNotFound)
	}
	if _, err := s.Get(ctx, k); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("get: %v, want %v", err, link.ErrNotFound)
	}
}

func TestLookUpsNeverWaitForListsThatWait(t *testing.T) {
	release, waiting := make(chan struct{}), make(chan struct{}, 64)
	s := openLists(t, func(ctx context.Context, compute func(context.Context) error) error {
		waiting <- struct{}{}
		<-release
		return compute(ctx)
	})
	k := link.Key{Code: "nobody"}
	var lists sync.WaitGroup
	for range 16 {
		lists.Go(func() {
			if _, err := s.List(t.Context(), link.Filter{}, link.Page{Limit: 10}); err != nil {
				t.Errorf("list: %v", err)
			}
			if _, err := s.GetMany(t.Context(), []link.Key{k}); err != nil {
				t.Errorf("get many: %v", err)
			}
		})
	}
	for range 16 {
		<-waiting
	}
	visit(t, s, k)
	close(release)
	lists.Wait()
}

func TestLookUpsHaveConnectionsOfTheirOwn(t *testing.T) {
	s := openLists(t, nil)
	k := link.Key{Code: "nobody"}
	gone := errors.New("gone")
	s.HoldLists(func() {
		visit(t, s, k)
		ctx, leave := context.WithCancelCause(t.Context())
		leave(gone)
		if _, err := s.List(ctx, link.Filter{}, link.Page{Limit: 10}); !errors.Is(err, gone) {
			t.Errorf("list: %v, want %v", err, gone)
		}
	})
	if _, err := s.List(t.Context(), link.Filter{}, link.Page{Limit: 10}); err != nil {
		t.Errorf("list: %v", err)
	}
}
