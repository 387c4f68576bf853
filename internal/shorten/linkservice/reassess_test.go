package linkservice_test

import (
	"errors"
	"net/netip"
	"testing"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/moderation"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
	"curt/internal/shorten/linkservice"
)

// What a change sets is judged: a link that was approved is not swapped for another.
func TestAChangeIsJudged(t *testing.T) {
	b, who, j := newCourt(t)
	l := b.mustCreate(t, admin(), to("https://example.com/"))
	update := func(c shorten.Change) (link.Link, error) {
		return b.Update(t.Context(), noon(), by(admin()), l.Key, shorten.Match{}, &c)
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
		if !f.Change || f.Workspace != l.Workspace || f.Creator != auth.AdminKeyID {
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
	b, _, j := newCourt(t, func(c *linkservice.Config) { c.Store = wire })
	l := b.mustCreate(t, admin(), to("https://example.com/"))
	changed, err := b.Update(t.Context(), noon(), by(admin()), l.Key, shorten.Match{}, &shorten.Change{Fields: shorten.Fields{LongURL: shorten.Value("https://warn.example/")}})
	if err != nil || changed.Safety != link.Warn {
		t.Fatalf("%+v, %v", changed, err)
	}
	wantEntry(t, j, 1, changed, "long_url")
}

// Whoever may change a link does not lift what stands of it: not what the policy said of
// where it led, and not what was reported.
func TestNoChangeBettersALinksSafety(t *testing.T) {
	b, _, j := newCourt(t)
	warned := b.mustCreate(t, admin(), leading("https://quarantined.example/", "https://warn.example/"))
	reported := b.mustCreate(t, admin(), to("https://example.com/"))
	for _, safety := range []link.Safety{link.Quarantined, link.Blocked} {
		if _, err := j.Append(t.Context(), moderation.Entry{
			At: noon(), Entity: moderation.OfLink(reported.Key), Link: reported.ID, Action: moderation.ActionDecide, Safety: safety, Actor: moderation.ActorPolicy,
		}); err != nil {
			t.Fatal(err)
		}
		if l, err := j.Apply(t.Context(), noon(), reported.Key); err != nil || l.Safety != safety {
			t.Fatal(l.Safety, err)
		}
		for _, l := range []link.Link{warned, reported} {
			stood, err := b.store.Get(t.Context(), l.Key)
			if err != nil {
				t.Fatal(err)
			}
			for name, c := range map[string]shorten.Change{
				"off":          {Status: shorten.Value(link.Disabled)},
				"on":           {Status: shorten.Value(link.Active)},
				"a fragment":   {Fields: shorten.Fields{LongURL: shorten.Value("https://example.com/#x")}},
				"elsewhere":    {Fields: shorten.Fields{LongURL: shorten.Value("https://good.example/")}},
				"less bad":     {Fields: shorten.Fields{LongURL: shorten.Value("https://warn.example/")}},
				"the fallback": {Fields: shorten.Fields{Fallback: shorten.Value("https://good.example/")}},
			} {
				n := len(j.all())
				if changed, err := b.Update(t.Context(), noon(), by(admin()), l.Key, shorten.Match{}, &c); err != nil || changed.Safety != stood.Safety || len(j.all()) != n {
					t.Errorf("%s: %v was %v, %v, %d entries more", name, changed.Safety, stood.Safety, err, len(j.all())-n)
				}
			}
		}
	}
}

// What is on the journal, and about to reach the link, is not put off by something milder.
func TestAChangeDoesNotOvertakeAGraverDecision(t *testing.T) {
	b, _, j := newCourt(t)
	l := b.mustCreate(t, admin(), to("https://example.com/"))
	if _, err := j.Append(t.Context(), moderation.Entry{
		At: noon(), Entity: moderation.OfLink(l.Key), Link: l.ID, Action: moderation.ActionDecide, Safety: link.Quarantined, Actor: moderation.ActorPolicy,
	}); err != nil {
		t.Fatal(err)
	}
	changed, err := b.Update(t.Context(), noon(), by(admin()), l.Key, shorten.Match{}, &shorten.Change{Fields: shorten.Fields{LongURL: shorten.Value("https://warn.example/")}})
	if err != nil || changed.Safety != link.Quarantined || len(j.all()) != 1 {
		t.Errorf("%v, %v, %d entries", changed.Safety, err, len(j.all()))
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
		who  auth.Principal
		url  string
		kind error
	}{
		"workspace":   {member("bad", auth.LinksWrite), "https://example.com/", shorten.ErrBanned},
		"key":         {member("worse", auth.LinksWrite), "https://example.com/", shorten.ErrBanned},
		"network":     {far, "https://example.com/", shorten.ErrBanned},
		"destination": {member("acme", auth.LinksWrite), "https://banned.example/x", shorten.ErrBannedDestination},
	} {
		for way, req := range map[string]shorten.Request{"plain": to(c.url), "idempotent": to(c.url), "fallback": leading("https://example.com/", c.url)} {
			cause := by(c.who)
			if way == "idempotent" {
				cause = under("k", c.who)
			}
			_, err := b.created(t.Context(), noon(), cause, &req)
			banned, ok := errors.AsType[*shorten.BannedError](err)
			if !ok || !errors.Is(err, c.kind) || banned.PublicMessage() == "" {
				t.Errorf("%s, %s: %v", name, way, err)
			}
			n++
		}
		rows := []create.Row{{Request: to(c.url)}, {Request: to("https://example.com/")}}
		if _, err := b.CreateMany(t.Context(), noon(), by(c.who), rows); err != nil {
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
	_, err := b.Update(t.Context(), noon(), by(admin()), l.Key, shorten.Match{}, &shorten.Change{Fields: shorten.Fields{LongURL: shorten.Value("https://banned.example/")}})
	wantError(t, "a change", err, shorten.ErrBannedDestination)
	if got := b.counter(t, "curt_links_banned_total"); got != float64(n+1) || len(j.all()) != 0 || len(who.asked) != asked+2 || j.inside.Load() != 0 {
		t.Errorf("counted %v, want %d; %d entries, %d questions, %d inside", got, n+1, len(j.all()), len(who.asked)-asked, j.inside.Load())
	}
}
