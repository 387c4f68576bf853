package authtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/auth"
	"curt/internal/link"
)

// Run proves a Store. open returns an empty one; again returns another handle on the
// data of s, as a second process or the next start would have it, while s stays
// usable; nil = the store lives in one process.
func Run(t *testing.T, open func(t *testing.T) auth.Store, again func(t *testing.T, s auth.Store) auth.Store) {
	for name, prove := range map[string]func(*testing.T, auth.Store){
		"keys come back as stored":                   roundTrips,
		"one id and one secret are one key's":        collides,
		"an unknown secret is nobody's":              unknown,
		"a workspace has a plan":                     plans,
		"pages are complete and newest first":        pages,
		"pages are stable while keys come and go":    stable,
		"a revoked key is gone with all its secrets": revokes,
		"rotation keeps one old secret for a while":  rotates,
		"a touch never goes back":                    touches,
		"what a key shared stands with it":           vouches,
		"many callers at once":                       races,
		"a cancelled caller gets an error":           cancelled,
	} {
		t.Run(name, func(t *testing.T) { prove(t, open(t)) })
	}
	if again != nil {
		t.Run("another handle sees it all at once", func(t *testing.T) {
			s := open(t)
			seen(t, s, again(t, s))
		})
	}
}

func noon() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 123e6, time.UTC) }

// newKey returns a key of a workspace and its digest; n sets its age.
func newKey(t *testing.T, w link.WorkspaceID, n int) (auth.Key, auth.Sum) {
	t.Helper()
	made := noon().Add(time.Duration(n) * time.Millisecond)
	id, err := link.NewID(made, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	k := auth.Key{
		ID: id, Workspace: w, Name: fmt.Sprintf("key %d", n), Scopes: []auth.Scope{auth.LinksRead},
		Created: made, CreatedBy: auth.AdminKeyID,
	}
	return k, auth.SumOf(id.String())
}

func mustCreate(t *testing.T, s auth.Store, k auth.Key, plan auth.Plan, sum auth.Sum) auth.Key {
	t.Helper()
	made, err := s.Create(t.Context(), k, plan, sum)
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	return made
}

func mustFind(t *testing.T, s auth.Store, sum auth.Sum) auth.Found {
	t.Helper()
	f, err := s.Find(t.Context(), sum)
	if err != nil {
		t.Fatalf("Find: %v", err)
	}
	return f
}

func wantNone(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, auth.ErrNoKey) {
		t.Errorf("%s: got %v, want ErrNoKey", what, err)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func roundTrips(t *testing.T, s auth.Store) {
	for i, change := range []func(*auth.Key){
		func(*auth.Key) {},
		func(k *auth.Key) { k.Name, k.CreatedBy = "", "" },
		func(k *auth.Key) { k.Name = strings.Repeat("ä\x00'\"\n", 100) },
		func(k *auth.Key) { k.Scopes = auth.Scopes() },
		func(k *auth.Key) { k.Scopes = []auth.Scope{auth.StatsRead, auth.LinksWrite} },
		func(k *auth.Key) { k.Expires = noon().Add(time.Hour) },
		func(k *auth.Key) { k.Expires = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC) },
		func(k *auth.Key) { k.Workspace = link.WorkspaceID(strings.Repeat("w", link.MaxName)) },
		func(k *auth.Key) { k.Created = k.Created.Add(999 * time.Microsecond) },
		func(k *auth.Key) { k.Created = k.Created.In(time.FixedZone("", 3600)) },
	} {
		k, sum := newKey(t, "acme", i)
		change(&k)
		made := mustCreate(t, s, k, auth.PlanVerified, sum)
		k.Plan, k.Created = auth.PlanVerified, k.Created.UTC().Truncate(time.Millisecond)
		same(t, "created", made, k)
		same(t, "found", mustFind(t, s, sum), auth.Found{Key: k, Sum: sum})
		got, err := s.Get(t.Context(), k.ID)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "got", got, k)
	}
}

