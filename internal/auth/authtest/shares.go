package authtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"curt/internal/auth"
	"curt/internal/link"
)

// MemoryShares is the auth.ShareStore by which others are judged.
type MemoryShares struct {
	mu      sync.Mutex
	secrets map[link.Key]auth.ShareSecret // guarded by mu
}

// NewMemoryShares returns an empty store.
func NewMemoryShares() *MemoryShares {
	return &MemoryShares{secrets: map[link.Key]auth.ShareSecret{}}
}

// Secret implements auth.ShareStore.
func (m *MemoryShares) Secret(ctx context.Context, k link.Key) (auth.ShareSecret, error) {
	if ctx.Err() != nil {
		return auth.ShareSecret{}, fmt.Errorf("shares in memory: %w", context.Cause(ctx))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.secrets[k]
	if !ok {
		return auth.ShareSecret{}, auth.ErrNoShare
	}
	return s, nil
}

// StoreOnce implements auth.ShareStore.
func (m *MemoryShares) StoreOnce(ctx context.Context, k link.Key, s auth.ShareSecret) (auth.ShareSecret, error) {
	if ctx.Err() != nil {
		return auth.ShareSecret{}, fmt.Errorf("shares in memory: %w", context.Cause(ctx))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.secrets[k]; ok {
		return old, nil
	}
	m.secrets[k] = s
	return s, nil
}

// Drop implements auth.ShareStore.
func (m *MemoryShares) Drop(ctx context.Context, k link.Key) error {
	if ctx.Err() != nil {
		return fmt.Errorf("shares in memory: %w", context.Cause(ctx))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.secrets, k)
	return nil
}

// RunShares proves an auth.ShareStore. open and again are as those of Run.
func RunShares(t *testing.T, open func(t *testing.T) auth.ShareStore, again func(t *testing.T, s auth.ShareStore) auth.ShareStore) {
	t.Run("a secret stands until it is dropped", func(t *testing.T) { stands(t, open(t)) })
	t.Run("one of many at once wins", func(t *testing.T) { wins(t, open(t)) })
	t.Run("a cancelled caller gets an error", func(t *testing.T) {
		s := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, kept := s.StoreOnce(ctx, sharedKey("", "abc"), shareSecret(1))
		_, found := s.Secret(ctx, sharedKey("", "abc"))
		for _, err := range []error{kept, found, s.Drop(ctx, sharedKey("", "abc"))} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
	})
	if again == nil {
		return
	}
	t.Run("another handle sees it all at once", func(t *testing.T) {
		s, k := open(t), sharedKey("go.example", "abc")
		other := again(t, s)
		mustKeep(t, s, k, shareSecret(1))
		if got := mustKeep(t, other, k, shareSecret(2)); got != shareSecret(1) {
			t.Errorf("the other handle has %v", got)
		}
		if err := other.Drop(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Secret(t.Context(), k); !errors.Is(err, auth.ErrNoShare) {
			t.Errorf("after the other's drop: %v", err)
		}
	})
}

func sharedKey(d link.Domain, c link.Code) link.Key { return link.Key{Domain: d, Code: c} }

func shareSecret(n byte) auth.ShareSecret {
	return auth.ShareSecret{Workspace: "acme", Secret: [32]byte{n, 0, 31: 255}}
}

func mustKeep(t *testing.T, s auth.ShareStore, k link.Key, secret auth.ShareSecret) auth.ShareSecret {
	t.Helper()
	got, err := s.StoreOnce(t.Context(), k, secret)
	if err != nil {
		t.Fatalf("Keep: %v", err)
	}
	return got
}

func stands(t *testing.T, s auth.ShareStore) {
	ctx, k := t.Context(), sharedKey("", "abc")
	if _, err := s.Secret(ctx, k); !errors.Is(err, auth.ErrNoShare) {
		t.Errorf("before: %v", err)
	}
	if err := s.Drop(ctx, k); err != nil {
		t.Errorf("drop of nothing: %v", err)
	}
	if got := mustKeep(t, s, k, shareSecret(1)); got != shareSecret(1) {
		t.Errorf("kept %v", got)
	}
	if got := mustKeep(t, s, k, shareSecret(2)); got != shareSecret(1) {
		t.Errorf("a second Keep took the place of the first: %v", got)
	}
	for _, other := range []link.Key{sharedKey("", "ABC"), sharedKey("go.example", "abc"), sharedKey("", "ab")} {
		if _, err := s.Secret(ctx, other); !errors.Is(err, auth.ErrNoShare) {
			t.Errorf("%s: %v", other, err)
		}
	}
	if got, err := s.Secret(ctx, k); err != nil || got != shareSecret(1) {
		t.Errorf("read %v, %v", got, err)
	}
	if err := s.Drop(ctx, k); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Secret(ctx, k); !errors.Is(err, auth.ErrNoShare) {
		t.Errorf("after the drop: %v", err)
	}
	if got := mustKeep(t, s, k, shareSecret(3)); got != shareSecret(3) {
		t.Errorf("kept %v", got)
	}
}

func wins(t *testing.T, s auth.ShareStore) {
	const callers = 16
	var all sync.WaitGroup
	got := make([]auth.ShareSecret, callers)
	for i := range got {
		all.Go(func() { got[i], _ = s.StoreOnce(t.Context(), sharedKey("", "abc"), shareSecret(byte(i))) })
	}
	all.Wait()
	for i := range got {
		if got[i] != got[0] || got[i].Workspace != "acme" {
			t.Errorf("caller %d has %v, caller 0 %v", i, got[i], got[0])
		}
	}
}
