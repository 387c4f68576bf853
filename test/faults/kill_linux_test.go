package faults_test

import (
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestKillLosesNoLink kills the server again and again while 32 clients create and
// two delete, on one data folder: every 201 is there, none twice, none changed, and
// what was answered 204 stays deleted.
func TestKillLosesNoLink(t *testing.T) {
	testkit.Faults(t)
	killLosesNoLink(t, rounds(20, 500), curttest.Options{Data: t.TempDir()})
}

// TestKillLosesNoLinkInPostgreSQL is the same with links in a database that stays.
func TestKillLosesNoLinkInPostgreSQL(t *testing.T) {
	testkit.Faults(t)
	server := testkit.StartPostgres(t, testkit.PostgresConfig{Fsync: true})
	killLosesNoLink(t, rounds(4, 100), curttest.Options{Data: t.TempDir(), Env: []string{"CURT_LINKS=" + server.Database(t)}})
}

func killLosesNoLink(t *testing.T, n int, o curttest.Options) {
	t.Helper()
	var made, last, deleted []curttest.Link
	for round := range n {
		s := curttest.Start(t, o)
		for _, wrong := range s.Follow(t, last, 4) {
			t.Fatal("acknowledged before the last kill, but", wrong)
		}
		churn := s.Churn(t, 2, prefix(t, round))
		c := s.Create(t, 32, prefix(t, round))
		c.AwaitMade(t, 32)
		someTime(0, 250*time.Millisecond)
		s.Kill()
		c.Wait()
		churn.Wait()
		deleted = append(deleted, churn.Deleted()...)
		only201(t, c)
		last = c.Made()
		made = append(made, last...)
	}
	if len(made) < 20*n {
		t.Fatalf("only %d links in %d rounds: that proves little", len(made), n)
	}
	s := curttest.Start(t, o)
	checkLinks(t, s, made)
	for _, wrong := range s.AllGone(t, deleted, 8) {
		t.Error("deleted, but", wrong)
	}
	t.Logf("%d links, %d deletions over %d kills", len(made), len(deleted), n)
}
