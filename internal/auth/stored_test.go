package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/auth"
	"curt/internal/auth/authtest"
	"curt/internal/link"
)

// ring is Keys over a memory store, asked by its admin.
type ring struct {
	*auth.Keys

	store *authtest.Memory
}

func newRing(t *testing.T) ring {
	t.Helper()
	store := authtest.NewMemory()
	return ring{newKeys(t, auth.KeysConfig{AdminKey: key, Store: store}), store}
}

func theAdmin() auth.Principal {
	return auth.Principal{KeyID: auth.AdminKeyID, Workspace: link.WorkspaceDefault, Scopes: []auth.Scope{auth.Admin}}
}

func (r ring) make(t *testing.T, change ...func(*auth.NewKeyRequest)) (auth.Key, string) {
	t.Helper()
	req := auth.NewKeyRequest{Workspace: "acme", Name: "a key", Scopes: []auth.Scope{auth.LinksWrite}}
	for _, f := range change {
		f(&req)
	}
	k, secret, err := r.Create(t.Context(), noon(), theAdmin(), req)
	if err != nil {
		t.Fatal(err)
	}
	return k, secret
}

func (r ring) show(t *testing.T, secret string, now time.Time) (auth.Principal, error) {
	t.Helper()
	return r.Authenticate(request(t, "Bearer "+secret), netip.Addr{}, now)
}

func (r ring) refuses(t *testing.T, what, secret string, now time.Time) {
	t.Helper()
	if c, err := r.show(t, secret, now); !errors.Is(err, auth.ErrUnauthenticated) || len(c.Scopes) > 0 {
		t.Errorf("%s: got %+v, %v; want ErrUnauthenticated", what, c, err)
	}
}

