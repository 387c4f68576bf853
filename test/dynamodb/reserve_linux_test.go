package dynamodb_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// reserving is two servers over one table.
type reserving struct {
	links   string
	servers []*curttest.Server
	admin   *client.Client
}

func startReserving(t *testing.T) *reserving {
	t.Helper()
	r := &reserving{links: testkit.StartDynamoDB(t, false).URL("curt")}
	accounts := testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t)
	env := []string{
		"CURT_LINKS=" + r.links, "CURT_ACCOUNTS=" + accounts, "CURT_ANALYTICS=" + accounts, "CURT_LIMITS=default=off",
		"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_EC2_METADATA_DISABLED=true",
	}
	curttest.Migrate(t, env)
	for range 2 {
		r.servers = append(r.servers, curttest.Start(t, curttest.Options{Env: env}))
	}
	r.admin = r.as(t, 0, curttest.Key)
	return r
}

// as returns a client of a server with a key.
func (r *reserving) as(t *testing.T, server int, secret string) *client.Client {
	t.Helper()
	c, err := client.New("http://"+r.servers[server].Addr, client.WithKey(secret))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// member returns a client of a server with a new key of a workspace.
func (r *reserving) member(t *testing.T, server int, workspace string) *client.Client {
	t.Helper()
	key, err := r.admin.Keys.Create(t.Context(), client.NewKey{Name: workspace, Scopes: []string{"links:read", "links:write"}, WorkspaceID: workspace})
	if err != nil {
		t.Fatal(err)
	}
	return r.as(t, server, key.Secret)
}

// refused fails unless an answer is a 409 that says until when an alias is reserved.
func refused(t *testing.T, what string, err error, until time.Time) {
	t.Helper()
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || p.Status != http.StatusConflict || p.Type != "/problems/alias-held" || !p.Until.Equal(until) || p.RetryAfter <= 0 || p.RetryAfter > 5*time.Minute {
		t.Errorf("%s: %v", what, err)
	}
}

// checked fails unless a check of an alias says a state.
func checked(t *testing.T, c *client.Client, alias, state string, available bool) {
	t.Helper()
	if a, err := c.CheckAlias(t.Context(), alias, ""); err != nil || a.State != state || a.Available != available || (a.ReservedUntil != nil) != (state == "reserved") {
		t.Errorf("%s should be %s: %+v, %v", alias, state, a, err)
	}
}

// notALink fails if a reserved alias is one to anybody: a visitor, the workspace that holds it, or who exports all
// links, of which there are some.
func (r *reserving) notALink(t *testing.T, alias string, links int) {
	t.Helper()
	for i, s := range r.servers {
		if status, _, _ := get(t, s, "/"+alias); status != http.StatusNotFound {
			t.Errorf("server %d answers a visitor of %s with %d", i, alias, status)
		}
		c := r.as(t, i, curttest.Key)
		if _, err := c.Get(t.Context(), alias); err == nil {
			t.Errorf("server %d has a link %s", i, alias)
		} else if got, kind := curttest.Refusal(err); got != http.StatusNotFound {
			t.Errorf("server %d is asked for a link %s: %d %s", i, alias, got, kind)
		}
	}
	file := filepath.Join(t.TempDir(), "links.jsonl")
	if said, code := curt(t, []string{"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local"}, "export", "--from="+r.links, "-o", file); code != 0 {
		t.Fatalf("export: code %d, %s", code, said)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n != links || strings.Contains(string(text), `"`+alias+`"`) {
		t.Errorf("%d links are exported, want %d without %s:\n%s", n, links, alias, text)
	}
}

// notListed fails if the list of a workspace has an alias.
func notListed(t *testing.T, c *client.Client, alias string) {
	t.Helper()
	page, err := c.List(t.Context(), "", 10)
	if err != nil || slices.ContainsFunc(page.Links, func(l client.Link) bool { return l.ShortCode == alias }) {
		t.Errorf("%s is listed: %+v, %v", alias, page, err)
	}
}

// TestReservationsOverDynamoDB: what one server reserves the other one respects, also once the first was killed. Others
// get 409 with when it lapses, its holder creates the link or gives it back, and it lapses. Nobody takes it for a link.
func TestReservationsOverDynamoDB(t *testing.T) {
	testkit.Faults(t)
	r := startReserving(t)
	mine, colleague, theirs := r.member(t, 0, "acme"), r.member(t, 1, "acme"), r.member(t, 1, "rival")
	reserve := func(c *client.Client, alias string) client.Reservation {
		t.Helper()
		held, err := c.Aliases.Reserve(t.Context(), alias, "")
		if err != nil || held.Alias != alias || held.ExpiresIn <= 0 || held.ExpiresIn > 300 {
			t.Fatalf("reserve %s: %+v, %v", alias, held, err)
		}
		return held
	}
	create := func(c *client.Client, alias string) error {
		_, err := c.Create(t.Context(), client.NewLink{LongURL: "https://example.com/" + alias, CustomAlias: alias})
		return err
	}
	checked(t, theirs, "sale", "free", true)
	before := time.Now()
	sale := reserve(mine, "sale")
	if least, most := before.Add(5*time.Minute-time.Second), time.Now().Add(5*time.Minute+time.Second); sale.ReservedUntil.Before(least) || sale.ReservedUntil.After(most) {
		t.Errorf("reserved until %s, want %s to %s", sale.ReservedUntil, least, most)
	}
	r.notALink(t, "sale", 0)
	notListed(t, colleague, "sale")
	if again := reserve(colleague, "sale"); !again.ReservedUntil.Equal(sale.ReservedUntil) {
		t.Errorf("the workspace reserves again: %+v, at first %+v", again, sale)
	}
	checked(t, theirs, "sale", "reserved", false)
	checked(t, colleague, "sale", "reserved", true)
	_, err := theirs.Aliases.Reserve(t.Context(), "sale", "")
	refused(t, "reserved by another workspace", err, sale.ReservedUntil)
	refused(t, "created by another workspace", create(theirs, "sale"), sale.ReservedUntil)
	many, err := theirs.CreateMany(t.Context(), []client.NewLink{{LongURL: "https://example.com/", CustomAlias: "sale"}})
	if err != nil || many[0].Link != nil || many[0].Problem.Type != "/problems/alias-held" {
		t.Errorf("created among many: %+v, %v", many, err)
	}

	// It is given back.
	if got, kind := curttest.Refusal(theirs.Aliases.Release(t.Context(), "sale", "")); got != http.StatusNotFound || kind != "/problems/no-such-reservation" {
		t.Errorf("released by another workspace: %d %s", got, kind)
	}
	if err := colleague.Aliases.Release(t.Context(), "sale", ""); err != nil {
		t.Errorf("released: %v", err)
	}
	if got, kind := curttest.Refusal(mine.Aliases.Release(t.Context(), "sale", "")); got != http.StatusNotFound {
		t.Errorf("released twice: %d %s", got, kind)
	}
	spring := reserve(theirs, "spring")
	if err := r.admin.Aliases.Release(t.Context(), "spring", ""); err != nil {
		t.Errorf("released by an admin: %v", err)
	}
	if err := create(mine, "spring"); err != nil {
		t.Errorf("a create of what %s reserved and an admin released: %v", spring.Alias, err)
	}

	// Its holder creates the link.
	sale = reserve(theirs, "sale")
	refused(t, "created by who held it before", create(mine, "sale"), sale.ReservedUntil)
	if err := create(theirs, "sale"); err != nil {
		t.Errorf("a create by its holder: %v", err)
	}
	checked(t, theirs, "sale", "taken", false)
	if got, kind := curttest.Refusal(theirs.Aliases.Release(t.Context(), "sale", "")); got != http.StatusNotFound {
		t.Errorf("released once it is a link: %d %s", got, kind)
	}
	for i, s := range r.servers {
		soon(t, fmt.Sprintf("the link at server %d", i), func() bool {
			status, to, _ := get(t, s, "/sale")
			return status == http.StatusFound && to == "https://example.com/sale"
		})
	}
	if _, err := mine.Aliases.Reserve(t.Context(), "sale", ""); err == nil {
		t.Error("reserved although it is a link")
	} else if got, kind := curttest.Refusal(err); got != http.StatusConflict || kind != "/problems/slug-taken" && kind != "/problems/alias-held" { // a server may remember its reservation
		t.Errorf("reserved although it is a link: %d %s", got, kind)
	}

	// It lapses, whatever became of the server that made it.
	autumn := reserve(mine, "autumn")
	r.servers[0].Kill()
	refused(t, "a create at the other server", create(theirs, "autumn"), autumn.ReservedUntil)
	r.servers = r.servers[1:]
	r.admin = r.as(t, 0, curttest.Key)
	r.notALink(t, "autumn", 2)
	notListed(t, colleague, "autumn")
	r.servers[0].SetClock(t, 5*time.Minute+time.Second)
	checked(t, theirs, "autumn", "free", true)
	// What a server remembers goes by the time that has passed, not by its clock, and lasts a minute.
	err = create(theirs, "autumn")
	for end := time.Now().Add(3 * time.Minute); err != nil && time.Now().Before(end); err = create(theirs, "autumn") {
		time.Sleep(time.Second)
	}
	if err != nil {
		t.Errorf("a create once it has lapsed: %v", err)
	}
}

// TestServersRaceForAnAliasInDynamoDB: of callers who create and reserve one alias at two servers at once, one workspace
// gets it.
func TestServersRaceForAnAliasInDynamoDB(t *testing.T) {
	testkit.Faults(t)
	r := startReserving(t)
	const callers = 8
	clients := make([]*client.Client, callers)
	for i := range clients {
		clients[i] = r.member(t, i%2, fmt.Sprintf("w%d", i))
	}
	curttest.RaceForAliases(t, clients)
}
