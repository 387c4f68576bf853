package postgres_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestServersHearOfEachOther: what is made, changed, deleted, decided and banned through
// one server is so at all others soon, although they had it in memory otherwise. How soon is
// in the test's log.
func TestServersHearOfEachOther(t *testing.T) {
	t.Parallel()
	nodes := begin(t, 3, database(t))
	first, others := nodes[0], nodes[1:]
	var slowest time.Duration
	everywhere := func(what string, ok func(n node) bool) {
		t.Helper()
		for i, n := range others {
			slowest = max(slowest, soon(t, fmt.Sprintf("%s, at server %d", what, i+2), func() bool { return ok(n) }))
		}
	}
	status := func(path string, want int) func(n node) bool {
		return func(n node) bool { got, _ := n.answers(t, path); return got == want }
	}
	for _, n := range others {
		if got, _ := n.answers(t, "/spring"); got != http.StatusNotFound {
			t.Fatalf("an alias that nobody has: %d", got)
		}
	}
	alias, err := first.api.Create(t.Context(), client.NewLink{LongURL: "https://spring.example/1", CustomAlias: "spring"})
	if err != nil {
		t.Fatal(err)
	}
	everywhere("an alias that was unknown is made", status("/spring", http.StatusFound))
	counted, err := first.api.Create(t.Context(), client.NewLink{LongURL: "https://evil.example/1"})
	if err != nil {
		t.Fatal(err)
	}
	everywhere("a link is made", status("/"+counted.ShortCode, http.StatusFound))

	if _, err := first.api.Update(t.Context(), alias.ShortCode, map[string]any{"long_url": "https://spring.example/2"}); err != nil {
		t.Fatal(err)
	}
	everywhere("a link leads elsewhere", func(n node) bool {
		_, to := n.answers(t, "/spring")
		return to == "https://spring.example/2"
	})
	if _, err := first.api.Moderation.Decide(t.Context(), alias.ShortCode, "blocked", "it phishes"); err != nil {
		t.Fatal(err)
	}
	everywhere("a link is blocked", status("/spring", http.StatusForbidden))
	if _, err := first.api.Moderation.Decide(t.Context(), alias.ShortCode, "clean", "it does not"); err != nil {
		t.Fatal(err)
	}
	everywhere("a link is clean again", status("/spring", http.StatusFound))
	if err := first.api.Delete(t.Context(), alias.ShortCode); err != nil {
		t.Fatal(err)
	}
	everywhere("a link is deleted", status("/spring", http.StatusGone))

	host := client.Entity{Kind: "host", Name: "evil.example"}
	ban, err := first.api.Moderation.Ban(t.Context(), client.NewBan{Entity: host, Reason: "it phishes"})
	if err != nil {
		t.Fatal(err)
	}
	everywhere("a host is banned: its links", status("/"+counted.ShortCode, http.StatusForbidden))
	made := func(n node) bool {
		_, err := n.api.Create(t.Context(), client.NewLink{LongURL: "https://evil.example/" + n.Addr})
		return err == nil
	}
	everywhere("a host is banned: new links", func(n node) bool { return !made(n) })
	// Whatever a server made before it knew is found.
	everywhere("a host is banned: all links", func(n node) bool {
		page, err := n.api.List(t.Context(), "", 100)
		return err == nil && !slices.ContainsFunc(page.Links, func(l client.Link) bool {
			return strings.HasPrefix(l.LongURL, "https://evil.example/") && l.Safety != "blocked"
		})
	})
	if err := first.api.Moderation.LiftBan(t.Context(), ban.Sequence, "cleaned up"); err != nil {
		t.Fatal(err)
	}
	everywhere("the ban is lifted: its links", status("/"+counted.ShortCode, http.StatusFound))
	everywhere("the ban is lifted: new links", made)

	key, err := first.api.Keys.Create(t.Context(), client.NewKey{Name: "k", Scopes: []string{"links:write", "links:read"}})
	if err != nil {
		t.Fatal(err)
	}
	asks := func(n node) bool {
		c, err := client.New("http://"+n.Addr, client.WithKey(key.Secret))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Self(t.Context())
		return err == nil
	}
	everywhere("a key is made", asks)
	if err := first.api.Keys.Revoke(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	everywhere("a key is revoked", func(n node) bool { return !asks(n) })
	t.Logf("the slowest took %s", slowest.Round(time.Millisecond))
}

// TestServersGiveNoCodeOutTwice: creates through all servers at once, one of them killed
// and started again meanwhile: every 201 is there, at every server, under a code of its own.
func TestServersGiveNoCodeOutTwice(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	for _, strategy := range []string{"range", "snowflake", "pool"} {
		t.Run(strategy, func(t *testing.T) {
			createThroughServers(t, database(t), throughServers{meanwhile: func() {}}, "CURT_CODES="+strategy)
		})
	}
}

// throughServers says how createThroughServers creates.
type throughServers struct {
	pause     time.Duration          // of each client between two creates
	ready     func(*curttest.Server) // waits until a server creates; nil = all do when they are ready
	meanwhile func()                 // while one of the servers is down
}

// createThroughServers creates links through three servers of a database, of which one is killed and started again after something
// else happened, and returns those that run then.
func createThroughServers(t *testing.T, url string, how throughServers, env ...string) (running []*curttest.Server) {
	t.Helper()
	create := func(s *curttest.Server, prefix string) *curttest.Creators {
		if how.ready != nil {
			how.ready(s)
		}
		return s.CreateEvery(t, 4, "https://example.com/"+prefix, how.pause)
	}
	nodes := begin(t, 3, url, env...)
	var crowds []*curttest.Creators
	for i, n := range nodes {
		crowds = append(crowds, create(n.Server, fmt.Sprint(i)))
	}
	for _, c := range crowds {
		c.AwaitMade(t, 200)
	}
	nodes[2].Kill()
	how.meanwhile()
	again := curttest.Start(t, curttest.Options{Data: nodes[2].Data, Env: append([]string{"CURT_LINKS=" + url}, env...)})
	crowds = append(crowds, create(again, "again"))
	crowds[3].AwaitMade(t, 200)
	codes := map[string]string{}
	var made []curttest.Link
	for _, c := range crowds {
		c.Stop()
		for status, body := range c.Others() {
			t.Errorf("a create was answered %d: %s", status, body)
		}
		for _, l := range c.Made() {
			if other, twice := codes[l.Code]; twice {
				t.Errorf("code %s was given to %s and to %s", l.Code, other, l.LongURL)
			}
			codes[l.Code] = l.LongURL
			made = append(made, l)
		}
	}
	running = []*curttest.Server{nodes[0].Server, nodes[1].Server, again}
	for _, s := range running {
		for _, wrong := range (node{Server: s}).Follow(t, made, 8) {
			t.Error("acknowledged, but", wrong)
		}
	}
	t.Logf("%d links over three servers", len(made))
	return running
}
