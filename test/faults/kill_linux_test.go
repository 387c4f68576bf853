package faults_test

import (
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestKillLosesNoLink kills the server again and again while 32 clients create and
// two delete, on one data folder: every 201 is there, none twice, none changed, and
// what was answered 204 stays deleted.
func TestKillLosesNoLink(t *testing.T) {
	data := t.TempDir()
	var made, last, deleted []curttest.Link
	n := rounds(20, 500)
	for round := range n {
		s := curttest.Start(t, curttest.Options{Data: data})
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
	s := curttest.Start(t, curttest.Options{Data: data})
	checkLinks(t, s, made)
	for _, wrong := range s.AllGone(t, deleted, 8) {
		t.Error("deleted, but", wrong)
	}
	t.Logf("%d links, %d deletions over %d kills", len(made), len(deleted), n)
}
