package shorten_test

import (
	"errors"
	"net/netip"
	"testing"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/moderation"
	"curt/internal/shorten"
)

// What a change sets is judged: a link that was approved is not swapped for another.
func TestAChangeIsJudged(t *testing.T) {
	b, who, j := newCourt(t)
	l := b.mustCreate(t, admin(), to("https://example.com/"))
	update := func(c shorten.Change) (link.Link, error) {
		return b.Update(t.Context(), noon(), admin(), l.Key, shorten.Match{}, &c)
	}
	destination := func(url string) shorten.Change {
		return shorten.Change{Fields: shorten.Fields{LongURL: shorten.Value(url)}}
	}
	_, err := update(destination("https://blocked.example/"))
	wantError(t, "a change to what is blocked", err, shorten.ErrHarmful)
	if stored, err := b.store.Get(t.Context(), l.Key); err != nil || stored.Version != 1 || len(j.all()) != 0 {
		t.Fatalf("a refused change left %+v, %v", stored, err)
	}

	j.err = errWire
	_, err = update(destination("https://warn.example/"))
	wantError(t, "a change without the journal", err, link.ErrUnavailable)
	if stored, _ := b.store.Get(t.Context(), l.Key); stored.Version != 1 {
		t.Fatalf("it was made: %+v", stored)
	}
	changed, err := update(destination("https://warn.example/"))
	if err != nil || changed.Safety != link.Warn {
		t.Fatalf("%+v, %v", changed, err)
	}
	wantEntry(t, j, 1, changed, "long_url")
	changed, err = update(shorten.Change{Fields: shorten.Fields{Fallback: shorten.Value("https://quarantined.example/")}})
	if err != nil || changed.Safety != link.Quarantined {
		t.Fatalf("%+v, %v", changed, err)
	}
	wantEntry(t, j, 2, changed, "fallback_url")

	asked := len(who.asked)
	changed, err = update(shorten.Change{Fields: shorten.Fields{Title: shorten.Value("x"), LongURL: shorten.Value("https://warn.example/")}})
	if err != nil || changed.Safety != link.Quarantined || len(who.asked) != asked {
		t.Errorf("a change that leads nowhere else: %+v, %v, %d questions", changed, err, len(who.asked)-asked)
	}
	for _, f := range who.asked[1:] {
		if !f.Change || f.Workspace != l.Workspace || f.Maker != auth.AdminKeyID {
			t.Errorf("asked about %+v", f)
		}
	}
	if changed, err = update(shorten.Change{Status: shorten.Value(link.Disabled)}); err != nil || len(who.asked) != asked {
		t.Fatalf("%+v, %v", changed, err)
	}
	if changed, err = update(shorten.Change{Status: shorten.Value(link.Active)}); err != nil || changed.Safety != link.Quarantined || len(who.asked) != asked+2 {
		t.Errorf("switched on: %+v, %v", changed, err)
	}
	if len(j.all()) != 2 || b.counter(t, "curt_links_warned_total") != 2 {
		t.Errorf("%d entries, counted %v", len(j.all()), b.counter(t, "curt_links_warned_total"))
	}
}

// While others win, a change is written into the journal once.
func TestAChangeIsEnteredOnce(t *testing.T) {
	store, rivals := linktest.NewMemory(), 3
	wire := linktest.WithFaults(store, func(op linktest.Op, _ link.Key) (bool, error) {
		if op == linktest.OpReplace && rivals > 0 {
			rivals--
			return false, link.ErrConflict
		}
		return true, nil
	})
	b, _, j := newCourt(t, func(c *shorten.Config) { c.Store = wire })
	l := b.mustCreate(t, admin(), to("https://example.com/"))
	changed, err := b.Update(t.Context(), noon(), admin(), l.Key, shorten.Match{}, &shorten.Change{Fields: shorten.Fields{LongURL: shorten.Value("https://warn.example/")}})
	if err != nil || changed.Safety != link.Warn {
		t.Fatalf("%+v, %v", changed, err)
	}
	wantEntry(t, j, 1, changed, "long_url")
}

