package linkservice_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"curt/internal/abuse"
	"curt/internal/auth"
	"curt/internal/idempotency/idempotencytest"
	"curt/internal/link"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
	"curt/internal/shorten/linkservice"
	"curt/internal/weburl"
)

func TestWhatIsFoundBecomesTheSafety(t *testing.T) {
	const clean = "https://example.com/"
	for name, c := range map[string]struct {
		req    shorten.Request
		safety link.Safety
		field  string
	}{
		"clean":             {leading(clean, clean), link.Clean, ""},
		"warn":              {leading("https://warn.example/", clean), link.Warn, "long_url"},
		"quarantined":       {leading("https://quarantined.example/", ""), link.Quarantined, "long_url"},
		"by the fallback":   {leading(clean, "https://warn.example/"), link.Warn, "fallback_url"},
		"the graver of two": {leading("https://warn.example/", "https://quarantined.example/"), link.Quarantined, "fallback_url"},
		"the first of two":  {leading("https://quarantined.example/", "https://warn.example/"), link.Quarantined, "long_url"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, j := newCourt(t)
			alias, dedupe := c.req, c.req
			alias.Alias, dedupe.Dedupe = shorten.Value("mine"), shorten.Value(true)
			entries := 0
			for way, req := range map[string]shorten.Request{"plain": c.req, "alias": alias, "dedupe": dedupe, "idempotent": c.req} {
				create := b.mustCreate
				if way == "idempotent" {
					create = b.mustRepeat
				}
				l := create(t, admin(), req)
				if stored, err := b.store.Get(t.Context(), l.Key); err != nil || stored.Safety != c.safety || l.Safety != c.safety {
					t.Errorf("%s: stored %v, answered %v, want %v; %v", way, stored.Safety, l.Safety, c.safety, err)
				}
				if c.safety != link.Clean {
					entries++
					wantEntry(t, j, entries, l, c.field)
				}
			}
			if n := b.counter(t, "curt_links_warned_total"); n != float64(entries) || len(j.all()) != entries {
				t.Errorf("counted %v, %d entries", n, len(j.all()))
			}
		})
	}
}

func TestWhatWouldBeBlockedIsRefused(t *testing.T) {
	b, _, j := newCourt(t)
	for field, req := range map[string]shorten.Request{
		"long_url": leading("https://blocked.example/", ""), "fallback_url": leading("https://warn.example/", "https://blocked.example/"),
	} {
		for range 2 {
			_, err := b.created(t.Context(), noon(), under(field, admin()), &req)
			harmful, ok := errors.AsType[*shorten.HarmfulError](err)
			if !ok || !errors.Is(err, shorten.ErrHarmful) || harmful.Field != field {
				t.Fatalf("%s: %v", field, err)
			}
			if text := harmful.PublicMessage(); strings.ContainsAny(text, "0123456789") || strings.Contains(text, "alike") || !strings.Contains(text, "use another URL") {
				t.Errorf("the public reads %q", text)
			}
		}
	}
	if b.stored(t) != 0 || len(j.all()) != 0 || b.counter(t, "curt_links_harmful_total") != 4 {
		t.Errorf("%d links, %d entries, counted %v", b.stored(t), len(j.all()), b.counter(t, "curt_links_harmful_total"))
	}
}

