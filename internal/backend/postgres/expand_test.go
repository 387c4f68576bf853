package postgres_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"curt/internal/backend/postgres"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/testkit"
)

// Of several who bring a schema up to date at once, behind a pooler too, each finds it so afterwards, and the next one has
// nothing to do. A server then starts as on one that it has migrated itself.
func TestExpand(t *testing.T) {
	server := testkit.StartPostgres(t, testkit.PostgresConfig{})
	pooler := testkit.StartPgBouncer(t, server)
	for name, url := range map[string]string{"PostgreSQL": server.Database(t), "PgBouncer": pooler.URL(server.Copy(t, "template1"))} {
		var older atomic.Int32
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				was, err := pgdb.Expand(t.Context(), url)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if was {
					older.Add(1)
				}
			})
		}
		all.Wait()
		if older.Load() == 0 {
			t.Errorf("%s: nobody found an empty database older", name)
		}
		if was, err := pgdb.Expand(t.Context(), url); was || err != nil {
			t.Errorf("%s, again: %v, %v", name, was, err)
		}
		s, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: url})
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Errorf("%s: a start: %v", name, err)
		}
	}
}
