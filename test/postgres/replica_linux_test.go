package postgres_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

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
// that was killed is dead within two seconds for those who never had it in memory, too, and
// at once where a server starts, although the standby has it alive.
func TestReplicaLags(t *testing.T) {
	t.Parallel()
	primary, replica := lagging(t)
	nodes := begin(t, 2, primary, "CURT_LINKS_REPLICAS="+replica)
	links := nodes[0].MustCreate(t, 25)
	doomed, err := nodes[0].api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/doomed", CustomAlias: "doomed"})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(behind + time.Second) // the standby has them all
	for _, l := range links {
		if _, err := nodes[0].api.Update(t.Context(), l.Code, map[string]any{"status": "disabled"}); err != nil {
			t.Fatal(err)
		}
	}
	killed := time.Now()
	third := node{Server: curttest.Start(t, curttest.Options{Data: t.TempDir(), Env: []string{"CURT_LINKS=" + primary, "CURT_LINKS_REPLICAS=" + replica}})}
	started := time.Since(killed)
	alive := 0
	for i, l := range links { // each is asked for the first time a little later
		late := time.Since(killed)
		got, _ := nodes[1].answers(t, "/"+l.Code)
		switch {
		case got == http.StatusFound && late < heard+slack:
			alive++
		case got != http.StatusGone:
			t.Errorf("%s after a link was killed it is answered %d", late, got)
		}
		if got, _ := third.answers(t, "/"+l.Code); got != http.StatusGone {
			t.Errorf("%s after a link was killed a server that started answers %d", late, got)
		}
		time.Sleep(time.Until(killed.Add(time.Duration(i+1) * (behind + heard) / time.Duration(len(links)))))
	}
	for _, l := range links {
		if got, _ := nodes[1].answers(t, "/"+l.Code); got != http.StatusGone {
			t.Errorf("%s after a link was killed it is answered %d", time.Since(killed), got)
		}
	}
	t.Logf("%d of %d were alive in the first %s; the third server was there after %s", alive, len(links), heard, started.Round(time.Millisecond))

	// The control: who does not hear that a link was killed asks the standby, which has it
	// alive.
	stop(t, nodes[1], func() {
		if _, err := nodes[0].api.Update(t.Context(), doomed.ShortCode, map[string]any{"status": "disabled"}); err != nil {
			t.Fatal(err)
		}
		forget(t, primary)
	})
	if got, _ := nodes[1].answers(t, "/doomed"); got != http.StatusFound {
		t.Errorf("the control answers %d: the standby is not asked, or does not lag", got)
	}
}
