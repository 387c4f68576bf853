package auth_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/auth"
	"curt/internal/auth/authtest"
)

// TestWhatIsNoKeyIsNotLookedFor: strangers who show no key cost the store nothing, and are
// refused while it is away.
func TestWhatIsNoKeyIsNotLookedFor(t *testing.T) {
	k := newKeys(t, auth.KeysConfig{AdminKey: key, Store: broken{}})
	for _, header := range []string{"", "Bearer", "Bearer ", "Basic Y3VydDpjdXJ0", "bearer: " + key, key, "Bearer x" + key} {
		if _, err := k.Authenticate(request(t, header), netip.Addr{}, noon()); !errors.Is(err, auth.ErrUnauthenticated) {
			t.Errorf("%q: %v, want ErrUnauthenticated", header, err)
		}
	}
}

// TestARotationWithoutOverlapNeedsNoClock: the secret before is of no use to a process whose
// clock is behind that of the one that rotated the key.
func TestARotationWithoutOverlapNeedsNoClock(t *testing.T) {
	r := newRing(t)
	k, first := r.make(t)
	if _, _, err := r.Rotate(t.Context(), noon(), theAdmin(), k.ID, 0); err != nil {
		t.Fatal(err)
	}
	other := ring{newKeys(t, auth.KeysConfig{AdminKey: key, Store: r.store}), r.store}
	other.refuses(t, "a minute behind", first, noon().Add(-time.Minute))
}

// TestAWrongPlanIsAnsweredByThoseThereAre names all that a caller may choose.
func TestAWrongPlanIsAnsweredByThoseThereAre(t *testing.T) {
	r := newRing(t)
	req := auth.NewKeyRequest{Workspace: "acme", Name: "a key", Scopes: []auth.Scope{auth.LinksWrite}, Plan: "gold"}
	_, _, err := r.Create(t.Context(), noon(), theAdmin(), req)
	var refused *auth.InvalidError
	if !errors.As(err, &refused) || refused.Field != "plan" {
		t.Fatalf("%v, want an InvalidError of the plan", err)
	}
	for _, p := range auth.Plans() {
		if p != auth.PlanAnonymous && !strings.Contains(err.Error(), string(p)) { // of those without a key
			t.Errorf("%q does not name %s", err, p)
		}
	}
}

// TestAUseAMinuteLaterIsWritten: the last use is never a whole minute behind.
func TestAUseAMinuteLaterIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := authtest.NewMemory()
		r := ring{newKeys(t, auth.KeysConfig{AdminKey: key, Store: store}), store}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = r.Run(ctx) }()
		k, secret := r.make(t)
		used := func() time.Duration {
			time.Sleep(30 * time.Second)
			got, err := r.Get(t.Context(), theAdmin(), k.ID)
			if err != nil {
				t.Fatal(err)
			}
			return got.Used.Sub(noon())
		}
		for _, use := range []struct{ at, want time.Duration }{{0, 0}, {time.Minute, time.Minute}, {2*time.Minute - 1, time.Minute}} {
			r.accepts(t, "a use", secret, noon().Add(use.at))
			if got := used(); got != use.want {
				t.Errorf("used after %v: %v is written, want %v", use.at, got, use.want)
			}
		}
	})
}

// TestAFailureOfLastUsesIsLoggedOnceAndSoIsItsEnd: who reads the log learns both, and nothing
// more while all is well.
func TestAFailureOfLastUsesIsLoggedOnceAndSoIsItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &touched{Memory: authtest.NewMemory()}
		store.failures.Store(2)
		var log bytes.Buffer // read once Run has returned
		r := ring{newKeys(t, auth.KeysConfig{AdminKey: key, Store: store, Log: slog.New(slog.NewTextHandler(&log, nil))}), store.Memory}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = r.Run(ctx) })
		_, secret := r.make(t)
		r.accepts(t, "a use", secret, noon())
		time.Sleep(10 * time.Minute)
		cancel()
		running.Wait()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "last use of keys failed, retrying") || !strings.Contains(lines[1], "last use of keys recovered") {
			t.Errorf("the log says\n%s", log.String())
		}
	})
}
