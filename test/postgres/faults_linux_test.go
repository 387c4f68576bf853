package postgres_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// lasts returns how long a fault does.
func lasts(short, long time.Duration) time.Duration {
	if curttest.Long() {
		return long
	}
	return short
}

// TestPrimaryDies: the primary is killed under load and the synchronous standby promoted:
// links in memory lead on all the time, others are 503 and never 404, creates are 503 and
// come back after the promotion, and every 201 is there.
func TestPrimaryDies(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	primary := testkit.StartPostgres(t, testkit.PostgresConfig{Fsync: true})
	standby := testkit.StartStandby(t, primary)
	l := newLoad(t, begin(t, 3, primary.URLs("curt", standby)))
	healthy := l.phase(time.Second)
	primary.Kill(t)
	l.visitCold()
	during := l.fault(lasts(time.Second, 30*time.Second))
	standby.Promote(t)
	back := l.awaitMakes()
	unhurt(t, healthy, during)
	asQuick(t, healthy, during)
	for _, wrong := range l.end() {
		t.Error("acknowledged, but", wrong)
	}
	t.Logf("creates are back %s after the promotion", back.Round(time.Millisecond))
}

// TestAStandbyThatIsNotSynchronousLoses is the control of TestPrimaryDies: a standby that
// nobody waits for is behind when the primary dies. Where it is synchronous the same
// order of events loses nothing, because nothing is acknowledged without it.
func TestAStandbyThatIsNotSynchronousLoses(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	for name, synchronous := range map[string]bool{"synchronous": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := testkit.StartPostgres(t, testkit.PostgresConfig{Fsync: true})
			standby := testkit.StartStandby(t, primary)
			if !synchronous {
				primary.Exec(t, "ALTER SYSTEM SET synchronous_standby_names = ''")
				primary.Exec(t, "SELECT pg_reload_conf()")
			}
			n := begin(t, 1, primary.URLs("curt", standby))[0]
			before := n.MustCreate(t, 5)
			c := n.Create(t, 4, "https://example.com/"+name)
			c.AwaitMade(t, 40)
			// The standby is cut off, as a network would. Stopped it would still find what the
			// primary has sent it.
			standby.Exec(t, "ALTER SYSTEM SET primary_conninfo = ''")
			standby.Exec(t, "SELECT pg_reload_conf()")
			standby.Exec(t, untilItHearsNothing)
			if !synchronous {
				c.AwaitMore(t, 10)
			}
			many := n.makeMany(t, 20)
			primary.Kill(t)
			standby.Promote(t)
			c.Stop()
			if synchronous && many > 0 {
				t.Errorf("%d links of a batch were acknowledged that no standby has", many)
			}
			again := node{Server: curttest.Start(t, curttest.Options{Data: t.TempDir(), Env: []string{"CURT_LINKS=" + standby.URL("curt")}})}
			for _, wrong := range again.Follow(t, before, 1) {
				t.Error("long acknowledged, but", wrong)
			}
			lost := again.Follow(t, c.Made(), 4)
			t.Logf("%d of %d links are lost", len(lost), len(c.Made()))
			if synchronous && len(lost) > 0 {
				t.Errorf("acknowledged, but %s", lost[0])
			}
			if !synchronous && len(lost) == 0 {
				t.Error("the control lost nothing: the test proves nothing")
			}
		})
	}
}

// untilItHearsNothing waits on a standby until it gets nothing from its primary any more.
const untilItHearsNothing = `DO $$ BEGIN
	FOR i IN 1..18000 LOOP
		IF NOT EXISTS (SELECT FROM pg_stat_wal_receiver) THEN RETURN; END IF;
		PERFORM pg_sleep(0.01);
	END LOOP;
	RAISE 'it still hears its primary';
END $$`

// makeMany makes links in one request and returns how many were made.
func (n node) makeMany(t *testing.T, many int) (made int) {
	t.Helper()
	links := make([]client.NewLink, many)
	for i := range links {
		links[i].LongURL = fmt.Sprintf("https://example.com/many/%d", i)
	}
	results, err := n.api.CreateMany(t.Context(), links)
	if err != nil {
		t.Logf("a batch: %v", err)
	}
	for i := range results {
		if results[i].Status == http.StatusCreated {
			made++
		}
	}
	return made
}

