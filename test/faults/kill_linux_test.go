package faults_test

import (
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestKillLosesNoLink kills the server again and again while 32 clients create, on
// one data folder: every 201 is there, none twice, none changed.
func TestKillLosesNoLink(t *testing.T) {
	data := t.TempDir()
	var made, last []curttest.Link
	n := rounds(20, 500)
	for round := range n {
		s := curttest.Start(t, curttest.Options{Data: data})
		for _, wrong := range s.Follow(t, last, 4) {
			t.Fatal("acknowledged before the last kill, but", wrong)
		}
		c := s.Create(t, 32, prefix(t, round))
		c.AwaitMade(t, 32)
		someTime(0, 250*time.Millisecond)
		s.Kill()
		c.Wait()
		only201(t, c)
		last = c.Made()
		made = append(made, last...)
	}
	if len(made) < 20*n {
		t.Fatalf("only %d links in %d rounds: that proves little", len(made), n)
	}
	checkLinks(t, curttest.Start(t, curttest.Options{Data: data}), made)
	t.Logf("%d links over %d kills", len(made), n)
}