func collides(t *testing.T, s auth.Store) {
	a, sumA := newKey(t, "acme", 1)
	b, sumB := newKey(t, "other", 2)
	a = mustCreate(t, s, a, "", sumA)
	if _, err := s.Create(t.Context(), b, "", sumA); !errors.Is(err, link.ErrExists) {
		t.Errorf("the secret of another: got %v, want ErrExists", err)
	}
	twin := b
	twin.ID = a.ID
	if _, err := s.Create(t.Context(), twin, "", sumB); !errors.Is(err, link.ErrExists) {
		t.Errorf("the id of another: got %v, want ErrExists", err)
	}
	_, err := s.Find(t.Context(), sumB)
	wantNone(t, "the secret of a refused key", err)
	same(t, "the first key", mustFind(t, s, sumA).Key, a)
	b = mustCreate(t, s, b, "", sumB)
	if _, err := s.Rotate(t.Context(), b.ID, sumA, time.Time{}); !errors.Is(err, link.ErrExists) {
		t.Errorf("rotating to the secret of another: got %v, want ErrExists", err)
	}
	same(t, "after a refused rotation", mustFind(t, s, sumB), auth.Found{Key: b, Sum: sumB})
}

func unknown(t *testing.T, s auth.Store) {
	k, sum := newKey(t, "acme", 1)
	near := sum
	near[len(near)-1] ^= 1
	mustCreate(t, s, k, "", sum)
	for what, sum := range map[string]auth.Sum{"zero": {}, "off by a bit": near} {
		_, err := s.Find(t.Context(), sum)
		wantNone(t, what, err)
	}
	_, err := s.Get(t.Context(), link.ID{1})
	wantNone(t, "Get", err)
	wantNone(t, "Revoke", s.Revoke(t.Context(), link.ID{1}, false))
	_, err = s.Rotate(t.Context(), link.ID{1}, auth.Sum{1}, time.Time{})
	wantNone(t, "Rotate", err)
}

func plans(t *testing.T, s auth.Store) {
	for i, step := range []struct {
		workspace link.WorkspaceID
		plan      auth.Plan
		want      auth.Plan
	}{
		{link.WorkspaceDefault, "", auth.PlanDefault},
		{"acme", "", auth.PlanRegistered},
		{"acme", auth.PlanFree, auth.PlanFree},
		{"acme", "", auth.PlanFree},
		{"other", auth.PlanVerified, auth.PlanVerified},
		{link.WorkspaceDefault, auth.PlanFree, auth.PlanFree},
	} {
		k, sum := newKey(t, step.workspace, i)
		if made := mustCreate(t, s, k, step.plan, sum); made.Plan != step.want {
			t.Errorf("step %d: plan %q, want %q", i, made.Plan, step.want)
		}
		if f := mustFind(t, s, sum); f.Key.Plan != step.want {
			t.Errorf("step %d: found with plan %q, want %q", i, f.Key.Plan, step.want)
		}
	}
	keys := walk(t, s, auth.KeyFilter{Workspace: "acme"}, 10, nil)
	for _, k := range keys {
		if k.Plan != auth.PlanFree {
			t.Errorf("%s of acme has plan %q: the plan is the workspace's", k.Name, k.Plan)
		}
	}
}

// walk reads all pages; between runs after each.
func walk(t *testing.T, s auth.Store, f auth.KeyFilter, limit int, between func()) []auth.Key {
	t.Helper()
	var all []auth.Key
	for p := (auth.KeyPage{Limit: limit}); ; {
		keys, err := s.List(t.Context(), f, p)
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		all = append(all, keys...)
		if len(keys) < limit {
			return all
		}
		p.Before = keys[len(keys)-1].ID
		if between != nil {
			between()
		}
	}
}

func pages(t *testing.T, s auth.Store) {
	want := map[link.WorkspaceID][]auth.Key{}
	for i := range 23 {
		w := link.WorkspaceID([]string{"acme", "other", "acme"}[i%3])
		k, sum := newKey(t, w, i)
		k = mustCreate(t, s, k, "", sum)
		want[w] = append([]auth.Key{k}, want[w]...)
		want[""] = append([]auth.Key{k}, want[""]...)
	}
	for _, limit := range []int{1, 2, 7, 23, auth.MaxKeyPage} {
		for _, w := range []link.WorkspaceID{"", "acme", "other", "nobody"} {
			same(t, fmt.Sprintf("workspace %q by %d", w, limit), walk(t, s, auth.KeyFilter{Workspace: w}, limit, nil), want[w])
		}
	}
}

func stable(t *testing.T, s auth.Store) {
	want := map[link.ID]bool{}
	var doomed []link.ID
	for i := range 20 {
		k, sum := newKey(t, "acme", i)
		mustCreate(t, s, k, "", sum)
		if i%2 == 0 {
			want[k.ID] = true
		} else {
			doomed = append(doomed, k.ID)
		}
	}
	seen, n := map[link.ID]int{}, 100
	for _, k := range walk(t, s, auth.KeyFilter{Workspace: "acme"}, 3, func() {
		k, sum := newKey(t, "acme", n)
		mustCreate(t, s, k, "", sum)
		n++
		if err := s.Revoke(t.Context(), doomed[0], false); err != nil {
			t.Fatal(err)
		}
		doomed = doomed[1:]
	}) {
		seen[k.ID]++
	}
	for id := range want {
		if seen[id] != 1 {
			t.Errorf("a key that was there all the time was seen %d times", seen[id])
		}
	}
}

