package faults_test

import (
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// foldOften makes the fold write its database many times a second, so that a kill
// at random hits it in the middle of a transaction.
const foldOften = "CURT_FOLD_INTERVAL=200ms"

// captureBound is how long a click may be in memory only (design §1).
const captureBound = 120 * time.Millisecond

// TestTerminateCountsEveryClick ends the server gently under load: the statistics
// equal the answers that clients read, exactly.
func TestTerminateCountsEveryClick(t *testing.T) {
	data := t.TempDir()
	s := curttest.Start(t, curttest.Options{Data: data})
	links := s.MustCreate(t, 40)
	var answered int64
	for range rounds(2, 50) {
		c := s.Click(t, curttest.ClickPlan{Clients: 16, Links: links})
		someTime(200*time.Millisecond, 500*time.Millisecond)
		if code, took := s.Terminate(t); code != 0 {
			t.Fatalf("SIGTERM: exit code %d after %s", code, took)
		}
		c.Wait()
		n, _ := c.Answered(time.Time{})
		answered += n
		s = curttest.Start(t, curttest.Options{Data: data})
		if got := s.AwaitTotal(t, links, answered, 5*time.Second); got != answered {
			t.Fatalf("%d clicks were answered, statistics say %d", answered, got)
		}
		if logged := recount(t, data); logged != answered {
			t.Fatalf("%d clicks were answered, the click log holds %d", answered, logged)
		}
	}
	t.Logf("%d clicks", answered)
}

// TestKillLosesLittleAndCountsNothingTwice kills the server under clicks, while it
// folds five times a second. What the clients were answered earlier than 120 ms
// before the kill is counted, nothing is counted that nobody sent, and after each
// restart the statistics equal the click log.
func TestKillLosesLittleAndCountsNothingTwice(t *testing.T) {
	options := curttest.Options{Data: t.TempDir(), Env: []string{foldOften}}
	s := curttest.Start(t, options)
	links := s.MustCreate(t, 40)
	var before, lost, total int64
	for round := range rounds(10, 300) {
		c := s.Click(t, curttest.ClickPlan{Clients: 16, Links: links})
		someTime(150*time.Millisecond, 700*time.Millisecond)
		killed := time.Now()
		s.Kill()
		c.Wait()
		answered, late := c.Answered(killed.Add(-captureBound))
		s = curttest.Start(t, options)
		logged := recount(t, options.Data)
		after := s.AwaitTotal(t, links, logged, 5*time.Second)
		if after != logged {
			t.Fatalf("round %d: the click log holds %d clicks, statistics say %d", round, logged, after)
		}
		counted := after - before
		if counted > c.Sent() {
			t.Fatalf("round %d: %d clicks were sent, %d were counted", round, c.Sent(), counted)
		}
		if counted < answered-late {
			t.Fatalf("round %d: %d clicks were answered, %d of them in the last %s before the kill, but only %d were counted",
				round, answered, late, captureBound, counted)
		}
		before, lost, total = after, lost+max(0, answered-counted), total+answered
	}
	if total == 0 {
		t.Fatal("nobody clicked")
	}
	t.Logf("%d of %d clicks lost to kills", lost, total)
}

// TestKillDuringRecoveryCountsNothingTwice kills the server while it folds what an
// earlier kill left behind, several times in a row, without new clicks.
func TestKillDuringRecoveryCountsNothingTwice(t *testing.T) {
	data := t.TempDir()
	paused := curttest.Options{Data: data, Env: []string{"CURT_FOLD=pause"}}
	s := curttest.Start(t, paused)
	links := s.MustCreate(t, 40)
	c := s.Click(t, curttest.ClickPlan{Clients: 16, Links: links})
	time.Sleep(700 * time.Millisecond)
	c.Stop()
	answered, _ := c.Answered(time.Time{})
	if code, _ := s.Terminate(t); code != 0 {
		t.Fatalf("SIGTERM: exit code %d", code)
	}
	folding := curttest.Options{Data: data, Env: []string{foldOften}}
	for range rounds(5, 100) {
		s = curttest.Start(t, folding)
		someTime(time.Millisecond, 300*time.Millisecond)
		s.Kill()
	}
	s = curttest.Start(t, folding)
	if got := s.AwaitTotal(t, links, answered, 10*time.Second); got != answered {
		t.Fatalf("%d clicks were answered, statistics say %d", answered, got)
	}
}
