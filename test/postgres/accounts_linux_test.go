package postgres_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"curt.example/client"
	"curt/test/internal/curttest"
)

// TestAccountsApartFromLinks: keys, shares, idempotency keys and decisions are in one database,
// links in a folder or in another, and a restart changes nothing.
func TestAccountsApartFromLinks(t *testing.T) {
	t.Parallel()
	for name, links := range map[string]func(*testing.T) string{
		"links in the folder":       func(*testing.T) string { return "sqlite" },
		"links in another database": database,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, accounts := links(t), "CURT_ACCOUNTS="+database(t)
			n := begin(t, 1, url, accounts)[0]
			a := account(t, n)
			a.check(t, n)
			if code, out, errs := n.command(t, url, "doctor"); code > 1 || strings.Contains(out, "failure") {
				t.Errorf("doctor: %d %s %s", code, out, errs)
			}
			if url == "sqlite" {
				to := filepath.Join(t.TempDir(), "backup")
				if code, out, errs := n.command(t, url, "backup", to); code != 0 || !strings.Contains(out, "CURT_ACCOUNTS") {
					t.Errorf("backup: %d %s %s", code, out, errs)
				}
			}
			if code, _ := n.Terminate(t); code != 0 {
				t.Fatalf("ended with %d", code)
			}
			n.refused(t, "in a separate database", "CURT_LINKS="+url)
			again := begin(t, 1, url, accounts, "CURT_DATA="+n.Data)[0]
			a.check(t, again)
			if err := again.api.Keys.Revoke(t.Context(), a.key.ID); err != nil {
				t.Fatal(err)
			}
			if a.asks(t, again) || a.shown(t, again) != http.StatusForbidden {
				t.Errorf("a key that was revoked: asks %v, what it shared answers %d", a.asks(t, again), a.shown(t, again))
			}
		})
	}
}

// TestAccountsThatDoNotBelong: what would lose accounts, or mix those of two, does not start.
func TestAccountsThatDoNotBelong(t *testing.T) {
	t.Parallel()
	url, accounts := database(t), database(t)
	beside := begin(t, 1, url)[0]
	if _, err := beside.api.Keys.Create(t.Context(), client.NewKey{Name: "k", Scopes: []string{"links:read"}}); err != nil {
		t.Fatal(err)
	}
	apart := begin(t, 1, "sqlite", "CURT_ACCOUNTS="+accounts)[0]
	for _, n := range []node{beside, apart} {
		if code, _ := n.Terminate(t); code != 0 {
			t.Fatalf("ended with %d", code)
		}
	}
	beside.refused(t, "already exist in the link database", "CURT_LINKS="+url, "CURT_ACCOUNTS="+database(t))
	beside.refused(t, "same database as CURT_LINKS", "CURT_LINKS="+url, "CURT_ACCOUNTS="+url)
	other := node{Server: &curttest.Server{Data: t.TempDir(), Addr: apart.Addr, Admin: apart.Admin}}
	other.refused(t, "accounts of other links", "CURT_LINKS=sqlite", "CURT_ACCOUNTS="+accounts)
	other.Data = t.TempDir()
	other.refused(t, "the accounts of other links", "CURT_LINKS=sqlite", "CURT_ACCOUNTS="+url)
	other.Data = t.TempDir()
	other.refused(t, "accounts of other links", "CURT_LINKS="+accounts)
	other.refused(t, "expected postgres://", "CURT_LINKS="+url, "CURT_ACCOUNTS=sqlite")
}

// refused starts a server that must say why not, in one line.
func (n node) refused(t *testing.T, why string, env ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), curttest.Binary(t), "serve")
	c.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CURT_") })
	c.Env = append(append(c.Env, "CURT_DATA="+n.Data, "CURT_ADMIN_KEY="+curttest.Key, "CURT_LISTEN=127.0.0.1:0", "CURT_ADMIN_LISTEN="), env...)
	var errs strings.Builder
	c.Stderr = &errs
	if err := c.Run(); err == nil || c.ProcessState == nil {
		t.Fatalf("%v: started: %v", env, err)
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(errs.String()), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "{") // the log
	})
	if said := strings.Join(lines, "\n"); c.ProcessState.ExitCode() != 78 || strings.Contains(said, "\n") || !strings.Contains(said, why) {
		t.Errorf("%v: exit code %d, %q; want %q", env, c.ProcessState.ExitCode(), said, why)
	}
}

// accountSet is what account has made.
type accountSet struct {
	key          client.KeySecret
	once, banned client.Link
	page         string // of what is shared
}

// account has a server write to each table of accounts.
func account(t *testing.T, n node) (a accountSet) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	a.key, err = n.api.Keys.Create(t.Context(), client.NewKey{Name: "k", Scopes: []string{"links:write", "links:read", "stats:read"}})
	must(err)
	own, err := client.New("http://"+n.Addr, client.WithKey(a.key.Secret))
	must(err)
	a.once, err = own.CreateOnce(t.Context(), "once", client.NewLink{LongURL: "https://example.com/once"})
	must(err)
	a.banned, err = own.Create(t.Context(), client.NewLink{LongURL: "https://evil.example/1"})
	must(err)
	_, err = n.api.Moderation.Ban(t.Context(), client.NewBan{Entity: client.Entity{Kind: "host", Name: "evil.example"}, Reason: "it phishes"})
	must(err)
	c := n.MustDial(t)
	defer c.Close()
	shared, err := c.Do("POST", "/api/v1/links/"+a.once.ShortCode+"/share", []string{"Authorization: Bearer " + a.key.Secret, "Content-Type: application/json"}, "{}")
	must(err)
	_, rest, ok := strings.Cut(string(shared.Body), `"url":"`)
	page, _, _ := strings.Cut(rest, `"`)
	if i := strings.Index(page, "/"+a.once.ShortCode); ok && i >= 0 {
		a.page = page[i:]
	}
	if shared.Status != http.StatusCreated || a.page == "" {
		t.Fatalf("share: %d %s", shared.Status, shared.Body)
	}
	return a
}

// check looks whether all of it is so.
func (a accountSet) check(t *testing.T, n node) {
	t.Helper()
	own, err := client.New("http://"+n.Addr, client.WithKey(a.key.Secret))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := own.CreateOnce(t.Context(), "once", client.NewLink{LongURL: "https://example.com/once"}); err != nil || again.ShortCode != a.once.ShortCode {
		t.Errorf("a request that came twice: %s %v, want %s", again.ShortCode, err, a.once.ShortCode)
	}
	soon(t, "the link of a banned host", func() bool {
		got, _ := n.answers(t, "/"+a.banned.ShortCode)
		return got == http.StatusForbidden
	})
	if _, err := own.Create(t.Context(), client.NewLink{LongURL: "https://evil.example/2"}); err == nil {
		t.Errorf("a link of a banned host: %v", err)
	}
	if got := a.shown(t, n); got != http.StatusOK {
		t.Errorf("what is shared: %d", got)
	}
}

// asks reports whether the key is one.
func (a accountSet) asks(t *testing.T, n node) bool {
	t.Helper()
	own, err := client.New("http://"+n.Addr, client.WithKey(a.key.Secret))
	if err != nil {
		t.Fatal(err)
	}
	_, err = own.Self(t.Context())
	return err == nil
}

// shown is what the page that was shared is answered with.
func (a accountSet) shown(t *testing.T, n node) int {
	t.Helper()
	got, _ := n.answers(t, a.page)
	return got
}