func (r ring) accepts(t *testing.T, what, secret string, now time.Time) {
	t.Helper()
	if _, err := r.show(t, secret, now); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func TestAStoredKeyIsItsCaller(t *testing.T) {
	r := newRing(t)
	k, secret := r.make(t, func(q *auth.NewKeyRequest) { q.Plan = auth.PlanFree })
	if err := auth.CheckKey(secret); err != nil || len(secret) < len(auth.Prefix)+32 {
		t.Errorf("the secret is no key: %v", err)
	}
	c, err := r.show(t, secret, noon())
	if err != nil || c.KeyID != k.ID.String() || c.Workspace != "acme" || c.Plan != auth.PlanFree || !may(c, auth.ChangeLink) || may(c, auth.ReadLink) {
		t.Errorf("caller %+v, %v", c, err)
	}
	if _, other := r.make(t); other == secret {
		t.Error("the same secret twice")
	}
}

func TestABusyKeyIsReadOnceASecond(t *testing.T) {
	r := newRing(t)
	_, secret := r.make(t)
	unknown := auth.Prefix + strings.Repeat("x", 32)
	for i := range 1000 {
		now := noon().Add(time.Duration(i) * 999 * time.Microsecond)
		r.accepts(t, "a busy key", secret, now)
		r.refuses(t, "a busy guess", unknown, now)
	}
	if n := r.store.Finds(); n != 2 {
		t.Errorf("the store was asked %d times, want 2", n)
	}
	r.accepts(t, "a second later", secret, noon().Add(time.Second))
	if n := r.store.Finds(); n != 3 {
		t.Errorf("the store was asked %d times, want 3", n)
	}
	r.accepts(t, "after the clock went back", secret, noon().Add(-time.Hour))
	if n := r.store.Finds(); n != 4 {
		t.Errorf("the store was asked %d times, want 4", n)
	}
}

func TestRevokedAndRotatedAtOnceHere(t *testing.T) {
	r := newRing(t)
	k, first := r.make(t)
	r.accepts(t, "fresh", first, noon())
	_, second, err := r.Rotate(t.Context(), noon(), theAdmin(), k.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.refuses(t, "rotated away", first, noon())
	r.accepts(t, "the new one", second, noon())
	_, third, err := r.Rotate(t.Context(), noon(), theAdmin(), k.ID, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	r.accepts(t, "during the overlap", second, noon().Add(time.Minute-time.Millisecond))
	r.refuses(t, "after the overlap", second, noon().Add(time.Minute))
	r.accepts(t, "the third", third, noon().Add(time.Minute))
	if err := r.Revoke(t.Context(), theAdmin(), k.ID, false); err != nil {
		t.Fatal(err)
	}
	r.refuses(t, "revoked", third, noon())
	if err := r.Revoke(t.Context(), theAdmin(), k.ID, false); !errors.Is(err, auth.ErrNoKey) {
		t.Errorf("revoked again: %v", err)
	}
	// Another process would notice a second later.
	other, secret := r.make(t)
	r.accepts(t, "fresh", secret, noon())
	if err := r.store.Revoke(t.Context(), other.ID, false); err != nil {
		t.Fatal(err)
	}
	r.refuses(t, "revoked elsewhere", secret, noon().Add(time.Second))
}

func TestAKeyExpiresAtTheMillisecond(t *testing.T) {
	r := newRing(t)
	end := noon().Add(10 * time.Millisecond)
	k, secret := r.make(t, func(q *auth.NewKeyRequest) { q.Expires = end })
	r.accepts(t, "before", secret, end.Add(-time.Millisecond))
	r.refuses(t, "expired", secret, end)
	if _, _, err := r.Rotate(t.Context(), end, theAdmin(), k.ID, 0); !errors.Is(err, auth.ErrKeyExpired) {
		t.Errorf("rotate: got %v, want ErrKeyExpired", err)
	}
}

// slow is a store whose Find waits in the middle.
type slow struct {
	*authtest.Memory

	found, goOn chan struct{}
}

func (s *slow) Find(ctx context.Context, sum auth.Sum) (auth.Found, error) {
	f, err := s.Memory.Find(ctx, sum)
	s.found <- struct{}{}
	<-s.goOn
	return f, err
}

func TestWhatWasReadBeforeARevocationIsNotRemembered(t *testing.T) {
	store := &slow{authtest.NewMemory(), make(chan struct{}, 2), make(chan struct{})} // two reads
	r := ring{newKeys(t, auth.KeysConfig{AdminKey: key, Store: store}), store.Memory}
	k, secret := r.make(t)
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = r.show(t, secret, noon()) })
	<-store.found
	if err := r.Revoke(t.Context(), theAdmin(), k.ID, false); err != nil {
		t.Fatal(err)
	}
	store.goOn <- struct{}{}
	reading.Wait()
	asked := store.Finds()
	close(store.goOn)
	r.refuses(t, "revoked", secret, noon())
	if store.Finds() != asked+1 {
		t.Error("what was read before the revocation was remembered")
	}
}

// generous is a store whose Find returns its one key for any secret, as a driver with a wrong
// statement or a collation of its own does.
type generous struct {
	*authtest.Memory

	sum auth.Sum
}

func (s *generous) Find(ctx context.Context, _ auth.Sum) (auth.Found, error) {
	return s.Memory.Find(ctx, s.sum)
}

func TestAKeyThatTheStoreConfusesIsRefused(t *testing.T) {
	store := &generous{Memory: authtest.NewMemory()}
	r := ring{newKeys(t, auth.KeysConfig{AdminKey: key, Store: store}), store.Memory}
	_, secret := r.make(t)
	store.sum = auth.SumOf(secret)
	guess := auth.Prefix + strings.Repeat("x", 32)
	r.refuses(t, "another secret", guess, noon())
	if c, err := r.Recall(t.Context(), auth.SumOf(guess), noon()); !errors.Is(err, auth.ErrUnauthenticated) {
		t.Errorf("another digest: got %+v, %v", c, err)
	}
	r.accepts(t, "the secret", secret, noon()) // the control
	r.refuses(t, "another secret, after the right one", guess, noon())
}

func TestGuessesDoNotCrowdOutKeys(t *testing.T) {
	r := newRing(t)
	_, secret := r.make(t)
	r.accepts(t, "before", secret, noon())
	for i := range 10_000 {
		r.refuses(t, "a guess", fmt.Sprintf("%s%032d", auth.Prefix, i), noon())
	}
	asked := r.store.Finds()
	r.accepts(t, "after 10,000 guesses", secret, noon())
	if r.store.Finds() != asked {
		t.Error("the key had to be read again")
	}
}

func TestAStoreThatCannotBeAskedIsNoRefusal(t *testing.T) {
	r := ring{newKeys(t, auth.KeysConfig{AdminKey: key, Store: broken{}}), nil}
	_, err := r.show(t, auth.Prefix+strings.Repeat("x", 32), noon())
	if !errors.Is(err, link.ErrUnavailable) || errors.Is(err, auth.ErrUnauthenticated) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	r.accepts(t, "the admin needs no store", key, noon())
}

type broken struct{ auth.Store }

func (broken) Find(context.Context, auth.Sum) (auth.Found, error) {
	return auth.Found{}, link.ErrUnavailable
}

// touched counts the writes of uses, and fails at first.
type touched struct {
	*authtest.Memory

	calls, failures atomic.Int32
}

func (s *touched) Touch(ctx context.Context, used map[link.ID]time.Time) error {
	s.calls.Add(1)
	if s.failures.Add(-1) >= 0 {
		return link.ErrUnavailable
	}
	return s.Memory.Touch(ctx, used)
}

func TestLastUseIsWrittenBehindAndAtMostOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &touched{Memory: authtest.NewMemory()}
		store.failures.Store(1)
		r := ring{newKeys(t, auth.KeysConfig{AdminKey: key, Store: store}), store.Memory}
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		k, _, err := r.Create(t.Context(), time.Now(), theAdmin(), auth.NewKeyRequest{Workspace: "acme", Name: "x", Scopes: []auth.Scope{auth.LinksRead}})
		if err != nil {
			t.Fatal(err)
		}
		_, secret, err := r.Rotate(t.Context(), time.Now(), theAdmin(), k.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r.accepts(t, "first use", secret, began)
		if store.calls.Load() != 0 {
			t.Error("a request waited for the write")
		}
		time.Sleep(11 * time.Second)
		used := func() time.Duration {
			got, err := r.Get(t.Context(), theAdmin(), k.ID)
			if err != nil {
				t.Fatal(err)
			}
			return got.Used.Sub(began)
		}
		if store.calls.Load() != 2 || used() >= time.Second || used() < 0 {
			t.Errorf("%d writes, used %v after the first use; want one that failed and its repetition", store.calls.Load(), used())
		}
		for range 300 {
			r.accepts(t, "steady use", secret, time.Now())
			time.Sleep(time.Second)
		}
		if store.calls.Load() < 5 || store.calls.Load() > 8 {
			t.Errorf("%d writes in five minutes, want one each", store.calls.Load())
		}
		time.Sleep(time.Hour)
		r.accepts(t, "last use", secret, time.Now())
		last := time.Since(began)
		cancel()
		run.Wait()
		if used() < last-time.Second {
			t.Error("the last use was not written at the end")
		}
	})
}

