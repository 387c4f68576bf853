package moderator_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"curt/internal/abuse"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderator"
	"curt/internal/weburl"
)

func facts(t *testing.T, href, network string) *abuse.Facts {
	t.Helper()
	u, err := weburl.Parse(href)
	if err != nil {
		t.Fatal(err)
	}
	return &abuse.Facts{URL: u, Workspace: "acme", Creator: "maker", Network: netip.MustParsePrefix(network)}
}

func TestBansBarCreatesAtOnce(t *testing.T) {
	for _, tt := range []struct {
		kind          moderation.Kind
		name          string
		href, network string
		barred        bool
	}{
		{moderation.KindWorkspace, "acme", "https://a.example/", "192.0.2.1/32", true},
		{moderation.KindWorkspace, "rival", "https://a.example/", "192.0.2.1/32", false},
		{moderation.KindKey, "maker", "https://a.example/", "192.0.2.1/32", true},
		{moderation.KindKey, "other", "https://a.example/", "192.0.2.1/32", false},
		{moderation.KindHost, "evil.example", "https://EVIL.example:8443/x", "192.0.2.1/32", true},
		{moderation.KindHost, "evil.example", "https://www.evil.example/", "192.0.2.1/32", false},
		{moderation.KindHost, "EVIL.Example.", "https://evil.example./", "192.0.2.1/32", true},
		{moderation.KindHost, "[2001:db8::1]", "https://[2001:db8:0::1]/", "192.0.2.1/32", true},
		{moderation.KindHost, "203.0.113.7", "https://0xcb007107/", "192.0.2.1/32", true},
		{moderation.KindHost, "203.0.113.7", "https://[64:ff9b::203.0.113.7]/", "192.0.2.1/32", true},
		{moderation.KindHost, "203.0.113.7", "https://[64:ff9b:1::203.0.113.7]/", "192.0.2.1/32", true},
		{moderation.KindHost, "203.0.113.7", "https://[64:ff9b:1:cb00:71:700::]/", "192.0.2.1/32", true},
		{moderation.KindHost, "203.0.113.7", "https://[::ffff:0:203.0.113.7]/", "192.0.2.1/32", true},
		{moderation.KindHost, "203.0.113.7", "https://[2001:db8::200:5efe:203.0.113.7]/", "192.0.2.1/32", true},
		{moderation.KindHost, "203.0.113.7", "https://[2001:0:1:2:3:4:34ff:8ef8]/", "192.0.2.1/32", true},
		{moderation.KindHost, "203.0.113.7", "https://[2001:0:cb00:7107::]/", "192.0.2.1/32", true},
		{moderation.KindHost, "203.0.113.7", "https://[64:ff9b:1::203.0.113.8]/", "192.0.2.1/32", false},
		{moderation.KindHost, "203.0.113.7", "https://203.0.113.7.nip.io/", "192.0.2.1/32", true},
		{moderation.KindHost, "203.0.113.7", "https://a-203-0-113-7.SSLIP.io./", "192.0.2.1/32", true},
		{moderation.KindHost, "203.0.113.7", "https://203.0.113.8.nip.io/", "192.0.2.1/32", false},
		{moderation.KindHost, "203.0.113.7", "https://203.0.113.7.nip.io.example/", "192.0.2.1/32", false},
		{moderation.KindDomain, "evil.example", "https://evil.example/", "192.0.2.1/32", true},
		{moderation.KindDomain, "evil.example", "https://a.b.evil.example/", "192.0.2.1/32", true},
		{moderation.KindDomain, "evil.example", "https://notevil.example/", "192.0.2.1/32", false},
		{moderation.KindDomain, "github.io", "https://mallory.github.io/", "192.0.2.1/32", true},
		{moderation.KindDomain, "münchen.example", "https://x.xn--mnchen-3ya.example/", "192.0.2.1/32", true},
		{moderation.KindNetwork, "192.0.2.0/24", "https://a.example/", "192.0.2.255/32", true},
		{moderation.KindNetwork, "192.0.2.7/24", "https://a.example/", "192.0.2.1/32", true},
		{moderation.KindNetwork, "192.0.2.1", "https://a.example/", "192.0.2.1/32", true},
		{moderation.KindNetwork, "192.0.2.1", "https://a.example/", "192.0.2.2/32", false},
		{moderation.KindNetwork, "192.0.2.0/24", "https://a.example/", "192.0.3.0/32", false},
		{moderation.KindNetwork, "::ffff:192.0.2.0/120", "https://a.example/", "192.0.2.9/32", true},
		{moderation.KindNetwork, "192.0.2.0/24", "https://a.example/", "::ffff:192.0.2.9/128", true},
		{moderation.KindNetwork, "192.0.2.0/24", "https://a.example/", "2002:c000:2ff:7::/64", true},
		{moderation.KindNetwork, "192.0.2.0/24", "https://a.example/", "2002:c000:3ff:7::/64", false},
		{moderation.KindNetwork, "2001:db8::/32", "https://a.example/", "2001:db8:7::/64", true},
		{moderation.KindNetwork, "2001:db8:0:7::5", "https://a.example/", "2001:db8:0:7::/64", true},
		{moderation.KindNetwork, "2001:db8:0:7::/64", "https://a.example/", "2001:db8:0:8::/64", false},
	} {
		d := newDesk(t)
		ban := d.ban(t, tt.kind, tt.name)
		got, barred := d.CheckBan(facts(t, tt.href, tt.network))
		if barred != tt.barred || barred && got.Sequence != ban.Sequence {
			t.Errorf("%s %s, %s from %s: barred %v by %s", tt.kind, tt.name, tt.href, tt.network, barred, got.Entity)
		}
		if _, again := d.open(t).CheckBan(facts(t, tt.href, tt.network)); again != tt.barred {
			t.Errorf("%s %s: barred %v after a start", tt.kind, tt.name, again)
		}
		d.lift(t, ban.Sequence)
		if _, barred := d.CheckBan(facts(t, tt.href, tt.network)); barred || len(d.Bans()) != 0 {
			t.Errorf("%s %s still stands", tt.kind, tt.name)
		}
	}
}