func TestTheJudgeKnowsWhoAsks(t *testing.T) {
	b, who, _ := newCourt(t)
	acme := member("acme", auth.LinksWrite)
	acme.Addr = netip.MustParseAddr("::ffff:192.0.2.7")
	b.mustCreate(t, acme, leading("https://example.com/", "https://other.example/"))
	b.mustCreate(t, auth.Anonymous(netip.MustParseAddr("2001:db8::7"), auth.LinksWrite), to("https://example.com/"))
	b.mustCreate(t, admin(), to("https://example.com/"))
	for i, want := range []abuse.Facts{
		{Workspace: "acme", Creator: "key-of-acme", Network: netip.MustParsePrefix("192.0.2.7/32"), Country: "DE"},
		{Workspace: "acme", Creator: "key-of-acme", Network: netip.MustParsePrefix("192.0.2.7/32"), Country: "DE", Fallback: true},
		{Workspace: link.WorkspaceAnonymous, Network: netip.MustParsePrefix("2001:db8::/64")},
		{Workspace: link.WorkspaceDefault, Creator: auth.AdminKeyID},
	} {
		got := who.asked[i]
		if got.URL = (weburl.URL{}); got != want {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
}

// Nothing takes effect before the journal has it: when it cannot be written, no link is
// made; when its answer is lost, the retry writes nothing twice.
func TestNoJournalNoLink(t *testing.T) {
	b, _, j := newCourt(t)
	bad := to("https://warn.example/")
	for _, lost := range []bool{false, true} {
		j.err, j.lost = errWire, lost
		_, err := b.created(t.Context(), noon(), by(admin()), &bad)
		wantError(t, "without the journal", err, link.ErrUnavailable)
		j.err = errWire
		if _, err = b.created(t.Context(), noon(), under("k", admin()), &bad); err == nil {
			t.Error("the broken try was answered")
		}
		if b.stored(t) != 0 {
			t.Fatal("a link was stored that no entry is about")
		}
	}
	before := len(j.all())
	l := b.mustRepeat(t, admin(), bad)
	if again := b.mustRepeat(t, admin(), bad); again.ID != l.ID || l.Safety != link.Warn {
		t.Errorf("%+v, then %+v", l, again)
	}
	wantEntry(t, j, before, l, "long_url")
	plain, _ := b.created(t.Context(), noon(), by(admin()), new(to("https://example.com/")))
	if plain.Safety != link.Clean {
		t.Errorf("%+v", plain)
	}
}

// A link has one decision: what an earlier try wrote stands for the next, whatever the
// judge says by then.
func TestARetryKeepsItsDecision(t *testing.T) {
	records := idempotencytest.NewMemory()
	b, _, j := newCourt(t, func(c *linkservice.Config) { c.Once = records })
	j.err, j.lost = errWire, true
	req := to("https://quarantined.example/")
	if _, err := b.created(t.Context(), noon(), under("k", admin()), &req); err == nil {
		t.Fatal("the broken try was answered")
	}
	after, _, _ := newCourt(t, func(c *linkservice.Config) {
		c.Store, c.Moderator, c.Journal, c.Once = b.store, j, j, records
		c.Judge = func(context.Context, time.Time, *abuse.Facts) abuse.Decision {
			return abuse.Decision{Safety: link.Warn, Score: 1}
		}
	})
	l, err := after.created(t.Context(), noon().Add(time.Hour), under("k", admin()), &req)
	if err != nil || l.Safety != link.Quarantined {
		t.Fatalf("%v, %v", l.Safety, err)
	}
	wantEntry(t, j, 1, l, "long_url")
}

// Who asks for an alias that another link has leaves nothing about it in the journal.
func TestATakenAliasLeavesNoEntry(t *testing.T) {
	b, _, j := newCourt(t)
	b.mustCreate(t, admin(), aliased("taken"))
	req := to("https://warn.example/")
	req.Alias = shorten.Value("taken")
	rows := []create.Row{{Request: req}, {Request: to("https://warn.example/")}}
	for _, dedupe := range []bool{false, true} {
		req.Dedupe = shorten.Value(dedupe)
		_, err := b.created(t.Context(), noon(), by(admin()), &req)
		wantError(t, "a taken alias", err, shorten.ErrTaken)
	}
	if _, err := b.CreateMany(t.Context(), noon(), by(admin()), rows); err != nil {
		t.Fatal(err)
	}
	wantError(t, "a taken alias of many", rows[0].Err, shorten.ErrTaken)
	wantEntry(t, j, 1, rows[1].Result.Link, "long_url")
}

// A code that turns out to be taken costs an entry, which is about a link that never
// was; the link that is made has its own.
func TestATakenCodeIsEnteredAgain(t *testing.T) {
	b, _, j := newCourt(t)
	b.mustCreate(t, admin(), aliased("c000001"))
	l := b.mustCreate(t, admin(), to("https://warn.example/"))
	wantEntry(t, j, 2, l, "long_url")
	if first := j.all()[0]; first.Entity.Name != "/c000001" || first.Link != l.ID {
		t.Errorf("%+v", first)
	}
}

func TestManyAreEnteredAtOnce(t *testing.T) {
	b, _, j := newCourt(t)
	rows := make([]create.Row, 8)
	for i, url := range []string{
		"https://warn.example/1", "https://example.com/2", "https://blocked.example/3", "https://quarantined.example/4",
		"https://example.com/2", "https://warn.example/1", "https://warn.example/7", "javascript:1",
	} {
		rows[i].Request = to(url)
		rows[i].Request.Dedupe = shorten.Value(true)
	}
	if _, err := b.CreateMany(t.Context(), noon(), by(admin()), rows); err != nil {
		t.Fatal(err)
	}
	want := []link.Safety{link.Warn, link.Clean, 0, link.Quarantined, link.Clean, link.Warn, link.Warn, 0}
	for i := range rows {
		if rows[i].Result.Link.Safety != want[i] || (rows[i].Err != nil) != (want[i] == 0) || rows[i].Result.Found != (i == 4) {
			t.Errorf("row %d: %v, %+v", i, rows[i].Err, rows[i].Result)
		}
	}
	wantError(t, "a bad row", rows[2].Err, shorten.ErrHarmful)
	if all := j.all(); len(all) != 4 || j.batches != 1 {
		t.Errorf("%d entries in %d batches", len(all), j.batches)
	}
	j.err = errWire
	more := []create.Row{{Request: to("https://warn.example/8")}, {Request: to("https://example.com/9")}}
	if _, err := b.CreateMany(t.Context(), noon(), by(admin()), more); !errors.Is(err, link.ErrUnavailable) || b.stored(t) != 5 {
		t.Errorf("without the journal: %v, %d links", err, b.stored(t))
	}
}

func TestABadLinkEquivalentNone(t *testing.T) {
	b, _, _ := newCourt(t)
	same := func(url string) shorten.Request {
		req := to(url)
		req.Dedupe = shorten.Value(true)
		return req
	}
	one, two := b.mustCreate(t, admin(), same("https://warn.example/")), b.mustCreate(t, admin(), same("https://warn.example/"))
	if one.ID == two.ID {
		t.Error("a link with a warning was given away")
	}
	first := b.mustCreate(t, admin(), same("https://example.com/"))
	if again := b.mustCreate(t, admin(), same("https://example.com/")); again.ID != first.ID {
		t.Error("a clean link was made twice")
	}
}
