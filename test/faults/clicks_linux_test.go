package faults_test

import (
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// foldOften makes the fold write its database many times a second, so that a kill
// at random hits it in the middle of a transaction.
const foldOften = "CURT_FOLD_INTERVAL=200ms"

// How long a click may be in memory only, and how long in the page cache (design §1).
const (
	captureBound = 120 * time.Millisecond
	powerBound   = 1100 * time.Millisecond
)

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
// folds five times a second, and every third time while it drains. What the clients
// were answered earlier than 120 ms before the kill is counted, nothing is counted
// that nobody sent, and after each restart the statistics equal the click log.
func TestKillLosesLittleAndCountsNothingTwice(t *testing.T) {
	options := curttest.Options{Data: t.TempDir(), Env: []string{foldOften}}
	s := curttest.Start(t, options)
	links := s.MustCreate(t, 40)
	var sum tally
	for round := range rounds(9, 300) {
		c := s.Click(t, curttest.ClickPlan{Clients: 16, Links: links})
		someTime(150*time.Millisecond, 700*time.Millisecond)
		if round%3 == 2 {
			s.Signal(t)
			someTime(0, 200*time.Millisecond)
		}
		killed := time.Now()
		s.Kill()
		c.Wait()
		s = curttest.Start(t, options)
		sum.add(t, s, links, c, killed.Add(-captureBound))
	}
	t.Logf("%d of %d clicks lost to kills", sum.lost, sum.answered)
}

// TestPowerCutLosesFewClicks cuts the power under clicks: what was answered earlier
// than 1.1 s before is counted, and nothing twice, although the roll-ups and their
// log reach the disk at different times.
func TestPowerCutLosesFewClicks(t *testing.T) {
	disk := curttest.NewDisk(t, 256)
	options := curttest.Options{Data: disk.Path, Env: []string{foldOften}}
	s := curttest.Start(t, options)
	links := s.MustCreate(t, 40)
	var sum tally
	for range rounds(3, 100) {
		c := s.Click(t, curttest.ClickPlan{Clients: 16, Links: links, Pace: time.Millisecond})
		someTime(1200*time.Millisecond, 2200*time.Millisecond)
		cut := time.Now()
		disk.CutPower(t)
		s.Kill()
		c.Wait()
		disk.Remount(t)
		s = curttest.Start(t, options)
		sum.add(t, s, links, c, cut.Add(-powerBound))
	}
	t.Logf("%d of %d clicks lost to power cuts", sum.lost, sum.answered)
}

// tally adds up the clicks of several rounds on one data folder.
type tally struct{ counted, answered, lost int64 }

// add takes one round into account: the server has been restarted, and clicks
// answered after the given time may have been lost.
func (y *tally) add(t *testing.T, s *curttest.Server, links []curttest.Link, c *curttest.Clickers, mayLose time.Time) {
	t.Helper()
	answered, late := c.Answered(mayLose)
	logged := recount(t, s.Data)
	total := s.AwaitTotal(t, links, logged, 5*time.Second)
	if total != logged {
		t.Fatalf("the click log holds %d clicks, statistics say %d", logged, total)
	}
	counted := total - y.counted
	if counted > c.Sent() {
		t.Fatalf("%d clicks were sent, %d were counted", c.Sent(), counted)
	}
	if answered == 0 {
		t.Fatalf("nobody was answered: %v", c.Bad())
	}
	if counted < answered-late {
		t.Fatalf("%d clicks were answered, %d of them so late that they may be lost, but only %d were counted", answered, late, counted)
	}
	y.counted, y.answered, y.lost = total, y.answered+answered, y.lost+max(0, answered-counted)
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