func TestNobodyIsBarredWithoutAKey(t *testing.T) {
	d := newDesk(t)
	d.ban(t, moderation.KindKey, "maker")
	if _, barred := d.CheckBan(&abuse.Facts{Workspace: link.WorkspaceAnonymous}); barred {
		t.Error("facts of which nothing is known are barred")
	}
}

func TestAQuestionCostsNextToNothing(t *testing.T) {
	d := newDesk(t)
	f := facts(t, "https://a.b.c.example.com/", "192.0.2.1/32")
	if n := testing.AllocsPerRun(100, func() { d.CheckBan(f) }); n > 0 {
		t.Errorf("%.0f allocations without bans", n)
	}
	for i := range 1000 {
		d.ban(t, moderation.KindDomain, fmt.Sprintf("evil-%d.example", i))
		d.ban(t, moderation.KindNetwork, fmt.Sprintf("198.51.%d.0/24", i%256))
	}
	if n := testing.AllocsPerRun(100, func() { d.CheckBan(f) }); n > 5 {
		t.Errorf("%.0f allocations with 2,000 bans", n)
	}
}

func TestNamesThatAreNone(t *testing.T) {
	for kind, names := range map[moderation.Kind][]string{
		"":                       {"x"},
		"planet":                 {"mars"},
		moderation.KindLink:      {"", "/", "a/b/c", "a b", "UPPER.example/abc", strings.Repeat("x", 65)},
		moderation.KindWorkspace: {"", "a\nb", "\xff", strings.Repeat("x", 65)},
		moderation.KindKey:       {"", "\u202e", strings.Repeat("x", 65)},
		moderation.KindHost:      {"", "a b", "https://evil.example/", "evil.example/x", "%", strings.Repeat("a.", 200)},
		moderation.KindDomain:    {"", ".", "com", "co.uk", "localhost", "192.0.2.1", "2001:db8::1", "*.evil.example"},
		moderation.KindNetwork:   {"", "0.0.0.0/0", "10.0.0.0/7", "::/0", "2001::/15", "192.0.2.0/33", "192.0.2.256", "2001:db8::/65", "fe80::1%eth0", "::ffff:0:0/90", "evil.example"},
	} {
		for _, name := range names {
			if e, err := moderation.ParseEntity(kind, name); !errors.Is(err, moderation.ErrInvalid) {
				t.Errorf("%s %q is %v, %v", kind, name, e, err)
			}
		}
	}
}

