package faults_test

import (
	"encoding/json"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// droppedClicks is the metric of clicks that found no room in memory.
const droppedClicks = "curt_clicks_dropped_total"

// TestFullDisk fills the disk of a working server: redirects go on, creates are
// refused as 507, clicks wait, and once there is room everything comes back by
// itself, with every click counted.
func TestFullDisk(t *testing.T) {
	testkit.Faults(t)
	disk := curttest.NewDisk(t, 48)
	s := curttest.Start(t, curttest.Options{Data: disk.Path, Env: []string{foldOften}})
	links := s.MustCreate(t, 40)
	clicks := s.Click(t, curttest.ClickPlan{Clients: 4, Links: links, Pace: time.Millisecond})
	awaitMetric(t, s, capturedClicks, func(v float64) bool { return v > 100 }) // on an empty disk
	free := disk.Fill(t)
	made := createUntilFull(t, s)
	shows(t, s, "writing the click log failed, clicks wait in memory")
	free()
	freed := time.Now()
	more := awaitCreates(t, s, freed.Add(3*time.Minute))
	back := time.Since(freed)
	clicks.Stop()
	for _, bad := range clicks.Bad() {
		t.Error("a redirect failed:", bad)
	}
	answered := clicks.Answered()
	dropped, got := float64(0), int64(0)
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) { // a click is recorded behind its answer
		dropped, got = metricOf(t, s, droppedClicks), s.Total(t, links)
		if got+int64(dropped) == answered {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d clicks were answered and %.0f dropped, statistics say %d", answered, dropped, got)
		}
	}
	checkLinks(t, s, append(made, more...))
	if code, _ := s.Terminate(t); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	checkIntegrity(t, disk.Path)
	t.Logf("%d clicks, %.0f dropped; creates worked again after %s", answered, dropped, back.Round(time.Millisecond))
}

// createUntilFull creates until the server says that it is full, and returns what
// it acknowledged on the way: its files may have had some room left.
func createUntilFull(t *testing.T, s *curttest.Server) (made []curttest.Link) {
	t.Helper()
	conn := s.MustDial(t)
	for i := range 200_000 {
		dest := prefix(t, i)
		l, a, err := conn.Create(dest)
		switch {
		case err != nil:
			t.Fatalf("create on a full disk: %v", err)
		case a.Status == 201:
			made = append(made, curttest.Link{Code: l.Code, LongURL: dest})
		default:
			var p struct {
				Type   string `json:"type"`
				Status int    `json:"status"`
			}
			kind, _ := a.Get("Content-Type")
			if err := json.Unmarshal(a.Body, &p); a.Status != 507 || kind != "application/problem+json" || p.Status != 507 || err != nil {
				t.Fatalf("create on a full disk: %d %s %s", a.Status, kind, a.Body)
			}
			return made
		}
	}
	t.Fatal("200,000 creates on a full disk")
	return nil
}

// awaitCreates creates until it works again; by the deadline it must.
func awaitCreates(t *testing.T, s *curttest.Server, deadline time.Time) []curttest.Link {
	t.Helper()
	conn := s.MustDial(t)
	dest := prefix(t, -1)
	for {
		l, a, err := conn.Create(dest)
		if err != nil {
			t.Fatalf("create: %v", err)
		}
		if a.Status == 201 {
			return []curttest.Link{{Code: l.Code, LongURL: dest}}
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is room again, but a create is still answered %d %s", a.Status, a.Body)
		}
		time.Sleep(20 * time.Millisecond) // a client that tries again
	}
}
