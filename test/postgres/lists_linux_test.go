package postgres_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt.example/client"
	"curt/test/internal/curttest"
)

// TestServersHearOfLists: what a moderator changes at one server is so at the others soon, and one
// that was down or asleep meanwhile catches up. How soon is in the test's log.
func TestServersHearOfLists(t *testing.T) {
	t.Parallel()
	url := database(t)
	nodes := begin(t, 2, url)
	first, second := nodes[0], nodes[1]
	var slowest time.Duration
	refuses := func(n node, alias string) bool {
		_, err := n.api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/", CustomAlias: alias})
		var p *client.Problem
		return errors.As(err, &p) && strings.HasSuffix(p.Type, "/slug-refused")
	}
	creates := func(n node, to string) (status int) {
		_, err := n.api.Create(t.Context(), client.NewLink{LongURL: to})
		if p := new(client.Problem); errors.As(err, &p) {
			return p.Status
		} else if err != nil {
			t.Fatal(err)
		}
		return http.StatusCreated
	}
	change := func(n node, list, value string, remove bool) {
		t.Helper()
		do := n.api.Lists.Add
		if remove {
			do = n.api.Lists.Remove
		}
		if done, err := do(t.Context(), list, value, "a test"); err != nil || done.Changed != 1 {
			t.Fatalf("%s of %s: %+v, %v", value, list, done, err)
		}
	}
	hear := func(what string, ok func() bool) {
		t.Helper()
		slowest = max(slowest, soon(t, what, ok))
	}
	const phish = "https://paypal-login.example/" // its score is enough for quarantine
	change(first, client.RefusedWords, "~casino", false)
	hear("a word", func() bool { return refuses(second, "cas1no") })
	change(second, client.LookAlikes, "acmebank", false)
	hear("a name", func() bool { return refuses(first, "acmebnak") })
	if !refuses(first, "googel") || refuses(first, "google") || !refuses(second, "paypa1") {
		t.Error("the built-in names")
	}
	change(second, client.LookAlikes, "-google", false)
	hear("a built-in name is disabled", func() bool { return !refuses(first, "gooogle") })
	change(first, client.LookAlikes, "-google", true)
	hear("it is restored", func() bool { return refuses(second, "googel") })
	change(first, client.BlockedDestinations, "evil.example", false)
	hear("a blocked destination", func() bool { return creates(second, "https://a.evil.example/") != http.StatusCreated })
	safety := func(n node) string {
		l, err := n.api.Create(t.Context(), client.NewLink{LongURL: phish})
		if err != nil {
			t.Fatal(err)
		}
		return l.Safety
	}
	if got := safety(second); got != "quarantined" {
		t.Errorf("%s is %s", phish, got)
	}
	change(first, client.AllowedDestinations, "paypal-login.example", false)
	hear("an allowed destination", func() bool { return safety(second) == "clean" })

	stop(t, second, func() {
		change(first, client.RefusedWords, "~casino", true)
		change(first, client.RefusedWords, "bingo*", false)
	})
	soon(t, "a server that was asleep", func() bool { return refuses(second, "bingo-now") && !refuses(second, "cas1no") })
	second.Kill()
	text := ""
	for i := range 3000 { // twelve transactions
		text += fmt.Sprintf("word-%d\n", i)
	}
	if done, err := first.api.Lists.Import(t.Context(), client.RefusedWords, text, "a test"); err != nil || done.Changed != 3000 {
		t.Fatalf("%+v, %v", done, err)
	}
	again := node{Server: curttest.Start(t, curttest.Options{Data: second.Data, Env: []string{"CURT_LINKS=" + url}})}
	var err error
	if again.api, err = client.New("http://"+again.Addr, client.WithKey(curttest.Key)); err != nil {
		t.Fatal(err)
	}
	if !refuses(again, "word-2999") || !refuses(again, "acm3bank") || creates(again, "https://evil.example/") == http.StatusCreated {
		t.Error("a server that was killed does not have the lists when it is ready")
	}
	if page, err := again.api.Lists.Entries(t.Context(), client.RefusedWords, "", 500); err != nil || len(page.Entries) != 500 || page.Entries[0].Value != "bingo*" {
		t.Errorf("%d, %v", len(page.Entries), err)
	}
	t.Logf("the slowest took %s", slowest.Round(time.Millisecond))
}