func revokes(t *testing.T, s auth.Store) {
	k, sum := newKey(t, "acme", 1)
	other, sumOther := newKey(t, "acme", 2)
	mustCreate(t, s, k, "", sum)
	other = mustCreate(t, s, other, "", sumOther)
	if _, err := s.Rotate(t.Context(), k.ID, auth.Sum{7}, noon().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := s.Revoke(t.Context(), k.ID, false); err != nil {
		t.Fatal(err)
	}
	for what, sum := range map[string]auth.Sum{"the old secret": sum, "the new secret": {7}} {
		_, err := s.Find(t.Context(), sum)
		wantNone(t, what, err)
	}
	_, err := s.Get(t.Context(), k.ID)
	wantNone(t, "Get", err)
	wantNone(t, "Revoke again", s.Revoke(t.Context(), k.ID, false))
	if err := s.Touch(t.Context(), map[link.ID]time.Time{k.ID: noon()}); err != nil {
		t.Errorf("touch of a key that is gone: %v", err)
	}
	same(t, "keys that are left", walk(t, s, auth.KeyFilter{}, 10, nil), []auth.Key{other})
}

// wantVouched checks whether what a key shared stands.
func wantVouched(t *testing.T, what string, s auth.Store, id link.ID, want bool) {
	t.Helper()
	if got, err := s.Vouches(t.Context(), id); err != nil || got != want {
		t.Errorf("%s: stands %v, %v; want %v", what, got, err, want)
	}
}

func vouches(t *testing.T, s auth.Store) {
	wantVouched(t, "an id that is no key's", s, link.ID{1}, false)
	wantVouched(t, "the zero id", s, link.ID{}, false)
	for _, keep := range []bool{false, true} {
		k, sum := newKey(t, "acme", 1)
		k.Expires = noon() // long past: it vouches all the same
		mustCreate(t, s, k, "", sum)
		wantVouched(t, "a key", s, k.ID, true)
		if _, err := s.Rotate(t.Context(), k.ID, auth.SumOf(k.ID.String()+"new"), time.Time{}); err != nil {
			t.Fatal(err)
		}
		wantVouched(t, "a key that was rotated", s, k.ID, true)
		if err := s.Revoke(t.Context(), k.ID, keep); err != nil {
			t.Fatal(err)
		}
		wantVouched(t, fmt.Sprintf("revoked, kept %v", keep), s, k.ID, keep)
		// What was refused changes nothing, and the first word about a key is the last.
		wantNone(t, "Revoke again", s.Revoke(t.Context(), k.ID, true))
		wantVouched(t, fmt.Sprintf("revoked twice, kept %v", keep), s, k.ID, keep)
	}
	wantNone(t, "Revoke of nothing", s.Revoke(t.Context(), link.ID{2}, true))
	wantVouched(t, "what never was a key's", s, link.ID{2}, false)
}

func rotates(t *testing.T, s auth.Store) {
	k, first := newKey(t, "acme", 1)
	k = mustCreate(t, s, k, "", first)
	second, third, fourth := auth.Sum{2}, auth.Sum{3}, auth.Sum{4}
	until := noon().Add(time.Hour)
	rotate := func(sum auth.Sum, until time.Time) {
		t.Helper()
		got, err := s.Rotate(t.Context(), k.ID, sum, until)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "rotated", got, k)
	}
	rotate(second, until)
	same(t, "first", mustFind(t, s, first), auth.Found{Key: k, Sum: first, Until: until})
	same(t, "second", mustFind(t, s, second), auth.Found{Key: k, Sum: second})
	rotate(third, until.Add(time.Hour))
	_, err := s.Find(t.Context(), first)
	wantNone(t, "the secret before the last", err)
	same(t, "second", mustFind(t, s, second), auth.Found{Key: k, Sum: second, Until: until.Add(time.Hour)})
	rotate(fourth, time.Time{})
	for _, sum := range []auth.Sum{first, second, third} {
		_, err := s.Find(t.Context(), sum)
		wantNone(t, "without an overlap", err)
	}
	same(t, "fourth", mustFind(t, s, fourth), auth.Found{Key: k, Sum: fourth})
}