// A ban takes hold of what is there, leaves the rest alone, and its end undoes it: what
// else is decided about a link stays.
func TestABanWalksAndIsUndone(t *testing.T) {
	for _, tt := range []struct {
		kind moderation.Kind
		name string
	}{
		{moderation.KindHost, "evil.example"}, {moderation.KindDomain, "evil.example"}, {moderation.KindWorkspace, "bad"}, {moderation.KindKey, "thief"},
	} {
		t.Run(string(tt.kind), func(t *testing.T) {
			d := newDesk(t)
			evil := func(l *link.Link) { l.Destination, l.Workspace, l.CreatedBy = "https://evil.example/x", "bad", "thief" }
			var good, hit []link.Key
			for n := range 1200 { // more than two pages
				if n%3 == 0 {
					hit = append(hit, d.make(t, n, evil))
				} else {
					good = append(good, d.make(t, n))
				}
			}
			d.decide(t, hit[0], link.Warn)
			d.decide(t, hit[1], link.Legal)
			d.run(t)
			ban := d.ban(t, tt.kind, tt.name)
			if got := d.Bans(); len(got) != 1 || got[0].Walk == nil {
				t.Errorf("before the walk: %+v", got)
			}
			d.changes()
			d.run(t)
			for _, k := range good {
				d.safety(t, k, link.Clean)
			}
			for i, k := range hit {
				want := link.Blocked
				if i == 1 {
					want = link.Legal // is graver
				}
				d.safety(t, k, want)
			}
			changes := d.changes()
			if n := len(changes); n != len(hit)-1 {
				t.Errorf("%d links were announced", n)
			}
			if first := changes[:16]; slices.ContainsFunc(first, func(c link.Change) bool { return slices.Index(hit, c.Key) < len(hit)-200 }) {
				t.Errorf("the newest are not first: %v", first)
			}
			if got := d.Bans(); len(got) != 1 || got[0].Walk != nil {
				t.Errorf("behind the walk: %+v", got)
			}
			d.lift(t, ban.Sequence)
			d.run(t)
			for i, k := range hit {
				d.safety(t, k, []link.Safety{link.Warn, link.Legal, link.Clean}[min(i, 2)])
			}
		})
	}
}

func TestABanOfALinkIsDoneAtOnce(t *testing.T) {
	d := newDesk(t)
	k := d.make(t, 1)
	ban := d.ban(t, moderation.KindLink, "link-1")
	d.safety(t, k, link.Blocked)
	d.lift(t, ban.Sequence)
	d.safety(t, k, link.Clean)
	if _, err := d.Ban(t.Context(), noon(), "moderator", moderation.Entity{Kind: moderation.KindLink, Name: "none"}, link.Blocked, "x"); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestTheFallbackCountsToo(t *testing.T) {
	d := newDesk(t)
	k := d.make(t, 1, func(l *link.Link) { l.Fallback = "https://a.evil.example/" })
	d.ban(t, moderation.KindDomain, "evil.example")
	d.run(t)
	d.safety(t, k, link.Blocked)
}

// A walk that was interrupted goes on where it was, in the next process.
func TestAWalkIsResumed(t *testing.T) {
	d := newDesk(t)
	for n := range 2600 {
		d.make(t, n, to("https://evil.example/"))
	}
	d.ban(t, moderation.KindHost, "evil.example")
	for range 3 {
		if more, err := d.Step(t.Context()); err != nil || !more {
			t.Fatalf("%v, %v", more, err)
		}
	}
	if err := d.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	half := len(d.changes())
	d.open(t)
	if got := d.Bans(); len(got) != 1 || got[0].Walk == nil || got[0].Walk.Seen != uint64(half) || half != 1500 {
		t.Errorf("after %d links: %+v", half, got)
	}
	d.run(t)
	if n := len(d.changes()); half+n != 2600 {
		t.Errorf("%d and %d links", half, n)
	}
}

// Who was judged before a ban was known, and writes later, is found all the same.
func TestAWalkWaitsForWritesUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		leave := d.BeginWrite()
		if _, barred := d.CheckBan(facts(t, "https://evil.example/", "192.0.2.1/32")); barred {
			t.Fatal("barred before the ban")
		}
		d.ban(t, moderation.KindHost, "evil.example")
		ctx, cancel := context.WithCancel(t.Context())
		stepped := make(chan error)
		go func() {
			_, err := d.Step(ctx)
			stepped <- err
		}()
		synctest.Wait()
		select {
		case err := <-stepped:
			t.Fatalf("the walk did not wait: %v", err)
		default:
		}
		cancel() // a walk that waits ends with its context
		if err := <-stepped; !errors.Is(err, context.Canceled) {
			t.Errorf("the walk was ended: %v", err)
		}
		d.BeginWrite()() // who comes later keeps nobody waiting
		go func() {
			_, err := d.Step(t.Context())
			stepped <- err
		}()
		synctest.Wait()
		k := d.make(t, 1, to("https://evil.example/")) // which a walk that did not wait would have passed by
		leave()
		if err := <-stepped; err != nil {
			t.Error(err)
		}
		d.safety(t, k, link.Blocked)
	})
}