// A link that is led to better places loses the policy's own warning, and no other.
func TestALinkThatLeadsElsewhereIsRelieved(t *testing.T) {
	b, _, j := newCourt(t)
	update := func(l link.Link, fields shorten.Fields) link.Link {
		t.Helper()
		changed, err := b.Update(t.Context(), noon(), admin(), l.Key, shorten.Match{}, &shorten.Change{Fields: fields})
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	l := b.mustCreate(t, admin(), leading("https://quarantined.example/", "https://warn.example/"))
	if l = update(l, shorten.Fields{Fallback: shorten.Value("https://good.example/")}); l.Safety != link.Quarantined || len(j.all()) != 1 {
		t.Fatalf("half of it leads elsewhere: %v, %d entries", l.Safety, len(j.all()))
	}
	if l = update(l, shorten.Fields{LongURL: shorten.Value("https://warn.example/")}); l.Safety != link.Warn {
		t.Fatalf("to something less bad: %v", l.Safety)
	}
	wantEntry(t, j, 2, l, "long_url")
	if l = update(l, shorten.Fields{LongURL: shorten.Value("https://example.com/")}); l.Safety != link.Clean || len(j.all()) != 3 {
		t.Fatalf("to something good: %v, %d entries", l.Safety, len(j.all()))
	}
	if e := j.all()[2]; e.Safety != link.Clean || e.Actor != moderation.ActorPolicy || e.Link != l.ID || e.Evidence.Body != "[]" {
		t.Errorf("%+v", e)
	}
	if l = update(l, shorten.Fields{LongURL: shorten.Value("https://quarantined.example/")}); l.Safety != link.Quarantined {
		t.Fatalf("and back: %v", l.Safety)
	}
	said := j.all()[3]
	said.Actor, said.Safety = "a-person", link.Warn
	if _, err := j.Append(t.Context(), said); err != nil {
		t.Fatal(err)
	}
	if l, _ = j.Settle(t.Context(), noon(), l.Key); l.Safety != link.Warn {
		t.Fatal(l.Safety)
	}
	if l = update(l, shorten.Fields{LongURL: shorten.Value("https://example.com/")}); l.Safety != link.Warn || len(j.all()) != 5 {
		t.Errorf("what a person decided became %v, %d entries", l.Safety, len(j.all()))
	}
}

func TestBansStandAgainstMakingAndChanging(t *testing.T) {
	b, who, j := newCourt(t)
	for _, e := range []moderation.Entity{
		{Kind: moderation.KindWorkspace, Name: "bad"},
		{Kind: moderation.KindKey, Name: "key-of-worse"},
		{Kind: moderation.KindNetwork, Name: "192.0.2.7/32"},
		{Kind: moderation.KindHost, Name: "banned.example"},
	} {
		j.bans[e] = true
	}
	far := member("acme", auth.LinksWrite)
	far.Addr = netip.MustParseAddr("192.0.2.7")
	n := 0
	for name, c := range map[string]struct {
		who  auth.Caller
		url  string
		kind error
	}{
		"workspace":   {member("bad", auth.LinksWrite), "https://example.com/", shorten.ErrBanned},
		"key":         {member("worse", auth.LinksWrite), "https://example.com/", shorten.ErrBanned},
		"network":     {far, "https://example.com/", shorten.ErrBanned},
		"destination": {member("acme", auth.LinksWrite), "https://banned.example/x", shorten.ErrBannedDestination},
	} {
		for way, req := range map[string]shorten.Request{"plain": to(c.url), "idempotent": under("k", to(c.url)), "fallback": leading("https://example.com/", c.url)} {
			_, err := b.Create(t.Context(), noon(), c.who, &req)
			banned, ok := errors.AsType[*shorten.BannedError](err)
			if !ok || !errors.Is(err, c.kind) || banned.PublicMessage() == "" {
				t.Errorf("%s, %s: %v", name, way, err)
			}
			n++
		}
		rows := []shorten.Row{{Request: to(c.url)}, {Request: to("https://example.com/")}}
		if _, err := b.MakeMany(t.Context(), noon(), c.who, rows); err != nil {
			t.Fatal(err)
		}
		wantError(t, name+" among many", rows[0].Err, c.kind)
		n++
		if name != "destination" {
			wantError(t, name+" among many", rows[1].Err, c.kind)
			n++
		}
	}
	asked := len(who.asked)
	l := b.mustCreate(t, admin(), to("https://example.com/"))
	_, err := b.Update(t.Context(), noon(), admin(), l.Key, shorten.Match{}, &shorten.Change{Fields: shorten.Fields{LongURL: shorten.Value("https://banned.example/")}})
	wantError(t, "a change", err, shorten.ErrBannedDestination)
	if got := b.counter(t, "curt_links_banned_total"); got != float64(n+1) || len(j.all()) != 0 || len(who.asked) != asked+2 || j.inside.Load() != 0 {
		t.Errorf("counted %v, want %d; %d entries, %d questions, %d inside", got, n+1, len(j.all()), len(who.asked)-asked, j.inside.Load())
	}
}