func touches(t *testing.T, s auth.Store) {
	a, sumA := newKey(t, "acme", 1)
	b, sumB := newKey(t, "acme", 2)
	mustCreate(t, s, a, "", sumA)
	mustCreate(t, s, b, "", sumB)
	touch := func(used map[link.ID]time.Time) {
		t.Helper()
		if err := s.Touch(t.Context(), used); err != nil {
			t.Fatal(err)
		}
	}
	touch(nil)
	touch(map[link.ID]time.Time{a.ID: noon(), {9}: noon()})
	touch(map[link.ID]time.Time{a.ID: noon().Add(-time.Minute), b.ID: noon().Add(time.Minute)})
	for sum, want := range map[auth.Sum]time.Time{sumA: noon(), sumB: noon().Add(time.Minute)} {
		if got := mustFind(t, s, sum).Key.Used; !got.Equal(want) {
			t.Errorf("used %v, want %v", got, want)
		}
	}
}

// races makes, finds, rotates and revokes from many goroutines; one of all that
// revoke a key succeeds.
func races(t *testing.T, s auth.Store) {
	k, sum := newKey(t, "acme", 0)
	mustCreate(t, s, k, "", sum)
	var revoked atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		own, ownSum := newKey(t, link.WorkspaceID(fmt.Sprintf("w%d", i%3)), i)
		all.Go(func() {
			if _, err := s.Create(t.Context(), own, "", ownSum); err != nil {
				t.Errorf("Create: %v", err)
			}
			if f, err := s.Find(t.Context(), ownSum); err != nil || f.Key.ID != own.ID {
				t.Errorf("Find of one's own: %v", err)
			}
			if _, err := s.Rotate(t.Context(), own.ID, auth.SumOf(own.Name+"new"), time.Time{}); err != nil {
				t.Errorf("Rotate: %v", err)
			}
			switch err := s.Revoke(t.Context(), k.ID, false); {
			case err == nil:
				revoked.Add(1)
			case !errors.Is(err, auth.ErrNoKey):
				t.Errorf("Revoke: %v", err)
			}
		})
	}
	all.Wait()
	if revoked.Load() != 1 {
		t.Errorf("%d callers revoked one key", revoked.Load())
	}
	if n := len(walk(t, s, auth.KeyFilter{}, 100, nil)); n != 16 {
		t.Errorf("%d keys, want 16", n)
	}
}

func cancelled(t *testing.T, s auth.Store) {
	k, sum := newKey(t, "acme", 0)
	mustCreate(t, s, k, "", sum)
	cause := errors.New("gone home")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, find := s.Find(ctx, sum)
	_, list := s.List(ctx, auth.KeyFilter{}, auth.KeyPage{Limit: 1})
	_, rotate := s.Rotate(ctx, k.ID, auth.Sum{1}, time.Time{})
	_, vouch := s.Vouches(ctx, k.ID)
	for what, err := range map[string]error{
		"Find": find, "Vouches": vouch, "List": list, "Rotate": rotate, "Revoke": s.Revoke(ctx, k.ID, true), "Touch": s.Touch(ctx, map[link.ID]time.Time{k.ID: noon()}),
	} {
		if !errors.Is(err, cause) {
			t.Errorf("%s: got %v, want what cancelled it", what, err)
		}
	}
	mustFind(t, s, sum)
}

// seen proves that two handles share one truth.
func seen(t *testing.T, a, b auth.Store) {
	k, sum := newKey(t, "acme", 1)
	k = mustCreate(t, a, k, auth.PlanFree, sum)
	same(t, "through the other handle", mustFind(t, b, sum), auth.Found{Key: k, Sum: sum})
	if _, err := b.Rotate(t.Context(), k.ID, auth.Sum{1}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	_, err := a.Find(t.Context(), sum)
	wantNone(t, "rotated through the other handle", err)
	if err := a.Revoke(t.Context(), k.ID, false); err != nil {
		t.Fatal(err)
	}
	_, err = b.Find(t.Context(), auth.Sum{1})
	wantNone(t, "revoked through the other handle", err)
	wantVouched(t, "revoked through the other handle", b, k.ID, false)
	kept, sum := newKey(t, "acme", 2)
	mustCreate(t, a, kept, "", sum)
	if err := a.Revoke(t.Context(), kept.ID, true); err != nil {
		t.Fatal(err)
	}
	wantVouched(t, "kept through the other handle", b, kept.ID, true)
}
