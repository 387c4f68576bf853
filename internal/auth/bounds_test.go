package auth_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/auth/authtest"
	"curt/internal/link"
)

func TestWhatIsAtItsBoundIsAKey(t *testing.T) {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for c := range 256 {
		secret := strings.Repeat("x", 21) + string([]byte{byte(c)})
		if taken := auth.CheckKey(auth.Prefix+secret) == nil; taken != (strings.IndexByte(allowed, byte(c)) >= 0) {
			t.Errorf("a key with byte %#x is taken: %t", c, taken)
		}
	}
	for n, want := range map[int]bool{21: false, 22: true, 251: true, 252: false} {
		if taken := auth.CheckKey(auth.Prefix+strings.Repeat("x", n)) == nil; taken != want {
			t.Errorf("a key with %d characters after its prefix is taken: %t", n, taken)
		}
	}
}

func TestWhatIsAtItsBoundIsMade(t *testing.T) {
	r := newRing(t)
	for name, change := range map[string]func(*auth.NewKeyRequest){
		"name of 100 bytes":   func(q *auth.NewKeyRequest) { q.Name = strings.Repeat("x", 100) },
		"name in no ASCII":    func(q *auth.NewKeyRequest) { q.Name = "\u00a0für ein ~" },
		"workspace of 64":     func(q *auth.NewKeyRequest) { q.Workspace = link.WorkspaceID(strings.Repeat("w", link.MaxName)) },
		"workspace's letters": func(q *auth.NewKeyRequest) { q.Workspace = "az09-_" },
		"all but admin":       func(q *auth.NewKeyRequest) { q.Scopes = []auth.Scope{auth.StatsRead, auth.LinksWrite, auth.LinksRead} },
		"a moment":            func(q *auth.NewKeyRequest) { q.Expires = noon().Add(time.Millisecond) },
		"an admin": func(q *auth.NewKeyRequest) {
			q.Workspace, q.Scopes = link.WorkspaceDefault, []auth.Scope{auth.Admin}
		},
	} {
		req := auth.NewKeyRequest{Workspace: "acme", Name: "x", Scopes: []auth.Scope{auth.LinksRead}}
		change(&req)
		made, _, err := r.Create(t.Context(), noon(), theAdmin(), req)
		if err != nil || made.Workspace != req.Workspace || made.Name != req.Name || made.CreatedBy != auth.AdminKeyID || !made.Created.Equal(noon()) {
			t.Errorf("%s: %+v, %v", name, made, err)
		}
	}
	own, _, err := r.Create(t.Context(), noon().Add(999*time.Microsecond), theAdmin(), auth.NewKeyRequest{Name: "x", Scopes: []auth.Scope{auth.LinksRead}})
	if err != nil || own.Workspace != link.WorkspaceDefault || !own.Created.Equal(noon()) {
		t.Errorf("without a workspace: %+v, %v", own, err)
	}
	if _, _, err := r.Rotate(t.Context(), noon(), theAdmin(), own.ID, auth.MaxOverlap); err != nil {
		t.Errorf("the longest overlap: %v", err)
	}
}

func TestKeysAreListedInPages(t *testing.T) {
	r := newRing(t)
	for range 5 {
		r.make(t)
	}
	for limit, want := range map[int][2]int{-1: {1, 1}, 0: {1, 1}, 4: {4, 1}, 5: {5, 0}, 9: {5, 0}} {
		keys, more, err := r.List(t.Context(), theAdmin(), auth.KeyFilter{}, auth.KeyPage{Limit: limit})
		if err != nil || len(keys) != want[0] || more != (want[1] == 1) {
			t.Errorf("a page of %d: %d keys, more %t, %v", limit, len(keys), more, err)
		}
	}
}

// A digest in a key's place says whose it is, and a key that one shows is one's own.
func TestAKeyIsKnownByAllWays(t *testing.T) {
	r := newRing(t)
	k, secret := r.make(t)
	for way, ask := range map[string]func(string) (auth.Principal, error){
		"identify": func(key string) (auth.Principal, error) { return r.Identify(t.Context(), key, noon()) },
		"recall":   func(key string) (auth.Principal, error) { return r.Recall(t.Context(), auth.SumOf(key), noon()) },
	} {
		who, err := ask(secret)
		if err != nil || who.KeyID != k.ID.String() {
			t.Errorf("%s: %+v, %v", way, who, err)
		}
		if own, err := r.Own(t.Context(), who); err != nil || own.ID != k.ID {
			t.Errorf("%s: its own key is %+v, %v", way, own, err)
		}
		if who, err := ask(key); err != nil || !may(who, auth.Moderate) {
			t.Errorf("%s of the admin's: %+v, %v", way, who, err)
		}
		for _, other := range []string{"", "x", auth.Prefix + "short", secret + "x"} {
			if who, err := ask(other); !errors.Is(err, auth.ErrUnauthenticated) || len(who.Scopes) > 0 {
				t.Errorf("%s of %q: %+v, %v", way, other, who, err)
			}
		}
	}
	for _, who := range []auth.Principal{theAdmin(), auth.Anonymous(netip.Addr{}), {KeyID: "share"}} {
		if own, err := r.Own(t.Context(), who); !errors.Is(err, auth.ErrNoKey) {
			t.Errorf("%+v has the key %+v, %v", who, own, err)
		}
	}
}