func TestOnlyAdminsManageKeys(t *testing.T) {
	r := newRing(t)
	k, _ := r.make(t)
	every := []auth.Scope{auth.LinksRead, auth.LinksWrite, auth.StatsRead}
	for _, tt := range []struct {
		who  auth.Principal
		want error
	}{
		{auth.Principal{}, auth.ErrUnauthenticated},
		{auth.Anonymous(netip.Addr{}, auth.LinksWrite), auth.ErrUnauthenticated},
		{auth.Principal{KeyID: k.ID.String(), Workspace: "acme", Scopes: every}, auth.ErrForbidden},
		{auth.Principal{KeyID: "x", Workspace: link.WorkspaceDefault, Scopes: every}, auth.ErrForbidden},
	} {
		_, get := r.Get(t.Context(), tt.who, k.ID)
		_, _, list := r.List(t.Context(), tt.who, auth.KeyFilter{Workspace: "acme"}, auth.KeyPage{Limit: 1})
		_, _, create := r.Create(t.Context(), noon(), tt.who, auth.NewKeyRequest{})
		_, _, rotate := r.Rotate(t.Context(), noon(), tt.who, k.ID, 0)
		for _, err := range []error{get, list, create, rotate, r.Revoke(t.Context(), tt.who, k.ID, false)} {
			if !errors.Is(err, tt.want) {
				t.Errorf("%+v: got %v, want %v", tt.who, err, tt.want)
			}
		}
	}
}