// TestDatabaseIsInTrouble: the database answers two seconds late, not at all, or lets
// every statement about links wait: visitors of links in memory notice nothing, creates
// are 503 while it lasts, nothing piles up, and all is well again afterwards.
func TestDatabaseIsInTrouble(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	server := testkit.StartPostgres(t, testkit.PostgresConfig{Fsync: true})
	proxy := testkit.StartToxiproxy(t, server)
	nodes := begin(t, 2, proxy.URL("curt"))
	for _, fault := range []struct {
		name  string
		cause func(t *testing.T, meanwhile func())
	}{
		{"slow", func(t *testing.T, meanwhile func()) {
			proxy.Slow(t, 2*time.Second)
			defer proxy.Slow(t, 0)
			meanwhile()
		}},
		{"hung", func(t *testing.T, meanwhile func()) { server.Stop(t, meanwhile) }},
		{"exhausted", func(t *testing.T, meanwhile func()) { locked(t, server, meanwhile) }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			l := newLoad(t, nodes)
			healthy := l.phase(time.Second)
			before := goroutines(t, nodes[0])
			var during phase
			var worst float64
			fault.cause(t, func() {
				l.visitCold()
				during = l.fault(lasts(time.Second, 30*time.Second))
				worst = goroutines(t, nodes[0])
			})
			back := l.awaitMakes()
			unhurt(t, healthy, during)
			asQuick(t, healthy, during)
			if worst > 2*before {
				t.Errorf("%.0f goroutines, %.0f before", worst, before)
			}
			for _, wrong := range l.end() {
				t.Error("acknowledged, but", wrong)
			}
			t.Logf("%.0f goroutines, %.0f before; creates are back after %s", worst, before, back.Round(time.Millisecond))
		})
	}
}

// locked lets whoever asks for links wait, on every connection that there is.
func locked(t *testing.T, server *testkit.Postgres, meanwhile func()) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), server.URL("curt"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }() // ends the transaction
	if _, err := c.Exec(t.Context(), "BEGIN; LOCK TABLE links IN ACCESS EXCLUSIVE MODE", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	meanwhile()
}

func goroutines(t *testing.T, n node) float64 {
	t.Helper()
	v, found, err := n.Metric(t.Context(), "go_goroutines")
	if err != nil || !found {
		t.Fatalf("go_goroutines: %v", err)
	}
	return v
}

// TestServerSleeps: a server that was stopped while a link was killed elsewhere serves it
// no more soon after it goes on, and hands no code out that others have. In the control the
// change is taken out of the log, and the link lives on.
func TestServerSleeps(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	for name, told := range map[string]bool{"told": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := database(t)
			nodes := begin(t, 3, url)
			l := newLoad(t, nodes)
			healthy := l.phase(time.Second)
			sleeper := nodes[2]
			for _, alias := range []string{"doomed", "later"} {
				if _, err := nodes[0].api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/" + alias, CustomAlias: alias}); err != nil {
					t.Fatal(err)
				}
				soon(t, "the link is in memory", func() bool { got, _ := sleeper.answers(t, "/"+alias); return got == http.StatusFound })
			}
			stop(t, sleeper, func() {
				if _, err := nodes[0].api.Moderation.Decide(t.Context(), "doomed", "blocked", "it phishes"); err != nil {
					t.Fatal(err)
				}
				if !told {
					forget(t, url, "doomed")
				}
				unhurt(t, healthy, l.phase(lasts(6*time.Second, time.Minute), 2))
			})
			if told {
				soon(t, "what was killed meanwhile is dead", func() bool {
					got, _ := sleeper.answers(t, "/doomed")
					return got == http.StatusForbidden
				})
			} else {
				// Another link that is killed later stands behind it in the log: it is read.
				if _, err := nodes[0].api.Moderation.Decide(t.Context(), "later", "blocked", "it phishes"); err != nil {
					t.Fatal(err)
				}
				soon(t, "what was killed later is dead", func() bool {
					got, _ := sleeper.answers(t, "/later")
					return got == http.StatusForbidden
				})
				if got, _ := sleeper.answers(t, "/doomed"); got != http.StatusFound {
					t.Errorf("the control answers %d: the test proves nothing", got)
				}
			}
			l.awaitMakes()
			for _, wrong := range l.end() {
				t.Error("acknowledged, but", wrong)
			}
		})
	}
}

// forget makes the changes of a link ones of another.
func forget(t *testing.T, url, code string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	if _, err := c.Exec(t.Context(), "UPDATE changes SET code = 'nobody' WHERE code = $1", code); err != nil {
		t.Fatal(err)
	}
}
