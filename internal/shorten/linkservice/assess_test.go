package linkservice_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"curt/internal/abuse/blocklist"
	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
	"curt/internal/shorten/linkservice"
)

// listing puts a blocklist of these lines in front of a Creator, and returns how to
// change it.
func listing(t *testing.T, lines string) (withList func(*linkservice.Config), change func(lines string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bad.txt")
	put := func(lines string) {
		if err := os.WriteFile(path, []byte(lines+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(lines)
	b, err := blocklist.Open(t.Context(), blocklist.Config{Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *linkservice.Config) { c.Blocklists = b }, func(lines string) {
		put(lines)
		if err := b.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func wantListed(t *testing.T, err error, field string) {
	t.Helper()
	listed, ok := errors.AsType[*shorten.ListedError](err)
	if !ok || !errors.Is(err, shorten.ErrListed) || listed.Field != field {
		t.Fatalf("got %v, want %s to be listed", err, field)
	}
	if want := (blocklist.Rule{List: "bad", Entry: "evil.example"}); listed.Rule != want {
		t.Errorf("forbidden by %v, want %v", listed.Rule, want)
	}
}

func TestNoLinkIsMadeToAListedHost(t *testing.T) {
	withList, _ := listing(t, "evil.example")
	b := newBench(t, withList)
	evil := to("https://www.EVIL.example:8443/login")
	fallback := to("https://good.example/")
	fallback.Fallback = shorten.Value("https://evil.example./")
	alias, dedupe := evil, evil
	alias.Alias, dedupe.Dedupe = shorten.Value("mine"), shorten.Value(true)
	for name, req := range map[string]shorten.Request{"plain": evil, "alias": alias, "dedupe": dedupe, "idempotent": evil, "fallback": fallback} {
		field := "long_url"
		if name == "fallback" {
			field = "fallback_url"
		}
		cause := by(admin())
		if name == "idempotent" {
			cause = under("k", admin())
		}
		_, err := b.created(t.Context(), noon(), cause, &req)
		wantListed(t, err, field)
	}
	rows := []create.Row{{Request: to("https://good.example/1")}, {Request: evil}, {Request: to("https://good.example/2")}}
	if _, err := b.CreateMany(t.Context(), noon(), by(admin()), rows); err != nil {
		t.Fatal(err)
	}
	wantListed(t, rows[1].Err, "long_url")
	if rows[0].Err != nil || rows[2].Err != nil || b.stored(t) != 2 {
		t.Errorf("the other rows: %v, %v; %d stored", rows[0].Err, rows[2].Err, b.stored(t))
	}
	if n := b.counter(t, "curt_links_listed_total"); n != 6 {
		t.Errorf("counted %v refusals", n)
	}
}

// Who is refused has paid: the lists cannot be read by trying hosts.
func TestAListedHostCostsACreate(t *testing.T) {
	withList, _ := listing(t, "evil.example")
	b := newBench(t, withList, func(c *linkservice.Config) { c.Limits = ratelimit.NewMemory() })
	stranger := auth.Anonymous(netip.MustParseAddr("192.0.2.1"), auth.LinksWrite)
	for range 10 {
		req := to("https://evil.example/")
		_, err := b.created(t.Context(), noon(), by(stranger), &req)
		wantListed(t, err, "long_url")
	}
	req := to("https://evil.example/")
	if _, err := b.created(t.Context(), noon(), by(stranger), &req); !errors.As(err, new(*shorten.LimitedError)) {
		t.Errorf("the eleventh: %v", err)
	}
}

func TestALinkThatWasListedLater(t *testing.T) {
	withList, change := listing(t, "# none")
	b := newBench(t, withList)
	l := b.mustCreate(t, admin(), to("https://evil.example/"))
	change("evil.example")
	update := func(c shorten.Change) error {
		_, err := b.Update(t.Context(), noon(), by(admin()), l.Key, shorten.Match{}, &c)
		return err
	}
	if err := update(shorten.Change{Fields: shorten.Fields{Title: shorten.Value("x"), LongURL: shorten.Value("https://evil.example/")}}); err != nil {
		t.Errorf("a change that leads nowhere else: %v", err)
	}
	wantListed(t, update(shorten.Change{Fields: shorten.Fields{LongURL: shorten.Value("https://evil.example/other")}}), "long_url")
	wantListed(t, update(shorten.Change{Fields: shorten.Fields{Fallback: shorten.Value("https://evil.example/")}}), "fallback_url")
	if err := update(shorten.Change{Status: shorten.Value(link.Disabled)}); err != nil {
		t.Fatalf("switched off: %v", err)
	}
	wantListed(t, update(shorten.Change{Status: shorten.Value(link.Active)}), "long_url")
	if err := update(shorten.Change{Status: shorten.Value(link.Active), Fields: shorten.Fields{LongURL: shorten.Value("https://good.example/")}}); err != nil {
		t.Errorf("switched on and led elsewhere: %v", err)
	}
}