func TestBadKeysAreNotMade(t *testing.T) {
	r := newRing(t)
	for field, changes := range map[string][]func(*auth.NewKeyRequest){
		"name": {
			func(q *auth.NewKeyRequest) { q.Name = "" }, func(q *auth.NewKeyRequest) { q.Name = " \u00a0 " },
			func(q *auth.NewKeyRequest) { q.Name = strings.Repeat("x", 101) }, func(q *auth.NewKeyRequest) { q.Name = "a\nb" },
			func(q *auth.NewKeyRequest) { q.Name = "a\x00b" }, func(q *auth.NewKeyRequest) { q.Name = "a\xff" },
			func(q *auth.NewKeyRequest) { q.Name = "a\u0085b" },
		},
		"scopes": {
			func(q *auth.NewKeyRequest) { q.Scopes = nil }, func(q *auth.NewKeyRequest) { q.Scopes = []auth.Scope{"links"} },
			func(q *auth.NewKeyRequest) { q.Scopes = []auth.Scope{auth.LinksRead, auth.LinksRead} },
			func(q *auth.NewKeyRequest) { q.Scopes = []auth.Scope{auth.Admin} }, // of acme
			func(q *auth.NewKeyRequest) { q.Scopes = []auth.Scope{"links:read links:write"} },
		},
		"workspace_id": {
			func(q *auth.NewKeyRequest) { q.Workspace = "anonymous" }, func(q *auth.NewKeyRequest) { q.Workspace = "Acme" },
			func(q *auth.NewKeyRequest) { q.Workspace = "../x" },
			func(q *auth.NewKeyRequest) { q.Workspace = link.WorkspaceID(strings.Repeat("w", 65)) },
		},
		"plan":       {func(q *auth.NewKeyRequest) { q.Plan = "gold" }, func(q *auth.NewKeyRequest) { q.Plan = auth.PlanAnonymous }},
		"expires_at": {func(q *auth.NewKeyRequest) { q.Expires = noon() }, func(q *auth.NewKeyRequest) { q.Expires = noon().Add(-time.Hour) }},
	} {
		for i, change := range changes {
			req := auth.NewKeyRequest{Workspace: "acme", Name: "x", Scopes: []auth.Scope{auth.LinksRead}}
			change(&req)
			_, secret, err := r.Create(t.Context(), noon(), theAdmin(), req)
			if e, ok := errors.AsType[*auth.InvalidError](err); !ok || e.Field != field || secret != "" {
				t.Errorf("%s %d: got %v", field, i, err)
			}
		}
	}
	if keys, _, err := r.List(t.Context(), theAdmin(), auth.KeyFilter{}, auth.KeyPage{Limit: 10}); err != nil || len(keys) > 0 {
		t.Errorf("%d keys are there, %v", len(keys), err)
	}
	k, _ := r.make(t)
	for _, overlap := range []time.Duration{-1, auth.MaxOverlap + 1} {
		if _, _, err := r.Rotate(t.Context(), noon(), theAdmin(), k.ID, overlap); err == nil {
			t.Errorf("an overlap of %v was taken", overlap)
		}
	}
}
