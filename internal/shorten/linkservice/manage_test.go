package linkservice_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/shorten"
	"curt/internal/shorten/linkservice"
)

func TestChangeWritesOnlyWhatIsGiven(t *testing.T) {
	b := newBench(t)
	req := to("http://example.com/")
	req.ExpiresIn = shorten.Value[int64](60)
	req.Title = shorten.Value("old")
	req.MaxClicks = shorten.Value[int64](9)
	req.NoIndex = shorten.Value(false)
	before := b.mustCreate(t, admin(), req)

	later := noon().Add(time.Hour) // after the expiry: a later date revives
	got, err := b.Update(t.Context(), later, by(admin()), before.Key, shorten.Match{}, &shorten.Change{
		Fields: shorten.Fields{
			LongURL: shorten.Value("HTTP://example.org"), ExpiresAt: shorten.Value(later.Add(time.Hour)),
			MaxClicks: shorten.Null[int64](), NoIndex: shorten.Null[bool](),
		},
		Status: shorten.Value(link.Disabled),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := before
	want.Destination, want.Expires, want.MaxClicks, want.NoIndex = "http://example.org/", later.Add(time.Hour), 0, true
	want.Status, want.Updated, want.Version = link.Disabled, later, 2
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]link.Change{{Key: before.Key, Version: 2}}, *b.announced); diff != "" {
		t.Errorf("announced (-want +got):\n%s", diff)
	}
}

