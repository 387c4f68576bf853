package postgres_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"curt/internal/backend/postgres/replicas"
	"curt/internal/link"
	"curt/internal/testkit"
)

// replicaProbed: what is asked at run time is asked before a start, too.
func replicaProbed(t *testing.T, p pair) {
	primary, standby := p.primary.URL("curt"), p.standby.URL("curt")
	if what, err := replicas.Probe(t.Context(), standby, primary); err != nil || !strings.HasPrefix(what, "standby available, PostgreSQL ") || strings.Contains(what, ";") {
		t.Errorf("the standby: %q, %v", what, err)
	}
	if what, err := replicas.Probe(t.Context(), primary, primary); err == nil || !strings.Contains(err.Error(), "not a standby") {
		t.Errorf("the primary: %q, %v", what, err)
	}
	const away = "unknown whether it follows the primary in CURT_LINKS: the primary is unavailable"
	if what, err := replicas.Probe(t.Context(), standby, "postgres://curt@127.0.0.1:1/curt"); err != nil || !strings.Contains(what, away) {
		t.Errorf("without a primary: %q, %v", what, err)
	}
	// Who may not ask for the number of a cluster is believed.
	p.primary.ExecIn(t, "curt", "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
	p.primary.Exec(t, "CREATE ROLE humble LOGIN")
	defer func() {
		p.primary.ExecIn(t, "curt", "GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
		p.primary.Exec(t, "DROP ROLE humble")
	}()
	humble := func(url string) string { return strings.Replace(url, "//curt@", "//humble@", 1) }
	await(t, "the standby has the role", func() bool {
		what, err := replicas.Probe(t.Context(), humble(standby), primary)
		return err == nil && strings.HasSuffix(what, "CURT_LINKS: its user lacks the right to call pg_control_system()")
	})
	if what, err := replicas.Probe(t.Context(), standby, humble(primary)); err != nil || !strings.HasSuffix(what, "CURT_LINKS: the user of CURT_LINKS lacks the right to call pg_control_system()") {
		t.Errorf("a primary that does not say: %q, %v", what, err)
	}
}

// foreignReplica names the standby of one primary to a store on another one, whose log ends
// sooner on a timeline of the same number.
func foreignReplica(t *testing.T, p pair) {
	other := testkit.StartPostgres(t, testkit.PostgresConfig{Own: true})
	if what, err := replicas.Probe(t.Context(), p.standby.URL("curt"), other.URL("curt")); err == nil || !strings.Contains(err.Error(), "standby of another primary") || strings.Contains(err.Error(), "\n") {
		t.Errorf("probed: %q, %v", what, err)
	}
	theirs := p.open(t, "curt", 5*time.Second)
	l, err := theirs.Create(t.Context(), newLink(3, "theirs"))
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the standby has their link", func() bool {
		before := theirs.Replicas().Answered
		_, err := theirs.Lookup(t.Context(), l.Key)
		return err == nil && theirs.Replicas().Answered > before
	})
	told := &testkit.Lines{}
	s := pair{primary: other, standby: p.standby, log: slog.New(slog.NewTextHandler(told, nil))}.open(t, "curt", 5*time.Second)
	await(t, "the log says why", func() bool { return strings.Contains(told.String(), "standby of another primary") })
	if n := s.Replicas().Usable; n != 0 {
		t.Errorf("%d replicas are usable", n)
	}
	if found, err := s.Lookup(t.Context(), l.Key); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("a link of another installation: %+v, %v", found, err)
	}
}
