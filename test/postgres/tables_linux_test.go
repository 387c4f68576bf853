package postgres_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
)

// TestReadinessSeesTheTables: a server that could not do what its role is for, in a database
// that answers, wants no traffic and says why, to its operator alone. Links in memory are
// followed all the same, and no link is said not to be there that is.
func TestReadinessSeesTheTables(t *testing.T) {
	t.Parallel()
	server := testkit.StartPostgres(t, testkit.PostgresConfig{})
	name := server.Copy(t, "template1")
	server.Exec(t, "CREATE ROLE humble LOGIN")
	server.Exec(t, fmt.Sprintf("ALTER DATABASE %s OWNER TO humble", name))
	url := strings.Replace(server.URL(name), "//curt@", "//humble@", 1)
	api := begin(t, 1, url, "CURT_ROLE=api", "CURT_ANALYTICS="+url)[0]
	redirect := begin(t, 1, url, "CURT_ROLE=redirect", "CURT_ANALYTICS="+url)[0]
	for _, alias := range []string{"known", "other"} {
		if _, err := api.api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/" + alias, CustomAlias: alias}); err != nil {
			t.Fatal(err)
		}
	}
	says := func(n node, after, want string) {
		t.Helper()
		eventually(t, after, func() bool {
			said, status := readiness(t, n), http.StatusServiceUnavailable
			if want == "" {
				status = http.StatusOK
			}
			got, _ := n.answers(t, "/readyz")
			return got == status && said.Checks["tables"].Detail == want && said.Checks["tables"].Required
		})
	}
	stillServes := func(after string) {
		t.Helper()
		if got, _ := redirect.answers(t, "/known"); got != http.StatusFound {
			t.Errorf("%s: a link in memory is answered %d", after, got)
		}
		if got, _ := redirect.answers(t, "/other"); got != http.StatusServiceUnavailable {
			t.Errorf("%s: a link that is not in memory is answered %d", after, got)
		}
	}

	server.ExecIn(t, name, "REVOKE INSERT ON links FROM humble")
	says(api, "without INSERT", "missing: INSERT on links")
	says(redirect, "without INSERT", "")
	// By now the server follows the change log, before which it forgets all that it has in memory.
	eventually(t, "a new link leads on", func() bool { got, _ := redirect.answers(t, "/known"); return got == http.StatusFound })
	server.ExecIn(t, name, "REVOKE SELECT ON links FROM humble")
	says(redirect, "without SELECT", "missing: SELECT on links")
	says(api, "without SELECT", "missing: SELECT on links, INSERT on links")
	stillServes("without SELECT")
	server.ExecIn(t, name, "GRANT SELECT, INSERT ON links TO humble")
	says(redirect, "with all", "")
	says(api, "with all", "")
	server.ExecIn(t, name, "ALTER TABLE links RENAME TO elsewhere")
	says(redirect, "without the table", "missing: the table links")
	stillServes("without the table")
	if told := publicReadiness(t, redirect); strings.Contains(told, "missing") || !strings.Contains(told, `"tables":{"status":"unavailable","required":true}`) {
		t.Errorf("strangers are told %s", told)
	}

	// An empty database under the same name, before and after another server has begun there.
	server.Exec(t, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name))
	server.Exec(t, fmt.Sprintf("CREATE DATABASE %s OWNER humble", name))
	says(redirect, "in an empty database", "missing: the table links, the table changes, the table change_head")
	stillServes("in an empty database")
	begin(t, 1, url)
	says(redirect, "in another installation's database", "not the database of the start: its code key differs")
	stillServes("in another installation's database")
	if !strings.Contains(redirect.Log(), "link database lacks tables or rights") {
		t.Error("the log says nothing of it")
	}
}

// publicReadiness is what /readyz says at the listener of links.
func publicReadiness(t *testing.T, n node) string {
	t.Helper()
	c := n.MustDial(t)
	defer c.Close()
	a, err := c.Do("GET", "/readyz", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	return string(a.Body)
}

// eventually polls until ok; a server looks once a second.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
