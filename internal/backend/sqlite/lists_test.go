package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"curt/internal/backend/sqlite"
	"curt/internal/background"
	"curt/internal/link"
)

// queue is a Yielder with a queue of its own.
type queue struct {
	background.Inline

	run func(ctx context.Context, query func(context.Context) error) error
}

func (q *queue) Queue(ctx context.Context, query func(context.Context) error) error {
	return q.run(ctx, query)
}

// openLists opens links whose lists are scheduled.
func openLists(t *testing.T, y background.Yielder) *sqlite.Links {
	t.Helper()
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: filepath.Join(t.TempDir(), "curt.db"), Yielder: y})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// visit asks what visitors ask.
func visit(t *testing.T, s *sqlite.Links, k link.Key) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
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
	s := openLists(t, &queue{run: func(ctx context.Context, query func(context.Context) error) error {
		waiting <- struct{}{}
		<-release
		return query(ctx)
	}})
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
	err := s.HoldLists(t.Context(), func() {
		visit(t, s, k)
		ctx, leave := context.WithCancelCause(t.Context())
		leave(gone)
		if _, err := s.List(ctx, link.Filter{}, link.Page{Limit: 10}); !errors.Is(err, gone) {
			t.Errorf("list: %v, want %v", err, gone)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(t.Context(), link.Filter{}, link.Page{Limit: 10}); err != nil {
		t.Errorf("list: %v", err)
	}
}