func TestNullClears(t *testing.T) {
	b := newBench(t)
	req := to("http://example.com/")
	req.Fields = shorten.Fields{
		LongURL: shorten.Value("http://example.com/"), StartsAt: shorten.Value(noon().Add(time.Hour)),
		ExpiresAt: shorten.Value(noon().Add(2 * time.Hour)), Redirect: shorten.Value[int64](301), Title: shorten.Value("t"),
		Tags: shorten.Value([]string{"a"}), Fallback: shorten.Value("http://example.org/"),
		ForwardQuery: shorten.Value(true),
	}
	before := b.mustCreate(t, admin(), req)
	got, err := b.Update(t.Context(), noon(), by(admin()), before.Key, shorten.Match{}, &shorten.Change{Fields: shorten.Fields{
		StartsAt: shorten.Null[time.Time](), ExpiresIn: shorten.Null[int64](), Redirect: shorten.Null[int64](),
		Title: shorten.Null[string](), Tags: shorten.Null[[]string](), Fallback: shorten.Null[string](), ForwardQuery: shorten.Null[bool](),
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := before
	want.Starts, want.Expires, want.Redirect, want.Title, want.Tags = time.Time{}, time.Time{}, 302, "", nil
	want.Fallback, want.ForwardQuery, want.Version = "", false, 2
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cleared (-want +got):\n%s", diff)
	}
}

func TestEmptyChangeWritesNothing(t *testing.T) {
	b := newBench(t)
	before := b.mustCreate(t, admin(), to("http://example.com/"))
	got, err := b.Update(t.Context(), noon().Add(time.Hour), by(admin()), before.Key, shorten.Match{}, &shorten.Change{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, got); diff != "" || len(*b.announced) != 0 {
		t.Errorf("%d announced, changed:\n%s", len(*b.announced), diff)
	}
}

func TestUpdatedNeverGoesBack(t *testing.T) {
	b := newBench(t)
	before := b.mustCreate(t, admin(), to("http://example.com/"))
	got, err := b.Update(t.Context(), noon().Add(-time.Hour), by(admin()), before.Key, shorten.Match{}, &shorten.Change{Fields: shorten.Fields{Title: shorten.Value("x")}})
	if err != nil || !got.Updated.Equal(noon()) {
		t.Errorf("updated at %s (%v), want %s", got.Updated, err, noon())
	}
}

func TestMatchGuardsChangeAndDelete(t *testing.T) {
	b := newBench(t)
	k := b.mustCreate(t, admin(), to("http://example.com/")).Key
	title := &shorten.Change{Fields: shorten.Fields{Title: shorten.Value("x")}}
	for _, stale := range []shorten.Match{{Only: true}, {Only: true, Versions: []link.Version{2}}} {
		_, err := b.Update(t.Context(), noon(), by(admin()), k, stale, title)
		wantError(t, "stale change", err, shorten.ErrVersion)
		_, err = b.Update(t.Context(), noon(), by(admin()), k, stale, &shorten.Change{})
		wantError(t, "stale change of nothing", err, shorten.ErrVersion)
		wantError(t, "stale delete", b.Delete(t.Context(), noon(), by(admin()), k, stale), shorten.ErrVersion)
	}
	if _, err := b.Update(t.Context(), noon(), by(admin()), k, shorten.Match{Only: true, Versions: []link.Version{7, 1}}, title); err != nil {
		t.Error(err)
	}
	if err := b.Delete(t.Context(), noon(), by(admin()), k, shorten.Match{Only: true, Versions: []link.Version{2}}); err != nil {
		t.Error(err)
	}
}

// TestMatchIsAskedAgainAfterALostRound has another process change the link between the read and
// the write of a caller that accepts one version only: what the caller has not seen stays.
func TestMatchIsAskedAgainAfterALostRound(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(b bench, k link.Key, match shorten.Match) error
	}{
		{"update", func(b bench, k link.Key, match shorten.Match) error {
			_, err := b.Update(t.Context(), noon(), by(admin()), k, match, &shorten.Change{Fields: shorten.Fields{Title: shorten.Value("ours")}})
			return err
		}},
		{"delete", func(b bench, k link.Key, match shorten.Match) error {
			return b.Delete(t.Context(), noon(), by(admin()), k, match)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bench
			rivals := 0
			b = newBench(t, func(cfg *linkservice.Config) {
				cfg.Store = linktest.WithFaults(cfg.Store, func(op linktest.Op, k link.Key) (bool, error) {
					if op != linktest.OpReplace || rivals > 0 {
						return true, nil
					}
					rivals++
					_, err := link.Update(t.Context(), b.store, k, "tester", func(l *link.Link) error { l.Title = "theirs"; return nil })
					return true, err
				})
			})
			k := b.mustCreate(t, admin(), to("http://example.com/")).Key
			wantError(t, "a change of version 1", tt.change(b, k, shorten.Match{Only: true, Versions: []link.Version{1}}), shorten.ErrVersion)
			l, err := b.store.Get(t.Context(), k)
			if err != nil || rivals != 1 || l.Version != 2 || l.Title != "theirs" {
				t.Errorf("after %d rivals: version %d, %q, %v; want the rival's version 2", rivals, l.Version, l.Title, err)
			}
		})
	}
}

func TestDeletedIsGoneForEver(t *testing.T) {
	b := newBench(t)
	req := to("http://example.com/secret")
	req.Alias, req.Title = shorten.Value("mine"), shorten.Value("secret")
	k := b.mustCreate(t, admin(), req).Key
	*b.announced = nil
	if err := b.Delete(t.Context(), noon().Add(time.Hour), by(admin()), k, shorten.Match{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]link.Change{{Key: k, Version: 2}}, *b.announced); diff != "" {
		t.Errorf("announced (-want +got):\n%s", diff)
	}
	_, err := b.Get(t.Context(), admin(), k)
	wantError(t, "get", err, link.ErrNotFound)
	_, err = b.Update(t.Context(), noon(), by(admin()), k, shorten.Match{}, &shorten.Change{})
	wantError(t, "change", err, link.ErrNotFound)
	wantError(t, "delete again", b.Delete(t.Context(), noon(), by(admin()), k, shorten.Match{}), link.ErrNotFound)
	wantError(t, "count clicks", b.Exists(t.Context(), admin(), k), link.ErrNotFound)
	_, err = b.created(t.Context(), noon(), by(admin()), &req)
	wantError(t, "create again", err, shorten.ErrTaken)
	left, err := b.store.Get(t.Context(), k)
	if err != nil || left.Destination != "" || left.Title != "" || left.Status != link.Deleted {
		t.Errorf("left behind: %+v, %v", left, err)
	}
}

// A change of a link whose content was removed after it expired says so, to its owner alone.
func TestAChangeComesTooLate(t *testing.T) {
	b := newBench(t)
	acme := member("acme", auth.LinksRead, auth.LinksWrite)
	k := b.mustCreate(t, acme, to("http://example.com/")).Key
	l, err := b.store.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	l.Expires = noon().Add(-time.Hour)
	if _, err := b.store.Replace(t.Context(), l.WithoutContent(noon()), link.Edit{}); err != nil {
		t.Fatal(err)
	}
	revive := &shorten.Change{Fields: shorten.Fields{ExpiresIn: shorten.Value[int64](60)}}
	for name, tt := range map[string]struct {
		who  auth.Principal
		want error
		says bool
	}{
		"owner": {acme, link.ErrNotFound, true}, "admin": {admin(), link.ErrNotFound, true},
		"stranger": {member("other", auth.LinksRead, auth.LinksWrite), link.ErrNotFound, false},
	} {
		_, err := b.Update(t.Context(), noon(), by(tt.who), k, shorten.Match{}, revive)
		wantError(t, name, err, tt.want)
		if errors.Is(err, shorten.ErrContentRemoved) != tt.says {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOthersLinksDoNotExist(t *testing.T) {
	b := newBench(t)
	all := []auth.Scope{auth.LinksRead, auth.LinksWrite, auth.StatsRead}
	k := b.mustCreate(t, member("acme", all...), to("http://example.com/")).Key
	anonymous := b.mustCreate(t, auth.Anonymous(addr("192.0.2.1"), auth.LinksWrite), to("http://example.com/")).Key
	for name, tt := range map[string]struct {
		who   auth.Principal
		key   link.Key
		read  error
		write error
		list  int
	}{
		"owner":                 {member("acme", all...), k, nil, nil, 1},
		"another workspace":     {member("evil", all...), k, link.ErrNotFound, link.ErrNotFound, 0},
		"member of default":     {member(link.WorkspaceDefault, all...), anonymous, link.ErrNotFound, link.ErrNotFound, 0},
		"admin":                 {admin(), k, nil, nil, 2},
		"admin, anonymous link": {admin(), anonymous, nil, nil, 2},
		"its anonymous maker":   {auth.Anonymous(addr("192.0.2.1"), all...), anonymous, link.ErrNotFound, auth.ErrUnauthenticated, -1},
		"owner, no scopes":      {member("acme"), k, auth.ErrForbidden, auth.ErrForbidden, -1},
	} {
		_, err := b.Get(t.Context(), tt.who, tt.key)
		wantError(t, name+": get", err, tt.read)
		wantError(t, name+": count", b.Exists(t.Context(), tt.who, tt.key), tt.read)
		_, err = b.Update(t.Context(), noon(), by(tt.who), tt.key, shorten.Match{}, &shorten.Change{})
		wantError(t, name+": change", err, tt.write)
		if tt.write != nil {
			wantError(t, name+": delete", b.Delete(t.Context(), noon(), by(tt.who), tt.key, shorten.Match{}), tt.write)
		}
		// The filter names another workspace: it must not help.
		slice, err := b.List(t.Context(), tt.who, link.Filter{}, link.Page{Limit: 100})
		switch {
		case tt.list < 0 && err == nil:
			t.Errorf("%s: may list", name)
		case tt.list >= 0 && (err != nil || len(slice.Links) != tt.list):
			t.Errorf("%s: lists %d links, want %d (%v)", name, len(slice.Links), tt.list, err)
		}
		if slice, err := b.List(t.Context(), member("evil", all...), link.Filter{Workspace: "acme"}, link.Page{Limit: 100}); err != nil || len(slice.Links) != 0 {
			t.Errorf("a filter shows another workspace: %d links, %v", len(slice.Links), err)
		}
	}
}

// What was accepted and never written says why to those who may know of it, whatever they ask, and stays as it is.
func TestWhatWasNeverWrittenSaysWhy(t *testing.T) {
	b := newBench(t)
	all := []auth.Scope{auth.LinksRead, auth.LinksWrite, auth.StatsRead}
	for why, want := range map[link.Unwritten]error{link.UnwrittenUnreadable: shorten.ErrUnreadable, link.UnwrittenInvalid: shorten.ErrUnstorable} {
		l := b.mustCreate(t, member("acme", all...), to("http://example.com/")).NeverWritten(noon(), why)
		l.ID[15]++
		l.CodeKind, l.Key.Code = link.Chosen, link.Code(fmt.Sprintf("never%d", why))
		stored, err := b.store.Create(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		for name, tt := range map[string]struct {
			who  auth.Principal
			want error
		}{
			"its owner": {member("acme", all...), want}, "an admin": {admin(), want}, "another workspace": {member("evil", all...), link.ErrNotFound},
		} {
			_, err := b.Get(t.Context(), tt.who, l.Key)
			wantError(t, name+": get", err, tt.want)
			_, err = b.Update(t.Context(), noon(), by(tt.who), l.Key, shorten.Match{}, &shorten.Change{})
			wantError(t, name+": change", err, tt.want)
			wantError(t, name+": delete", b.Delete(t.Context(), noon(), by(tt.who), l.Key, shorten.Match{}), tt.want)
			wantError(t, name+": delete a version", b.Delete(t.Context(), noon(), by(tt.who), l.Key, shorten.Match{Only: true, Versions: []link.Version{1}}), tt.want)
		}
		if left, err := b.store.Get(t.Context(), l.Key); err != nil || left.Version != stored.Version || left.Unwritten() != why {
			t.Errorf("left: %+v, %v", left, err)
		}
	}
}

func TestParallelChangesAllHappen(t *testing.T) {
	b := newBench(t)
	k := b.mustCreate(t, admin(), to("http://example.com/")).Key
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := b.Update(t.Context(), noon(), by(admin()), k, shorten.Match{}, &shorten.Change{Fields: shorten.Fields{Title: shorten.Value("x")}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	l, err := b.Get(t.Context(), admin(), k)
	if err != nil || l.Version != 21 || len(*b.announced) != 20 {
		t.Errorf("version %d, %d announced, %v; want 21 and 20", l.Version, len(*b.announced), err)
	}
}

func TestStoreDownIsNotNotFound(t *testing.T) {
	b := newBench(t, func(cfg *linkservice.Config) {
		cfg.Store = linktest.WithFaults(cfg.Store, func(linktest.Op, link.Key) (bool, error) { return false, link.ErrUnavailable })
	})
	k := link.Key{Code: "abc"}
	_, err := b.Get(t.Context(), admin(), k)
	wantError(t, "get", err, link.ErrUnavailable)
	_, err = b.List(t.Context(), admin(), link.Filter{}, link.Page{Limit: 1})
	wantError(t, "list", err, link.ErrUnavailable)
	_, err = b.Update(t.Context(), noon(), by(admin()), k, shorten.Match{}, &shorten.Change{})
	wantError(t, "change", err, link.ErrUnavailable)
	if err := b.Delete(t.Context(), noon(), by(admin()), k, shorten.Match{}); errors.Is(err, link.ErrNotFound) || !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("delete: %v", err)
	}
}
