package postgres_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestRoles: one server follows links, one has the API, one works behind them. Each opens
// what its role needs and nothing else, and together they do what one does alone.
func TestRoles(t *testing.T) {
	t.Parallel()
	url := database(t)
	redirect := begin(t, 1, url, "CURT_ROLE=redirect", "CURT_ANALYTICS="+url, "CURT_FOLD_INTERVAL=200ms")[0]
	api := begin(t, 1, url, "CURT_ROLE=api", "CURT_ANALYTICS="+url)[0]
	worker := begin(t, 1, url, "CURT_ROLE=worker")[0]
	l, err := api.api.Create(t.Context(), client.NewLink{LongURL: "https://evil.example/", CustomAlias: "evil"})
	if err != nil {
		t.Fatal(err)
	}
	soon(t, "a new link leads on", func() bool { got, _ := redirect.answers(t, "/evil"); return got == http.StatusFound })
	if got, to := redirect.answers(t, "/evil"); to != l.LongURL {
		t.Errorf("%d to %s", got, to)
	}
	end := time.Now().Add(3 * time.Minute)
	for {
		s, err := api.api.Stats(t.Context(), "evil", client.StatsQuery{})
		if err == nil && s.TotalClicks > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the click was not counted: %+v, %v", s, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, path := range []string{"/api/v1/links", "/api/openapi.json", "/app/", "/report"} {
		if got, _ := redirect.answers(t, path); got != http.StatusNotFound {
			t.Errorf("the server of links answers %s with %d", path, got)
		}
	}
	for who, n := range map[string]node{"links": redirect, "the API": api} {
		if got, _ := n.answers(t, "/evil+"); got != http.StatusOK {
			t.Errorf("the server of %s answers a preview with %d", who, got)
		}
	}
	if got, _ := api.answers(t, "/evil"); got != http.StatusNotFound {
		t.Errorf("the server of the API answers a link with %d", got)
	}
	for _, path := range []string{"/api/openapi.json", "/report"} {
		if got, _ := api.answers(t, path); got != http.StatusOK {
			t.Errorf("the server of the API answers %s with %d", path, got)
		}
	}
	if _, err := api.api.Moderation.Ban(t.Context(), client.NewBan{Entity: client.Entity{Kind: "host", Name: "evil.example"}, Reason: "it phishes"}); err != nil {
		t.Fatal(err)
	}
	soon(t, "a ban", func() bool { got, _ := redirect.answers(t, "/evil"); return got == http.StatusForbidden })

	needs := func(n node) map[string]bool {
		said := readiness(t, n)
		if said.Status != "ok" || len(said.Role) != 1 {
			t.Fatalf("/readyz: %+v", said)
		}
		required := map[string]bool{}
		for name, check := range said.Checks {
			required[name] = check.Required
		}
		return required
	}
	for _, tt := range []struct {
		node  node
		needs map[string]bool
		lacks []string
	}{
		{redirect, map[string]bool{"links": false, "tables": true, "changes": true, "analytics": false}, []string{"admin.key", "search.db", "clicks.db", "curt.db"}},
		{api, map[string]bool{"links": true, "tables": true, "changes": true, "analytics": false}, []string{"curt.db"}},
		{worker, map[string]bool{"links": true, "tables": true}, []string{"admin.key", "search.db", "clicks.db", "clicks", "curt.db"}},
	} {
		if d := cmp.Diff(tt.needs, needs(tt.node)); d != "" {
			t.Errorf("/readyz: %s", d)
		}
		for _, name := range tt.lacks {
			if _, err := os.Stat(filepath.Join(tt.node.Data, name)); err == nil {
				t.Errorf("there is a %s that nobody needs", name)
			}
		}
	}
}

// ready is what /readyz says.
type ready struct {
	Status string
	Role   []string
	Checks map[string]struct {
		Status   string
		Required bool
		Detail   string
	}
}

func readiness(t *testing.T, n node) (said ready) {
	t.Helper()
	c, err := curttest.Dial(t.Context(), n.Admin)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, err := c.Do("GET", "/readyz", nil, "")
	if err != nil || json.Unmarshal(a.Body, &said) != nil {
		t.Fatalf("/readyz: %d %s, %v", a.Status, a.Body, err)
	}
	return said
}

// TestRedirectsNeedLinksAlone: a server that follows links starts and serves where the
// database has nothing but links, and that of statistics is not there.
func TestRedirectsNeedLinksAlone(t *testing.T) {
	t.Parallel()
	url := database(t)
	all := begin(t, 1, url)[0]
	links := all.MustCreate(t, 3)
	all.Terminate(t)
	keep := []string{"links", "changes", "change_head", "leases", "day_keys", "settings"}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	rows, err := db.Query(t.Context(), "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	dropped := 0
	for _, name := range tables {
		if slices.Contains(keep, name) || strings.HasPrefix(name, "goose") {
			continue
		}
		if _, err := db.Exec(t.Context(), "DROP TABLE "+pgx.Identifier{name}.Sanitize()+" CASCADE"); err != nil {
			t.Fatal(err)
		}
		dropped++
	}
	if dropped < 5 {
		t.Fatalf("only %d tables were dropped: that proves little", dropped)
	}
	redirect := begin(t, 1, url, "CURT_ROLE=redirect", "CURT_ANALYTICS=postgres://curt@127.0.0.1:1/away")[0]
	for _, wrong := range redirect.Follow(t, links, 2) {
		t.Error(wrong)
	}
	soon(t, "a word about the statistics", func() bool {
		said := readiness(t, redirect)
		return said.Status == "ok" && said.Checks["analytics"].Status == "unavailable" && !said.Checks["analytics"].Required
	})
	if code, _ := redirect.Terminate(t); code != 0 {
		t.Errorf("ended with code %d:\n%s", code, redirect.Log())
	}
}

// TestRedirectsNeedNoAccounts: a server that follows links runs, starts and starts again while the
// database of accounts is away, and follows links that it does not have in memory.
func TestRedirectsNeedNoAccounts(t *testing.T) {
	t.Parallel()
	url, server := database(t), testkit.StartPostgres(t, testkit.PostgresConfig{})
	accounts := "CURT_ACCOUNTS=" + server.Database(t)
	all := begin(t, 1, url, accounts)[0]
	links := all.MustCreate(t, 6)
	all.Terminate(t)
	follow := func(n node, links []curttest.Link) {
		t.Helper()
		for _, wrong := range n.Follow(t, links, 2) {
			t.Error(wrong)
		}
	}
	away := "CURT_ANALYTICS=postgres://curt@127.0.0.1:1/away"
	redirect := begin(t, 1, url, "CURT_ROLE=redirect", away, accounts)[0]
	follow(redirect, links[:3])
	server.Kill(t)
	follow(redirect, links)
	if code, _ := redirect.Terminate(t); code != 0 {
		t.Errorf("ended with code %d:\n%s", code, redirect.Log())
	}
	follow(begin(t, 1, url, "CURT_ROLE=redirect", away, accounts, "CURT_DATA="+redirect.Data)[0], links)
	follow(begin(t, 1, url, "CURT_ROLE=redirect", away, "CURT_ACCOUNTS=postgres://curt@127.0.0.1:1/away")[0], links)
}
