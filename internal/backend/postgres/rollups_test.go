package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres"
	"curt/internal/clicks"
	"curt/internal/clicks/clickstest"
)

// counted opens stores of roll-ups, and remembers of which database and writer they are.
type counted struct {
	d    *databases
	mu   sync.Mutex
	made map[clicks.RollupStore]postgres.RollupsConfig
}

func (c *counted) open(t *testing.T, config postgres.RollupsConfig) *postgres.Rollups {
	t.Helper()
	s, err := postgres.OpenRollups(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	await(t, "the database of roll-ups is reached", func() bool { // OpenRollups does not wait for one that is slow
		_, err := s.Load(t.Context())
		return err == nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[s] = config
	return s
}

func (c *counted) of(s clicks.RollupStore) postgres.RollupsConfig {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[s]
}

// countTemplate has the schema of roll-ups.
const countTemplate = "template_clicks"

func rollups(t *testing.T, d *databases) {
	c := &counted{d: d, made: map[clicks.RollupStore]postgres.RollupsConfig{}}
	d.server.Exec(t, "CREATE DATABASE "+countTemplate)
	if err := c.open(t, postgres.RollupsConfig{URL: d.server.URL(countTemplate), Instance: "none"}).Close(); err != nil {
		t.Fatal(err)
	}
	exec(t, d.server.URL(countTemplate), "DELETE FROM click_writers") // who made the schema is no writer
	others := 0
	h := clickstest.Harness{
		Open: func(t *testing.T) clicks.RollupStore {
			return c.open(t, postgres.RollupsConfig{URL: d.server.URL(d.server.Copy(t, countTemplate)), Instance: "first"})
		},
		Again: func(t *testing.T, s clicks.RollupStore) clicks.RollupStore { return c.open(t, c.of(s)) },
		Other: func(t *testing.T, s clicks.RollupStore) clicks.RollupStore {
			config := c.of(s)
			others++
			config.Instance = fmt.Sprintf("other%d", others)
			return c.open(t, config)
		},
	}
	clickstest.Run(t, h)
	t.Run("complete", func(t *testing.T) { complete(t, h) })
	t.Run("nobody wrote", func(t *testing.T) { silence(t, c, h) })
	t.Run("a database that is away", func(t *testing.T) { away(t, d) })
	t.Run("plans", func(t *testing.T) { rollupPlans(t, c.of(h.Open(t)).URL) })
}

// complete looks at what a writer may say of all.
func complete(t *testing.T, h clickstest.Harness) {
	first := h.Open(t).(*postgres.Rollups)
	second := h.Other(t, first).(*postgres.Rollups)
	at := time.Date(2026, 3, 9, 15, 0, 0, 0, time.UTC)
	if got := first.Complete(at); !got.IsZero() {
		t.Errorf("before it asked: %v", got)
	}
	first.Listen(t.Context())
	if got := first.Complete(at); !got.IsZero() {
		t.Errorf("of one that counted nothing yet: %v", got)
	}
	said := at.Add(-3 * time.Second)
	if err := second.Apply(t.Context(), clicks.Batch{State: clicks.State{Generation: 1}, Complete: said, Links: func(func([]clicks.LinkDelta) bool) {}}); err != nil {
		t.Fatal(err)
	}
	first.Listen(t.Context())
	if got := first.Complete(at); !got.Equal(said) {
		t.Errorf("complete until %v, the other said %v", got, said)
	}
	if got := first.Complete(said.Add(-time.Second)); !got.Equal(said.Add(-time.Second)) {
		t.Errorf("complete until %v, later than its own", got)
	}
	if got := h.Open(t).(*postgres.Rollups); !listened(t, got).Complete(at).Equal(at) {
		t.Errorf("alone: %v", got.Complete(at))
	}
}

// silence has nobody write for an hour, as when the database is away: who was there before is
// waited for, who was gone before is not, and neither is who stays away from then on.
func silence(t *testing.T, c *counted, h clickstest.Harness) {
	first := h.Open(t).(*postgres.Rollups)
	second := h.Other(t, first).(*postgres.Rollups)
	gone := h.Other(t, first).(*postgres.Rollups)
	url, at := c.of(first).URL, time.Date(2026, 3, 9, 15, 0, 0, 0, time.UTC)
	count := func(s *postgres.Rollups, generation uint64, until time.Time) {
		t.Helper()
		if err := s.Apply(t.Context(), clicks.Batch{State: clicks.State{Generation: generation}, Complete: until, Links: func(func([]clicks.LinkDelta) bool) {}}); err != nil {
			t.Fatal(err)
		}
	}
	count(gone, 1, at.Add(-3*time.Hour))
	count(second, 1, at.Add(-time.Hour))
	exec(t, url, "UPDATE click_writers SET seen = now() - interval '1 hour'")
	exec(t, url, "UPDATE click_writers SET seen = now() - interval '2 hours' WHERE instance = '"+c.of(gone).Instance+"'")
	count(first, 1, at)
	if got := listened(t, first).Complete(at); !got.Equal(at.Add(-time.Hour)) {
		t.Errorf("complete until %v after an hour in which nobody wrote", got)
	}
	exec(t, url, "UPDATE click_writers SET seen = seen - interval '11 minutes'")
	exec(t, url, "UPDATE click_writers SET seen = now() WHERE instance = '"+c.of(first).Instance+"'")
	count(first, 2, at)
	if got := listened(t, first).Complete(at); !got.Equal(at) {
		t.Errorf("complete until %v, eleven minutes later", got)
	}
}

func listened(t *testing.T, s *postgres.Rollups) *postgres.Rollups {
	s.Listen(t.Context())
	return s
}

// away opens a database that cannot be reached, which then can.
func away(t *testing.T, d *databases) {
	s, err := postgres.OpenRollups(t.Context(), postgres.RollupsConfig{URL: "postgres://curt@127.0.0.1:1/curt?sslmode=disable", Instance: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err == nil {
		t.Error("it loaded from nowhere")
	}
	if _, _, err := s.Totals(t.Context(), nil); err == nil {
		t.Error("it read from nowhere")
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	_, err = postgres.OpenRollups(t.Context(), postgres.RollupsConfig{URL: d.server.URL("nothing_such"), Instance: "first"})
	if !errors.Is(err, postgres.ErrUnfit) {
		t.Errorf("a database that does not exist: %v", err)
	}
}

// rollupPlans asks for the plans of what reads and writes roll-ups.
func rollupPlans(t *testing.T, url string) {
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	noScans(t, c)
	for name, statement := range postgres.RollupStatements() {
		useIndexes(t, c, name, statement, "")
	}
}
