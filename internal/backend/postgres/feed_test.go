package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres"
	"curt/internal/feed/feedtest"
	"curt/internal/link"
)

func feeds(t *testing.T, d *databases) {
	open := func(t testing.TB, config postgres.LinksConfig) feedtest.Store {
		s, err := postgres.OpenLinks(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		d.urls.Store(s, config.URL)
		return s
	}
	feedtest.Run(t, feedtest.Harness{
		Open: func(t testing.TB, changes int64, bounds link.LogBounds) feedtest.Store {
			return open(t, postgres.LinksConfig{URL: d.front.URL(d.server.Copy(t, template)), ChangeLog: changes, LogBounds: bounds})
		},
		Again: func(t testing.TB, s feedtest.Store) feedtest.Store {
			url, _ := d.urls.Load(s)
			return open(t, postgres.LinksConfig{URL: url.(string)})
		},
		Trim: func(t testing.TB, s feedtest.Store) {
			if err := s.(*postgres.Links).Trim(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		KeepsCreates: true, Foreign: "1/1/1//a",
		LateCreate: func(t testing.TB, s feedtest.Store) (commit func()) {
			url, _ := d.urls.Load(s)
			return uncommitted(t, url.(string), `CREATE TEMP TABLE late AS SELECT * FROM links LIMIT 1`,
				`UPDATE late SET code = 'late001', place = place + 1, id = '00000000-0000-7000-8000-000000000001', made = pg_current_xact_id()`,
				`INSERT INTO links SELECT * FROM late`)
		},
		Late: func(t testing.TB, s feedtest.Store) (commit func()) {
			url, _ := d.urls.Load(s)
			return uncommitted(t, url.(string), `WITH head AS (UPDATE change_head SET seq = seq + 1 WHERE n = 1 RETURNING seq)
				INSERT INTO changes (seq, domain, code, version) SELECT seq, '', 'late', 1 FROM head`)
		},
	})
}

// uncommitted runs statements in a transaction, and returns what commits it.
func uncommitted(t testing.TB, url string, statements ...string) (commit func()) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	for _, statement := range append([]string{`BEGIN`}, statements...) {
		if _, err := c.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if _, err := c.Exec(t.Context(), `COMMIT`); err != nil {
			t.Fatal(err)
		}
	}
}
