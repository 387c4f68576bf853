package postgres_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// behind is how late the standby of TestReplicaLags replays: less than a replica may be
// behind (5 s), so that it is asked, and more than servers take to hear of a change.
const behind = 3 * time.Second

// lagging starts a primary and a standby that replays late, and returns their URLs.
func lagging(t *testing.T) (primary, replica string) {
	t.Helper()
	server := testkit.StartPostgres(t, testkit.PostgresConfig{})
	standby := testkit.StartStandby(t, server)
	standby.Exec(t, fmt.Sprintf("ALTER SYSTEM SET recovery_min_apply_delay = '%dms'", behind.Milliseconds()))
	standby.Exec(t, "SELECT pg_reload_conf()")
	return server.URL("curt"), standby.URL("curt")
}

// TestReplicaLags: look-ups are asked of a standby that replays three seconds late. A link
// that was killed is dead for those who never had it in memory, too, as soon as the server
// has read the change log, and at once where a server starts, although the standby has it alive.
func TestReplicaLags(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	primary, replica := lagging(t)
	nodes := begin(t, 2, primary, "CURT_LINKS_REPLICAS="+replica)
	links := nodes[0].MustCreate(t, 25)
	aliases := []string{"marker"}
	for i := range 20 {
		aliases = append(aliases, fmt.Sprint("doomed-", i))
	}
	for _, alias := range aliases {
		if _, err := nodes[0].api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/" + alias, CustomAlias: alias}); err != nil {
			t.Fatal(err)
		}
	}
	awaitReplay(t, replica, aliases[len(aliases)-1])
	disable := func(code string) {
		t.Helper()
		if _, err := nodes[0].api.Update(t.Context(), code, map[string]any{"status": "disabled"}); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(n node, code string) bool { got, _ := n.answers(t, "/"+code); return got == http.StatusGone }
	if got, _ := nodes[1].answers(t, "/marker"); got != http.StatusFound {
		t.Fatalf("a link is answered %d", got)
	}
	for _, l := range links {
		disable(l.Code)
	}
	disable("marker") // the last in the log
	killed := time.Now()
	third := node{Server: curttest.Start(t, curttest.Options{Data: t.TempDir(), Env: []string{"CURT_LINKS=" + primary, "CURT_LINKS_REPLICAS=" + replica}})}
	started, alive := time.Since(killed), 0
	for i, l := range links { // each is asked for the first time a little later
		heard := gone(nodes[1], "marker")
		if got, _ := nodes[1].answers(t, "/"+l.Code); got == http.StatusFound && !heard {
			alive++
		} else if got != http.StatusGone {
			t.Errorf("%s after a link was killed, which the server has read of (%t), it is answered %d", time.Since(killed), heard, got)
		}
		if !gone(third, l.Code) {
			t.Errorf("%s after a link was killed a server that started answers otherwise", time.Since(killed))
		}
		time.Sleep(time.Until(killed.Add(time.Duration(i+1) * (behind + heardWithin) / time.Duration(len(links)))))
	}
	soon(t, "the server reads the log", func() bool { return gone(nodes[1], "marker") })
	for _, l := range links {
		if !gone(nodes[1], l.Code) {
			t.Errorf("%s after a link was killed it is alive", time.Since(killed))
		}
	}
	t.Logf("%d of %d were alive before the log was read; the third server was there after %s", alive, len(links), started.Round(time.Millisecond))
	replicaControl(t, nodes[1], primary, aliases[1:], disable)
}

// replicaControl: who does not hear that a link was killed asks the standby, which has it
// alive. On a busy machine it may have replayed by then, and another link is killed.
func replicaControl(t *testing.T, deaf node, primary string, doomed []string, disable func(code string)) {
	t.Helper()
	got := 0
	for _, code := range doomed {
		stop(t, deaf, func() {
			disable(code)
			forget(t, primary, code)
		})
		if got, _ = deaf.answers(t, "/"+code); got == http.StatusFound {
			return
		}
	}
	t.Errorf("the control answers %d: the standby is not asked, or does not lag", got)
}

// awaitReplay waits until a standby has a link.
func awaitReplay(t *testing.T, replica, code string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), replica)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	soon(t, "the standby has all links", func() bool {
		var n int
		err := c.QueryRow(t.Context(), "SELECT count(*) FROM links WHERE code = $1", code).Scan(&n)
		return err == nil && n > 0 // at first it does not have the table either
	})
}
