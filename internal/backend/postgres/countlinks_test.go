package postgres_test

import (
	"fmt"
	"testing"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/testkit"
)

// Links are counted one by one while there are few, and estimated when there are many; a database without tables has none.
func TestCountLinks(t *testing.T) {
	server := testkit.StartPostgres(t, testkit.PostgresConfig{})
	schema(t, server)
	count := func(name string, want int64) {
		t.Helper()
		if n, err := pgdb.CountLinks(t.Context(), server.URL(name)); err != nil || n != want {
			t.Errorf("%s has %d links, %v; want %d", name, n, err, want)
		}
	}
	count(server.Copy(t, "template1"), 0)
	name := server.Copy(t, template)
	count(name, 0)
	for i := range 3 {
		server.ExecIn(t, name, fmt.Sprintf("INSERT INTO leases (counter, next) VALUES ('other-%d', 1)", i))
	}
	count(name, 0)
	server.ExecIn(t, name, "UPDATE pg_class SET reltuples = 5000000 WHERE oid = 'links'::regclass")
	count(name, 5_000_000)
	if _, err := pgdb.CountLinks(t.Context(), "postgres://127.0.0.1:1/none"); err == nil {
		t.Error("a database that is not there was counted")
	}
}
