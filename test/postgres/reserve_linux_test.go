package postgres_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"curt.example/client"
	"curt/test/internal/curttest"
)

// member returns a client of a server with a key of its own in a workspace.
func member(t *testing.T, n node, workspace string) (*client.Client, client.KeySecret) {
	t.Helper()
	key, err := n.api.Keys.Create(t.Context(), client.NewKey{Name: workspace, Scopes: []string{"links:write"}, WorkspaceID: workspace})
	if err != nil {
		t.Fatal(err)
	}
	return as(t, n, key.Secret), key
}

// as returns a client of a server with a key.
func as(t *testing.T, n node, secret string) *client.Client {
	t.Helper()
	c, err := client.New("http://"+n.Addr, client.WithKey(secret))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestReservationsHoldAtEveryServer: what one server reserves the others respect, while it runs and after it was
// killed, and visitors notice nothing.
func TestReservationsHoldAtEveryServer(t *testing.T) {
	t.Parallel()
	nodes := begin(t, 2, database(t))
	mine, key := member(t, nodes[0], "acme")
	_, second := member(t, nodes[0], "acme")
	_, other := member(t, nodes[0], "rival")
	theirs, colleague := as(t, nodes[1], other.Secret), as(t, nodes[1], second.Secret)
	r, err := mine.Aliases.Reserve(t.Context(), "sale", "")
	if err != nil || r.ExpiresIn < 200 || r.ExpiresIn > 300 {
		t.Fatalf("%+v, %v", r, err)
	}
	_, err = theirs.Create(t.Context(), client.NewLink{LongURL: "https://example.com/", CustomAlias: "sale"})
	if p, ok := errors.AsType[*client.Problem](err); !ok || p.Type != "/problems/alias-held" || !p.Until.Equal(r.ReservedUntil) || p.RetryAfter <= 0 {
		t.Errorf("a create by another workspace at another server: %v", err)
	}
	for i, n := range nodes {
		if got, _ := n.answers(t, "/sale"); got != http.StatusNotFound {
			t.Errorf("server %d answers a visitor with %d", i, got)
		}
	}
	if a, err := theirs.CheckAlias(t.Context(), "sale", ""); err != nil || a.State != "reserved" || a.Available || len(a.Suggestions) != 3 {
		t.Errorf("checked: %+v, %v", a, err)
	}
	if page, err := nodes[1].api.List(t.Context(), "", 10); err != nil || len(page.Links) != 0 {
		t.Errorf("listed: %+v, %v", page, err)
	}
	if err := nodes[0].api.Keys.Revoke(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	nodes[0].Kill()
	if got, kind := curttest.Refusal(theirs.Aliases.Release(t.Context(), "sale", "")); got != http.StatusNotFound {
		t.Errorf("released by another workspace: %d %s", got, kind)
	}
	l, err := colleague.Create(t.Context(), client.NewLink{LongURL: "https://example.com/sale", CustomAlias: "sale"})
	if err != nil {
		t.Fatalf("a create by the workspace that holds the alias: %v", err)
	}
	if got, to := nodes[1].answers(t, "/sale"); got != http.StatusFound || to != l.LongURL {
		t.Errorf("a visitor is answered %d, %s", got, to)
	}
	_, err = theirs.Aliases.Reserve(t.Context(), "sale", "")
	if got, kind := curttest.Refusal(err); got != http.StatusConflict {
		t.Errorf("reserved although it is a link: %d %s", got, kind)
	}
}

// TestServersRaceForAnAlias: of callers who create and reserve one alias at two servers at once, one workspace gets it.
func TestServersRaceForAnAlias(t *testing.T) {
	t.Parallel()
	nodes := begin(t, 2, database(t))
	const callers = 8
	clients := make([]*client.Client, callers)
	for i := range clients {
		_, key := member(t, nodes[0], fmt.Sprintf("w%d", i))
		clients[i] = as(t, nodes[i%2], key.Secret)
	}
	curttest.RaceForAliases(t, clients)
}
