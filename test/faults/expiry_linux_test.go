package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"curt/internal/backend/postgres"
	"curt/internal/backend/sqlite"
	"curt/internal/link"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestKillsAroundAnnouncements kills servers while links expire: each of them is announced.
func TestKillsAroundAnnouncements(t *testing.T) {
	testkit.Faults(t)
	data := t.TempDir()
	killsAroundAnnouncements(t, curttest.Options{Data: data}, func(ctx context.Context) (logOfLinks, error) {
		return sqlite.OpenLinks(ctx, sqlite.LinksConfig{Path: filepath.Join(data, "curt.db")})
	})
}

// TestKillsAroundAnnouncementsInPostgreSQL is the same with links in a database that stays.
func TestKillsAroundAnnouncementsInPostgreSQL(t *testing.T) {
	testkit.Faults(t)
	url := testkit.StartPostgres(t, testkit.PostgresConfig{Fsync: true}).Database(t)
	killsAroundAnnouncements(t, curttest.Options{Data: t.TempDir(), Env: []string{"CURT_LINKS=" + url}}, func(ctx context.Context) (logOfLinks, error) {
		return postgres.OpenLinks(ctx, postgres.LinksConfig{URL: url})
	})
}

// logOfLinks is a store of links, for what its change log has.
type logOfLinks interface {
	link.EventLog
	Close() error
}

func killsAroundAnnouncements(t *testing.T, o curttest.Options, open func(context.Context) (logOfLinks, error)) {
	t.Helper()
	missing := map[link.Code]bool{}
	s := curttest.Start(t, o)
	for round := range rounds(6, 60) {
		c := s.MustDial(t)
		for n := range 40 { // which expire from a second on, one after the other
			missing[createExpiring(t, c, fmt.Sprintf("round%03d-%02d", round, n), n)] = true
		}
		someTime(500*time.Millisecond, 6*time.Second)
		s.Kill()
		s = curttest.Start(t, o)
	}
	made := len(missing)
	time.Sleep(4 * time.Second) // until the last of them has ended
	awaitSwept(t, s)
	s.Kill()
	store, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	repeats := -made
	for at := link.Position(""); ; {
		events, next, err := store.Events(t.Context(), at, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			for _, k := range events[i].Keys {
				delete(missing, k.Code)
				repeats++
			}
		}
		if at = next; len(events) == 0 {
			break
		}
	}
	t.Logf("%d links, %d announced again", made, repeats)
	if len(missing) > 0 {
		t.Errorf("not announced: %v", missing)
	}
}

// createExpiring creates a link that expires in a second and so many times 50 ms, with the code as an alias or, where n is
// even, with a counted one.
func createExpiring(t *testing.T, c *curttest.Conn, code string, n int) link.Code {
	t.Helper()
	for {
		expires := time.Now().Add(time.Second + time.Duration(n)*50*time.Millisecond)
		text := expires.UTC().Format(time.RFC3339Nano)
		body := fmt.Sprintf(`{"long_url":"https://example.com/","custom_alias":%q,"expires_at":%q}`, code, text)
		if n%2 == 0 {
			body = fmt.Sprintf(`{"long_url":"https://example.com/%s","expires_at":%q}`, code, text)
		}
		a, err := c.Do("POST", "/api/v1/links", []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, body)
		if err == nil && a.Status != http.StatusCreated && time.Now().After(expires) {
			continue // the request took so long that it asked for the past
		}
		var created struct {
			Code link.Code `json:"short_code"`
		}
		if err != nil || a.Status != http.StatusCreated || json.Unmarshal(a.Body, &created) != nil {
			t.Fatalf("create: %d %s, %v", a.Status, a.Body, err)
		}
		return created.Code
	}
}

// awaitSwept waits until all that has expired by now was announced.
func awaitSwept(t *testing.T, s *curttest.Server) {
	t.Helper()
	for began, end := time.Now(), time.Now().Add(3*time.Minute); ; time.Sleep(50 * time.Millisecond) {
		asked := time.Now()
		lag, found, err := s.Metric(t.Context(), "curt_expired_links_lag_seconds")
		if err != nil || !found || time.Now().After(end) {
			t.Fatal("links are not announced", lag, err)
		}
		if lag > 0 && asked.Sub(began) > time.Duration(lag*float64(time.Second)) {
			return
		}
	}
}