// away is a store whose writes and lists fail.
type away struct{ *authtest.Memory }

func (away) Create(context.Context, auth.Key, auth.Plan, auth.Sum) (auth.Key, error) {
	return auth.Key{Name: "half made"}, link.ErrUnavailable
}

func (away) List(context.Context, auth.KeyFilter, auth.KeyPage) ([]auth.Key, error) {
	return []auth.Key{{Name: "half read"}}, link.ErrUnavailable
}

func (away) Rotate(context.Context, link.ID, auth.Sum, time.Time) (auth.Key, error) {
	return auth.Key{Name: "half made"}, link.ErrUnavailable
}

func TestWhatTheStoreDidNotDoIsNotTold(t *testing.T) {
	store := authtest.NewMemory()
	k, _ := ring{newKeys(t, auth.KeysConfig{AdminKey: key, Store: store}), store}.make(t)
	keys := newKeys(t, auth.KeysConfig{AdminKey: key, Store: away{store}})
	req := auth.NewKeyRequest{Workspace: "acme", Name: "x", Scopes: []auth.Scope{auth.LinksRead}}
	if made, secret, err := keys.Create(t.Context(), noon(), theAdmin(), req); !errors.Is(err, link.ErrUnavailable) || secret != "" || made.Name != "" {
		t.Errorf("create: %+v, %q, %v", made, secret, err)
	}
	if made, secret, err := keys.Rotate(t.Context(), noon(), theAdmin(), k.ID, 0); !errors.Is(err, link.ErrUnavailable) || secret != "" || made.Name != "" {
		t.Errorf("rotate: %+v, %q, %v", made, secret, err)
	}
	if listed, more, err := keys.List(t.Context(), theAdmin(), auth.KeyFilter{}, auth.KeyPage{Limit: 9}); !errors.Is(err, link.ErrUnavailable) || len(listed) > 0 || more {
		t.Errorf("list: %+v, %t, %v", listed, more, err)
	}
	if _, _, err := keys.Rotate(t.Context(), noon(), theAdmin(), link.ID{1}, 0); !errors.Is(err, auth.ErrNoKey) {
		t.Errorf("rotate no key: %v", err)
	}
	dark := newKeys(t, auth.KeysConfig{AdminKey: key, Store: store, Random: failingReader{}})
	if _, secret, err := dark.Create(t.Context(), noon(), theAdmin(), req); err == nil || secret != "" {
		t.Errorf("create without random bits: %q, %v", secret, err)
	}
	if _, secret, err := dark.Rotate(t.Context(), noon(), theAdmin(), k.ID, 0); err == nil || secret != "" {
		t.Errorf("rotate without random bits: %q, %v", secret, err)
	}
}

// lostShares is a store of secrets that cannot be asked.
type lostShares struct{ auth.ShareStore }

func (lostShares) Secret(context.Context, link.Key) (auth.ShareSecret, error) {
	return auth.ShareSecret{Workspace: "acme"}, link.ErrUnavailable
}

func (lostShares) StoreOnce(_ context.Context, _ link.Key, s auth.ShareSecret) (auth.ShareSecret, error) {
	return s, link.ErrUnavailable
}

func (lostShares) Drop(context.Context, link.Key) error { return link.ErrUnavailable }

func TestSharesOfAStoreThatIsAway(t *testing.T) {
	k := link.Key{Code: "abc"}
	good := auth.NewShares(authtest.NewMemoryShares(), authtest.NewMemory(), rand.Reader)
	token, _, err := good.Issue(t.Context(), noon(), theAdmin(), k, "acme", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := good.Issue(t.Context(), noon(), theAdmin(), k, "acme", auth.MaxShare); err != nil {
		t.Errorf("the longest share: %v", err)
	}
	lost := auth.NewShares(lostShares{}, authtest.NewMemory(), rand.Reader)
	if token, _, err := lost.Issue(t.Context(), noon(), theAdmin(), k, "acme", time.Hour); !errors.Is(err, link.ErrUnavailable) || token != "" {
		t.Errorf("make: %q, %v", token, err)
	}
	if who, err := lost.Open(t.Context(), noon(), k, token); !errors.Is(err, link.ErrUnavailable) || errors.Is(err, auth.ErrUnauthenticated) || len(who.Scopes) > 0 {
		t.Errorf("open: %+v, %v", who, err)
	}
	if err := lost.End(t.Context(), k); !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("end: %v", err)
	}
	dark := auth.NewShares(authtest.NewMemoryShares(), authtest.NewMemory(), failingReader{})
	if token, _, err := dark.Issue(t.Context(), noon(), theAdmin(), k, "acme", time.Hour); err == nil || token != "" {
		t.Errorf("make without random bits: %q, %v", token, err)
	}
}
