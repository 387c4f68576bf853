package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
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

// mostAfter is how long a stream may go on after the right to it has ended.
const mostAfter = 5 * time.Second

// asKey is an Authenticator whose answers a test changes while streams go on.
type asKey struct {
	caller atomic.Pointer[auth.Principal] // nil = unknown
	down   atomic.Bool
}

func (a *asKey) Authenticate(*http.Request, netip.Addr, time.Time) (auth.Principal, error) {
	who := a.caller.Load()
	switch {
	case a.down.Load():
		return auth.Principal{}, link.ErrUnavailable
	case who == nil:
		return auth.Principal{}, auth.ErrUnauthenticated
	}
	return *who, nil
}

// beginStream opens a stream in a bubble and returns when it ended.
func beginStream(t *testing.T, h http.Handler, path, key string) (ended chan time.Time, stop context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequest(http.MethodGet, path, nil).WithContext(ctx)
	r.Header.Set("Authorization", "Bearer "+key)
	w := &guardedRecorder{ResponseRecorder: httptest.NewRecorder()}
	ended = make(chan time.Time, 1)
	go func() {
		h.ServeHTTP(w, r)
		ended <- time.Now()
	}()
	synctest.Wait()
	if code, text := w.said(); code != http.StatusOK || !strings.Contains(text, "event: clicks") {
		t.Fatalf("%s: %d %s", path, code, text)
	}
	return ended, cancel
}

// guardedRecorder is read while the answer goes on.
type guardedRecorder struct {
	mu sync.Mutex
	*httptest.ResponseRecorder
}

func (w *guardedRecorder) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ResponseRecorder.Write(b)
}

func (w *guardedRecorder) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ResponseRecorder.WriteHeader(code)
}

func (w *guardedRecorder) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ResponseRecorder.Flush()
}

func (w *guardedRecorder) said() (code int, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Code, w.Body.String()
}

// A stream ends when who asked could not ask again: when the key is gone, another's,
// lacks the scope, or does not see the link any more; and goes on while it could.
func TestAStreamEndsWithTheRightToIt(t *testing.T) {
	stats := []auth.Scope{auth.StatsRead}
	for _, path := range []string{collection + "/abc/clicks/live", "/api/v1/clicks/live"} {
		for name, change := range map[string]func(s service, a *asKey){
			"the key is revoked": func(_ service, a *asKey) { a.caller.Store(nil) },
			"the scope is gone": func(_ service, a *asKey) {
				a.caller.Store(&auth.Principal{KeyID: "k", Workspace: "acme", Scopes: []auth.Scope{auth.LinksRead}})
			},
			"it is another's key": func(_ service, a *asKey) {
				a.caller.Store(&auth.Principal{KeyID: "l", Workspace: "acme", Scopes: stats})
			},
			"it lost the workspace": func(_ service, a *asKey) {
				a.caller.Store(&auth.Principal{KeyID: "k", Workspace: "rival", Scopes: stats})
			},
			"nobody can say": func(_ service, a *asKey) { a.down.Store(true) },
			"":               func(service, *asKey) {},
		} {
			t.Run(path+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newService(t)
					s.create(t, "acme", `{"long_url":"http://example.com","custom_alias":"abc"}`)
					a := &asKey{}
					a.caller.Store(&auth.Principal{KeyID: "k", Workspace: "acme", Scopes: stats})
					ended, stop := beginStream(t, s.with(t, a), path, "any")
					time.Sleep(time.Hour) // it goes on for as long as the right does
					select {
					case <-ended:
						t.Fatal("the stream ended by itself")
					default:
					}
					change(s, a)
					at := time.Now()
					if name == "" {
						time.Sleep(mostAfter)
						stop()
						<-ended
						return
					}
					select {
					case end := <-ended:
						if took := end.Sub(at); took > mostAfter {
							t.Errorf("it went on for %v", took)
						}
					case <-time.After(time.Hour):
						t.Error("it went on")
					}
					stop()
				})
			})
		}
	}
}

// with is the service with another Authenticator.
func (s service) with(t *testing.T, a auth.Authenticator) http.Handler {
	t.Helper()
	return newService(t, func(p *parts) { p.store, p.authenticator, p.Now = s.store, a, time.Now })
}

// Keys themselves, as another server of the fleet changes them: what is remembered of a
// key is part of the five seconds.
func TestAStreamEndsWithItsKey(t *testing.T) {
	for name, end := range map[string]func(context.Context, *auth.Keys, auth.Principal, link.ID) error{
		"revoked": func(ctx context.Context, k *auth.Keys, admin auth.Principal, id link.ID) error {
			return k.Revoke(ctx, admin, id, false)
		},
		"rotated": func(ctx context.Context, k *auth.Keys, admin auth.Principal, id link.ID) error {
			_, _, err := k.Rotate(ctx, time.Now(), admin, id, 0)
			return err
		},
		"expired": func(context.Context, *auth.Keys, auth.Principal, link.ID) error { return nil },
	} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s elsewhere %v", name, elsewhere), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx := t.Context()
					store, secret := authtest.NewMemory(), "curt_"+strings.Repeat("a", 32)
					ours, theirs := keysOver(t, store, secret), keysOver(t, store, secret)
					admin, err := ours.Identify(ctx, secret, time.Now())
					if err != nil {
						t.Fatal(err)
					}
					req := auth.NewKeyRequest{Workspace: "acme", Name: "watcher", Scopes: []auth.Scope{auth.StatsRead}}
					over := time.Now().Add(90 * time.Second)
					if name == "expired" {
						req.Expires = over
					}
					key, shown, err := ours.Create(ctx, time.Now(), admin, req)
					if err != nil {
						t.Fatal(err)
					}
					h := newService(t, func(p *parts) { p.authenticator, p.Now = ours, time.Now })
					ended, stop := beginStream(t, h, "/api/v1/clicks/live", shown)
					defer stop()
					time.Sleep(time.Until(over))
					by := ours
					if elsewhere {
						by = theirs
					}
					if err := end(ctx, by, admin, key.ID); err != nil {
						t.Fatal(err)
					}
					select {
					case end := <-ended:
						if took := end.Sub(over); took > mostAfter || took < 0 {
							t.Errorf("it ended after %v", took)
						}
					case <-time.After(time.Hour):
						t.Error("it went on")
					}
				})
			})
		}
	}
}

func keysOver(t *testing.T, store auth.Store, admin string) *auth.Keys {
	t.Helper()
	k, err := auth.NewKeys(auth.KeysConfig{AdminKey: admin, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return k
}