// A thousand bans at once do not make a thousand walks.
func TestManyBansShareWalks(t *testing.T) {
	d := newDesk(t)
	for n := range 1500 {
		d.make(t, n, to("https://host-"+string(rune('a'+n%26))+".example/"))
	}
	lists := 0
	d.store = watched{d.links, func(method string) error {
		if method == "List" {
			lists++
		}
		return nil
	}}
	d.open(t)
	for c := 'a'; c <= 'z'; c++ {
		for _, kind := range []moderation.Kind{moderation.KindHost, moderation.KindDomain} {
			d.ban(t, kind, "host-"+string(c)+".example")
		}
	}
	d.run(t)
	if len(d.changes()) != 1500 || lists > 5*4 {
		t.Errorf("%d pages were read", lists)
	}
}

func TestALiftOfWhatDoesNotStand(t *testing.T) {
	d := newDesk(t)
	first := d.ban(t, moderation.KindHost, "evil.example")
	second := d.ban(t, moderation.KindHost, "evil.example") // in its place
	for _, sequence := range []uint64{0, first.Sequence, 99} {
		if _, err := d.Lift(t.Context(), noon(), "moderator", sequence, "x"); !errors.Is(err, moderation.ErrNotFound) {
			t.Errorf("entry %d: %v", sequence, err)
		}
	}
	d.lift(t, second.Sequence)
	if _, err := d.Lift(t.Context(), noon(), "moderator", second.Sequence, "x"); !errors.Is(err, moderation.ErrNotFound) {
		t.Errorf("twice: %v", err)
	}
	if _, err := d.Ban(t.Context(), noon(), "moderator", first.Entity, link.Clean, "x"); !errors.Is(err, moderation.ErrInvalid) {
		t.Errorf("a ban that is none: %v", err)
	}
}

func TestPreviewCountsAndBansNothing(t *testing.T) {
	d := newDesk(t)
	for n := range 700 {
		d.make(t, n, to("https://"+[]string{"a.evil.example", "good.example"}[n%2]+"/"))
	}
	preview := func(kind moderation.Kind, name string) moderator.Preview {
		p, err := d.Preview(t.Context(), moderation.Entity{Kind: kind, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := preview(moderation.KindDomain, "EVIL.example"); p.Links != 350 || !p.Complete || p.Seen != 700 || len(p.Sample) != 10 ||
		p.Sample[0].Key.Code != "link-698" || p.Entity.Name != "evil.example" {
		t.Errorf("%+v", p)
	}
	for kind, name := range map[moderation.Kind]string{moderation.KindHost: "evil.example", moderation.KindNetwork: "192.0.2.1", moderation.KindWorkspace: "rival"} {
		if p := preview(kind, name); p.Links != 0 || !p.Complete {
			t.Errorf("%s %s: %+v", kind, name, p)
		}
	}
	if p := preview(moderation.KindLink, "link-7"); p.Links != 1 || p.Sample[0].Key.Code != "link-7" {
		t.Errorf("%+v", p)
	}
	if len(d.entries(t)) != 0 || len(d.changes()) != 0 {
		t.Error("something was banned")
	}
}

// The journal alone decides: whatever was done to the links by hand is undone.
func TestRebuild(t *testing.T) {
	d := newDesk(t)
	var keys []link.Key
	for n := range 5 {
		keys = append(keys, d.make(t, n, to([]string{"https://evil.example/", "https://good.example/"}[n%2])))
	}
	d.ban(t, moderation.KindHost, "evil.example")
	d.decide(t, keys[1], link.Warn)
	d.run(t)
	want := []link.Safety{link.Blocked, link.Warn, link.Blocked, link.Clean, link.Blocked}
	for i, k := range keys {
		d.safety(t, k, want[i])
		if _, err := link.Update(t.Context(), d.links, k, "tester", func(l *link.Link) error { l.Safety = link.Legal; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Rebuild(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	d.run(t)
	for i, k := range keys {
		d.safety(t, k, want[i])
	}
}
