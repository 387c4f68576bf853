package faults_test

import (
	"database/sql"
	"net/http"
	"path/filepath"
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
	// What a kill may cost is what is not stored yet: each create takes a fiftieth of a day to come back.
	awaitStored(t, o.Data, "SELECT coalesce(max(full_at), 0) - CAST(unixepoch('subsec') * 1000 AS INTEGER) FROM limits", 29*(24*time.Hour/50).Milliseconds())
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
	// It learns the counts of before when it stores its own, and stores the next once it has learned them.
	const stored = "SELECT coalesce(sum(links), 0) FROM creator_minutes"
	awaitStored(t, o.Data, stored, 46)
	if n := creates(t, s, 1); n != 1 {
		t.Fatal("the second link is refused")
	}
	awaitStored(t, o.Data, stored, 47)
	if n := creates(t, s, 20); n > 5 {
		t.Errorf("%d more links are created, want the rest of 50", n)
	}
}

// awaitStored waits until a running server has stored so much in curt.db.
func awaitStored(t *testing.T, data, query string, least int64) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(data, "curt.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // it only reads
	var n int64
	for end := time.Now().Add(3 * time.Minute); n < least; time.Sleep(10 * time.Millisecond) {
		if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %d, want %d", query, n, least)
		}
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
