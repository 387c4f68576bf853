package postgres_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// recovery is a base backup of a server, whose own folder stands for the archive of its log.
type recovery struct {
	server       *testkit.Postgres
	backup, port string
}

func newRecovery(t *testing.T, server *testkit.Postgres, at *url.URL) recovery {
	t.Helper()
	r := recovery{server, filepath.Join(server.Dir, "backup"), testkit.FreePort(t)}
	r.asPostgres(t, "pg_basebackup -d 'host=127.0.0.1 user=curt port="+at.Port()+"' -D "+r.backup+" -X stream -c fast --no-sync")
	return r
}

// asPostgres runs a script as the user of the servers.
func (r recovery) asPostgres(t *testing.T, script string) {
	t.Helper()
	c := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-euc", `export PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
		[ "$(id -u)" = 0 ] || exec sh -euc "$1"
		exec setpriv --reuid=postgres --regid=postgres --clear-groups sh -euc "$1"`, "sh", script)
	c.Dir = r.server.Dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// recover starts a server with what the log had at a restore point, and returns the URL of a database there.
func (r recovery) recover(t *testing.T, point string, at *url.URL) string {
	t.Helper()
	r.asPostgres(t, `cat >>`+r.backup+`/postgresql.auto.conf <<END
restore_command = 'cp `+r.server.Dir+`/data/pg_wal/%f %p'
recovery_target_name = '`+point+`'
recovery_target_action = 'promote'
END
touch `+r.backup+`/recovery.signal
pg_ctl -D `+r.backup+` -o '-p `+r.port+` -k `+r.server.Dir+` -c listen_addresses=127.0.0.1' -l `+r.server.Dir+`/recovered.log -t 180 -w start >/dev/null`)
	t.Cleanup(func() { r.asPostgres(t, "pg_ctl -D "+r.backup+" -m immediate -t 180 -w stop") })
	restored := *at
	restored.Host = "127.0.0.1:" + r.port
	soon(t, "the end of the recovery", func() bool {
		c, err := pgx.Connect(t.Context(), restored.String())
		if err != nil {
			return false
		}
		defer func() { _ = c.Close(t.Context()) }()
		recovering := true
		return c.QueryRow(t.Context(), "SELECT pg_is_in_recovery()").Scan(&recovering) == nil && !recovering
	})
	return restored.String()
}

func codesOf(links []curttest.Link) map[string]bool {
	codes := map[string]bool{}
	for _, l := range links {
		codes[l.Code] = true
	}
	return codes
}

// again returns how many of the codes of new links were issued before.
func again(t *testing.T, n node, issued map[string]bool) (count int) {
	t.Helper()
	for code := range codesOf(n.MustCreate(t, 200)) {
		if issued[code] {
			count++
		}
	}
	return count
}

// TestPointInTimeRecovery recovers PostgreSQL to a restore point, after which codes were issued. A server that
// issued some does not start until curt migrate --restored has skipped them, and then no code is issued twice. The
// control is a server on a copy of the recovered database that knows nothing of them: it issues them again.
func TestPointInTimeRecovery(t *testing.T) {
	testkit.Faults(t)
	began := time.Now().UTC()
	server := testkit.StartPostgres(t, testkit.PostgresConfig{Fsync: true})
	at, err := url.Parse(server.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	n := begin(t, 1, at.String())[0]
	data := n.Data
	kept := n.MustCreate(t, 20)
	r := newRecovery(t, server, at)
	kept = append(kept, n.MustCreate(t, 20)...)
	server.Exec(t, "SELECT pg_create_restore_point('before')")
	n.Terminate(t)
	n = begin(t, 1, at.String(), "CURT_DATA="+data)[0] // which leases further ids
	lost := n.MustCreate(t, 200)
	issued := codesOf(lost)
	n.Terminate(t)

	restored := r.recover(t, "before", at)
	c, err := pgx.Connect(t.Context(), strings.Replace(restored, at.Path, "/postgres", 1))
	if err == nil {
		_, err = c.Exec(t.Context(), "CREATE DATABASE unaware TEMPLATE "+strings.TrimPrefix(at.Path, "/"))
		err = errors.Join(err, c.Close(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	if unaware := begin(t, 1, strings.Replace(restored, at.Path, "/unaware", 1))[0]; again(t, unaware, issued) == 0 {
		t.Error("a server that knows nothing of them issues no code again: there is nothing to skip")
	}

	s, err := curttest.Launch(t, curttest.Options{Data: data, Env: []string{"CURT_LINKS=" + restored}})
	if err == nil || s.ExitCode() != 78 || !strings.Contains(s.Log(), "run curt migrate --restored") {
		t.Fatalf("on the recovered database: %v", err)
	}
	code, out, errs := n.command(t, restored, "migrate", "--restored")
	since := func(day time.Time) bool { return strings.Contains(out, "since "+day.Format(time.DateOnly)) }
	if code != 0 || !since(began) && !since(time.Now().UTC()) || errs != "" { // midnight may have been in between
		t.Fatalf("migrate --restored: %d %q %q", code, out, errs)
	}
	n = begin(t, 1, restored, "CURT_DATA="+data)[0]
	if count := again(t, n, issued); count > 0 {
		t.Errorf("%d codes were issued again", count)
	}
	for _, l := range kept {
		if status, _ := n.answers(t, "/"+l.Code); status != http.StatusFound {
			t.Errorf("a link of before: %d", status)
		}
	}
	if status, _ := n.answers(t, "/"+lost[0].Code); status != http.StatusNotFound {
		t.Errorf("a link that is lost: %d", status)
	}
}
