package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/counts"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/clicks/rollup"
	"curt/internal/clicks/rollup/rolluptest"
)

// counted opens stores of roll-ups, and remembers of which database and writer they are.
type counted struct {
	d    *databases
	mu   sync.Mutex
	made map[rollup.Store]counts.Config
}

func (c *counted) open(t *testing.T, config counts.Config) *counts.Rollups {
	t.Helper()
	s, err := counts.Open(t.Context(), config)
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

func (c *counted) of(s rollup.Store) counts.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[s]
}

// countTemplate has the schema of roll-ups.
const countTemplate = "template_clicks"

func rollups(t *testing.T, d *databases) {
	c := &counted{d: d, made: map[rollup.Store]counts.Config{}}
	d.server.Exec(t, "CREATE DATABASE "+countTemplate)
	if err := c.open(t, counts.Config{URL: d.server.URL(countTemplate), Instance: "none"}).Close(); err != nil {
		t.Fatal(err)
	}
	exec(t, d.server.URL(countTemplate), "DELETE FROM click_writers") // who made the schema is no writer
	others := 0
	h := rolluptest.Harness{
		Open: func(t *testing.T) rollup.Store {
			return c.open(t, counts.Config{URL: d.server.URL(d.server.Copy(t, countTemplate)), Instance: "first"})
		},
		Again: func(t *testing.T, s rollup.Store) rollup.Store { return c.open(t, c.of(s)) },
		Other: func(t *testing.T, s rollup.Store) rollup.Store {
			config := c.of(s)
			others++
			config.Instance = fmt.Sprintf("other%d", others)
			return c.open(t, config)
		},
	}
	rolluptest.Run(t, h)
	t.Run("complete", func(t *testing.T) { complete(t, h) })
	t.Run("nobody wrote", func(t *testing.T) { silence(t, c, h) })
	t.Run("a database that is away", func(t *testing.T) { away(t, d) })
	t.Run("plans", func(t *testing.T) { rollupPlans(t, c.of(h.Open(t)).URL) })
}

// complete looks at what a writer may say of all.
func complete(t *testing.T, h rolluptest.Harness) {
	first := h.Open(t).(*counts.Rollups)
	second := h.Other(t, first).(*counts.Rollups)
	at := time.Date(2026, 3, 9, 15, 0, 0, 0, time.UTC)
	if got := first.Complete(at); !got.IsZero() {
		t.Errorf("before it asked: %v", got)
	}
	first.Listen(t.Context())
	if got := first.Complete(at); !got.IsZero() {
		t.Errorf("of one that counted nothing yet: %v", got)
	}
	said := at.Add(-3 * time.Second)
	if err := second.Apply(t.Context(), rollup.Batch{State: rollup.State{Generation: 1}, Complete: said, Links: func(func([]rollup.LinkDelta) bool) {}}); err != nil {
		t.Fatal(err)
	}
	first.Listen(t.Context())
	if got := first.Complete(at); !got.Equal(said) {
		t.Errorf("complete until %v, the other said %v", got, said)
	}
	if got := first.Complete(said.Add(-time.Second)); !got.Equal(said.Add(-time.Second)) {
		t.Errorf("complete until %v, later than its own", got)
	}
	if got := h.Open(t).(*counts.Rollups); !listened(t, got).Complete(at).Equal(at) {
		t.Errorf("alone: %v", got.Complete(at))
	}
}

// silence has nobody write for an hour, as when the database is away: who was there before is
// waited for, who was gone before is not, and neither is who stays away from then on.
func silence(t *testing.T, c *counted, h rolluptest.Harness) {
	first := h.Open(t).(*counts.Rollups)
	second := h.Other(t, first).(*counts.Rollups)
	gone := h.Other(t, first).(*counts.Rollups)
	url, at := c.of(first).URL, time.Date(2026, 3, 9, 15, 0, 0, 0, time.UTC)
	count := func(s *counts.Rollups, generation uint64, until time.Time) {
		t.Helper()
		if err := s.Apply(t.Context(), rollup.Batch{State: rollup.State{Generation: generation}, Complete: until, Links: func(func([]rollup.LinkDelta) bool) {}}); err != nil {
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

func listened(t *testing.T, s *counts.Rollups) *counts.Rollups {
	s.Listen(t.Context())
	return s
}

// away opens a database that cannot be reached, which then can.
func away(t *testing.T, d *databases) {
	s, err := counts.Open(t.Context(), counts.Config{URL: "postgres://curt@127.0.0.1:1/curt?sslmode=disable", Instance: "first"})
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
	_, err = counts.Open(t.Context(), counts.Config{URL: d.server.URL("nothing_such"), Instance: "first"})
	if !errors.Is(err, pgdb.ErrUnfit) {
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
	for name, statement := range counts.Statements() {
		useIndexes(t, c, name, statement, "")
	}
}
