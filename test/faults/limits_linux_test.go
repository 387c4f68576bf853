package faults_test

import (
	"net/http"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestAPlanOutlivesItsServer spends a plan over three runs: one that is killed, one that is stopped,
// and one that has nothing left.
func TestAPlanOutlivesItsServer(t *testing.T) {
	t.Parallel()
	o := curttest.Options{Data: t.TempDir(), Env: []string{"CURT_LIMITS=default=50/d"}}
	s := curttest.Start(t, o)
	if n := creates(t, s, 30); n != 30 {
		t.Fatalf("%d of 30 creates within the plan are answered 201", n)
	}
	time.Sleep(time.Second) // what a kill may cost
	s.Kill()

	s = curttest.Start(t, o)
	if n := creates(t, s, 10); n != 10 {
		t.Errorf("%d of 10 creates after a kill", n)
	}
	if code, _ := s.Terminate(t); code != 0 {
		t.Errorf("it ends with %d", code)
	}

	s = curttest.Start(t, o)
	if n := creates(t, s, 30); n != 10 {
		t.Errorf("%d creates after a stop, want the 10 that the plan has left", n)
	}
}

// TestAPlanOutlivesAClockThatIsSet has the clock go back by a day, and come back at the restart.
func TestAPlanOutlivesAClockThatIsSet(t *testing.T) {
	t.Parallel()
	o := curttest.Options{Data: t.TempDir(), Env: []string{"CURT_LIMITS=default=50/d"}}
	s := curttest.Start(t, o)
	if n := creates(t, s, 20); n != 20 {
		t.Fatalf("%d of 20 creates within the plan are answered 201", n)
	}
	if code, _ := s.Terminate(t); code != 0 {
		t.Errorf("it ends with %d", code)
	}
	s = curttest.Start(t, o)
	s.SetClock(t, -24*time.Hour)
	if n := creates(t, s, 10); n != 10 {
		t.Errorf("%d of 10 creates with a clock that was set back", n)
	}
	if code, _ := s.Terminate(t); code != 0 {
		t.Errorf("it ends with %d", code)
	}
	s = curttest.Start(t, o)
	if n := creates(t, s, 40); n != 20 {
		t.Errorf("%d creates with the clock as it was, want the 20 that the plan has left", n)
	}
}

// TestVelocityOutlivesItsServer has a creator go on after a restart, whom the hour before counts.
func TestVelocityOutlivesItsServer(t *testing.T) {
	t.Parallel()
	o := curttest.Options{Data: t.TempDir(), Env: []string{"CURT_LIMITS=default=off", "CURT_WEIGHTS=velocity=90"}}
	s := curttest.Start(t, o)
	if n := creates(t, s, 45); n != 45 {
		t.Fatalf("%d of 45 creates are answered 201", n)
	}
	if code, _ := s.Terminate(t); code != 0 {
		t.Errorf("it ends with %d", code)
	}
	s = curttest.Start(t, o)
	if n := creates(t, s, 1); n != 1 {
		t.Fatal("the first link is refused")
	}
	time.Sleep(time.Second) // until the counts of before are known
	if n := creates(t, s, 20); n > 5 {
		t.Errorf("%d more links are created, want the rest of 50", n)
	}
}

// creates tries to create links one after the other, and returns how many were.
func creates(t *testing.T, s *curttest.Server, tries int) (created int) {
	t.Helper()
	c := s.MustDial(t)
	defer c.Close()
	for range tries {
		_, a, err := c.Create("https://example.com/")
		switch {
		case err != nil && a.Status == 0:
			t.Fatal(err)
		case a.Status == http.StatusCreated:
			created++
		}
	}
	return created
}
