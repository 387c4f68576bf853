package linkservice_test

import (
	"sync"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/idempotency/idempotencytest"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
	"curt/internal/shorten/linkservice"
)

func deduped(req shorten.Request) shorten.Request {
	req.Dedupe = shorten.Value(true)
	return req
}

func (b bench) mustMake(t *testing.T, who auth.Principal, req shorten.Request) shorten.Result {
	t.Helper()
	made, err := b.Create(t.Context(), noon(), by(who), &req)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestDedupeIsExactAmongParallelCallers(t *testing.T) {
	b := newBench(t)
	const callers = 1000
	got := make([]shorten.Result, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			req := deduped(to("https://example.com/"))
			var err error
			if got[i], err = b.Create(t.Context(), noon(), by(admin()), &req); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	created := 0
	for i := range got {
		if got[i].Link.ID != got[0].Link.ID {
			t.Fatalf("caller %d got %s, the first %s", i, got[i].Link.Key, got[0].Link.Key)
		}
		if !got[i].Found {
			created++
		}
	}
	if created != 1 || b.stored(t) != 1 || b.counter(t, "curt_creates_deduplicated_total") != callers-1 {
		t.Errorf("%d created, %d links", created, b.stored(t))
	}
}

func TestDedupeGivesWhatAnswersAlike(t *testing.T) {
	b := newBench(t)
	plain := b.mustMake(t, admin(), deduped(to("https://example.com/")))
	if plain.Found {
		t.Error("found a link in an empty store")
	}
	other := to("HTTPS://EXAMPLE.com:443")
	other.Title, other.Tags = shorten.Value("other"), shorten.Value([]string{"tag"})
	if got := b.mustMake(t, admin(), deduped(other)); !got.Found || got.Link.ID != plain.Link.ID || got.Link.Title != "" {
		t.Errorf("the same URL in another spelling: %+v", got)
	}
	if got := b.mustMake(t, member("acme", auth.LinksWrite), deduped(to("https://example.com/"))); got.Found {
		t.Error("another workspace's link was given away")
	}
	bounded := to("https://example.com/")
	bounded.MaxClicks = shorten.Value[int64](3)
	for range 2 {
		if got := b.mustMake(t, admin(), deduped(bounded)); got.Found {
			t.Error("a link with a bound of clicks was shared")
		}
	}
	dated := to("https://example.com/")
	dated.ExpiresAt = shorten.Value(noon().Add(time.Hour))
	first := b.mustMake(t, admin(), deduped(dated))
	if got := b.mustMake(t, admin(), deduped(dated)); first.Found || !got.Found || got.Link.ID != first.Link.ID {
		t.Errorf("the same date: %+v", got)
	}
	anonymous := auth.Anonymous(addr("192.0.2.1"), auth.LinksWrite)
	req := deduped(to("https://example.com/"))
	_, err := b.Create(t.Context(), noon(), by(anonymous), &req)
	wantError(t, "without a key", err, link.ErrInvalid)
}

// A server that makes codes of URLs dedupes unless it is told not to.
func TestDedupeByDefault(t *testing.T) {
	b := newBench(t, likely(7)["hash"], func(cfg *linkservice.Config) { cfg.Dedupe = true })
	plain := to("https://example.com/")
	first := b.mustMake(t, admin(), plain)
	for name, dedupe := range map[string]shorten.Field[bool]{"absent": {}, "null": shorten.Null[bool](), "true": shorten.Value(true)} {
		req := plain
		req.Dedupe = dedupe
		if got := b.mustMake(t, admin(), req); !got.Found || got.Link.ID != first.Link.ID {
			t.Errorf("dedupe %s: %+v", name, got)
		}
	}
	no := plain
	no.Dedupe = shorten.Value(false)
	if got := b.mustMake(t, admin(), no); got.Found || got.Link.Key == first.Link.Key {
		t.Errorf("dedupe false: %+v", got)
	}
	dated := plain
	dated.ExpiresAt = shorten.Value(noon().Add(time.Hour))
	if got := b.mustMake(t, admin(), dated); got.Found {
		t.Errorf("a link without an expiry stands in for one with: %+v", got)
	}
	if got := b.mustMake(t, auth.Anonymous(addr("192.0.2.1"), auth.LinksWrite), plain); got.Found {
		t.Errorf("a caller without a key was shown %+v", got)
	}
	named := aliased("an-alias")
	b.mustMake(t, admin(), named)
	_, err := b.Create(t.Context(), noon(), by(admin()), &named)
	wantError(t, "an alias that is taken by the same link", err, shorten.ErrTaken)

	rows := []create.Row{{Request: plain}, {Request: no}, {Request: to("https://example.com/new")}, {Request: to("https://example.com/new")}}
	if _, err := b.CreateMany(t.Context(), noon(), by(admin()), rows); err != nil {
		t.Fatal(err)
	}
	for i, found := range []bool{true, false, false, true} {
		if rows[i].Err != nil || rows[i].Result.Found != found {
			t.Errorf("row %d: found %v, %v; want %v", i, rows[i].Result.Found, rows[i].Err, found)
		}
	}
}

// What the default is when a request is sent again does not matter to its key.
func TestIdempotencyKeyOutlivesTheDefaultOfDedupe(t *testing.T) {
	for _, before := range []bool{false, true} {
		store, once := linktest.NewMemory(), idempotencytest.NewMemory()
		b := newBench(t, func(cfg *linkservice.Config) { cfg.Store, cfg.Once, cfg.Dedupe = store, once, before })
		req := to("https://example.com/")
		first, err := b.Create(t.Context(), noon(), under("once", admin()), &req)
		if err != nil {
			t.Fatal(err)
		}
		req = to("https://example.com/")
		again := newBench(t, func(cfg *linkservice.Config) { cfg.Store, cfg.Once, cfg.Dedupe = store, once, !before })
		if got, err := again.Create(t.Context(), noon(), under("once", admin()), &req); err != nil || got.Link.ID != first.Link.ID || got.Found {
			t.Errorf("first with the default %v: %+v, then %+v", before, first, got)
		}
	}
}

func TestDedupeWithAnAlias(t *testing.T) {
	b := newBench(t)
	b.mustCreate(t, admin(), to("https://example.com/an-alias"))
	first := b.mustMake(t, admin(), deduped(aliased("an-alias")))
	if first.Found {
		t.Error("a link of another code was given for an alias")
	}
	if got := b.mustMake(t, admin(), deduped(aliased("an-alias"))); !got.Found || got.Link.ID != first.Link.ID {
		t.Errorf("the same alias: %+v", got)
	}
	elsewhere := to("https://example.com/elsewhere")
	elsewhere.Alias = shorten.Value("an-alias")
	elsewhere = deduped(elsewhere)
	_, err := b.Create(t.Context(), noon(), by(admin()), &elsewhere)
	wantError(t, "the alias leads elsewhere", err, shorten.ErrTaken)
	again := deduped(aliased("an-alias"))
	_, err = b.Create(t.Context(), noon(), by(member("acme", auth.LinksWrite)), &again)
	wantError(t, "the alias is another workspace's", err, shorten.ErrTaken)
	if err := b.Delete(t.Context(), noon(), by(admin()), first.Link.Key, shorten.Match{}); err != nil {
		t.Fatal(err)
	}
	_, err = b.Create(t.Context(), noon(), by(admin()), &again)
	wantError(t, "the alias is a tombstone", err, shorten.ErrTaken)
}

// A store that finds nothing refuses to dedupe rather than make a second link.
func TestDedupeNeedsAStoreThatCan(t *testing.T) {
	b := newBench(t, func(cfg *linkservice.Config) {
		cfg.Store = linktest.WithFaults(linktest.NewMemory(), func(linktest.Op, link.Key) (bool, error) { return true, nil })
	})
	req := deduped(to("https://example.com/"))
	_, err := b.Create(t.Context(), noon(), by(admin()), &req)
	wantError(t, "dedupe", err, link.ErrInvalid)
}
