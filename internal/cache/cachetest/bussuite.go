package cachetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/cache"
	"curt/internal/link"
)

// patience is how long the suite waits for what must come.
const patience = 3 * time.Minute

// RunBus proves the cache.Buses that open returns: each is its own, and again is another
// process's handle on the same one.
func RunBus(t *testing.T, open func(t *testing.T) (one, again cache.Bus)) {
	t.Run("everybody hears every field, in order", func(t *testing.T) {
		one, again := open(t)
		notes := []cache.Note{
			{Head: link.Heads{7}},
			{Head: link.Heads{7, 0, 3}, Changes: []link.Change{{Partition: 2, Sequence: 3, Key: link.Key{Code: "a"}, Version: 2}}},
			{Changes: []link.Change{{Key: link.Key{Code: "a"}, Version: 2}}},
			{Head: link.Heads{9}, Changes: []link.Change{
				{Sequence: 8, Key: link.Key{Code: "a"}, Version: 2},
				{Sequence: 9, Key: link.Key{Domain: "xn--bcher-kva.example:8443", Code: link.Code(strings.Repeat("x", link.MaxCode))}, Version: 1<<53 - 1},
			}},
			many(),
		}
		heard := [2]<-chan cache.Note{listen(t, one), listen(t, again)}
		for i, n := range notes {
			if err := []cache.Bus{one, again}[i%2].Publish(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			for j, h := range heard {
				if diff := cmp.Diff(n, next(t, h)); diff != "" {
					t.Fatalf("listener %d, note %d: -sent +heard\n%s", j, i, diff)
				}
			}
		}
	})
	t.Run("a context ends a subscription", func(t *testing.T) {
		one, again := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		begun, done := make(chan struct{}), make(chan error, 1)
		go func() { done <- one.Subscribe(ctx, func() { close(begun) }, func(cache.Note) {}) }()
		<-begun
		cancel()
		select {
		case err := <-done:
			if err == nil {
				t.Error("it ended without saying why")
			}
		case <-time.After(patience):
			t.Fatal("the subscription goes on")
		}
		if err := again.Publish(t.Context(), cache.Note{Head: link.Heads{1}}); err != nil {
			t.Errorf("nobody listens: %v", err)
		}
	})
	t.Run("two subscriptions of one handle", func(t *testing.T) {
		one, again := open(t)
		a, b := listen(t, one), listen(t, one)
		if err := again.Publish(t.Context(), cache.Note{Head: link.Heads{5}}); err != nil {
			t.Fatal(err)
		}
		if next(t, a).Head.At(0) != 5 || next(t, b).Head.At(0) != 5 {
			t.Error("one of them heard something else")
		}
	})
}

// many is the largest note that a process sends.
func many() cache.Note {
	n := cache.Note{Head: link.Heads{1256}}
	for i := range 256 {
		n.Changes = append(n.Changes, link.Change{
			Sequence: link.Sequence(1001 + i), Version: 1, Key: link.Key{Domain: link.Domain(strings.Repeat("a.", 100) + "example"), Code: "abc"},
		})
	}
	return n
}

// listen returns what a bus says from now on, until the test ends.
func listen(t *testing.T, b cache.Bus) <-chan cache.Note {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	notes, begun, done := make(chan cache.Note, 64), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- b.Subscribe(ctx, func() { close(begun) }, func(n cache.Note) { notes <- n })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err == nil {
			t.Error("a subscription ended without saying why")
		}
	})
	select {
	case <-begun:
	case err := <-done:
		done <- err
		t.Fatalf("Subscribe: %v", err)
	case <-time.After(patience):
		t.Fatal("the subscription does not begin")
	}
	return notes
}

func next(t *testing.T, notes <-chan cache.Note) cache.Note {
	t.Helper()
	select {
	case n := <-notes:
		return n
	case <-time.After(patience):
		t.Fatal("nothing is heard")
		return cache.Note{}
	}
}
