package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"curt.example/client"
	"curt/internal/testkit"
)

// TestConnectionsAreASetting: a server that has more to ask than it has connections for opens as
// many as it was told, and no more.
func TestConnectionsAreASetting(t *testing.T) {
	t.Parallel()
	server := testkit.StartPostgres(t, testkit.PostgresConfig{})
	for _, tt := range []struct {
		env  []string
		want int
	}{
		{nil, 12},
		{[]string{"CURT_LINKS_CONNECTIONS=6"}, 6},
	} {
		t.Run(fmt.Sprint(tt.want), func(t *testing.T) {
			url := server.Database(t)
			n := begin(t, 1, url, append(tt.env, "CURT_UNKNOWN_LIMIT=off")...)[0]
			c, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
			defer ask(t, n)()
			counter, err := pgx.Connect(t.Context(), url) // within a transaction the answer would stay what it was
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = counter.Close(context.WithoutCancel(t.Context())) }()
			open := 0
			eventually(t, fmt.Sprintf("%d connections", tt.want), func() bool {
				began := time.Now()
				open = connectionsWhileLocked(t, c, counter, tt.want)
				if open <= tt.want || time.Since(began) < patient {
					return open >= tt.want
				}
				// PostgreSQL shows what the server gave up until it has noticed.
				eventually(t, "connections that were given up are gone", func() bool { return connections(t, counter) <= tt.want })
				return false
			})
			if open != tt.want {
				t.Errorf("%d connections, want %d", open, tt.want)
			}
		})
	}
}

// patient is somewhat less than the server waits for an answer before it gives up a connection.
const patient = 1500 * time.Millisecond

// connections returns how many a server has, as PostgreSQL sees it.
func connections(t *testing.T, counter *pgx.Conn) (open int) {
	t.Helper()
	err := counter.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE 'curt/%'`).Scan(&open)
	if err != nil {
		t.Fatal(err)
	}
	return open
}

// connectionsWhileLocked locks the links for less time than the server waits for an answer, so
// that it gives up no connection unless this machine stops, and returns how many it has then, or as soon as they are enough.
func connectionsWhileLocked(t *testing.T, locker, counter *pgx.Conn, enough int) (open int) {
	t.Helper()
	run := func(statement string) {
		if _, err := locker.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	run("BEGIN; LOCK TABLE links IN ACCESS EXCLUSIVE MODE")
	defer run("ROLLBACK")
	for until := time.Now().Add(time.Second); open < enough && time.Now().Before(until); {
		open = connections(t, counter)
	}
	return open
}

// ask keeps all connections of a server to its database busy, until end is called.
func ask(t *testing.T, n node) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var askers sync.WaitGroup
	_, err := n.api.Create(ctx, client.NewLink{LongURL: "https://example.com/", CustomAlias: "asked-for"})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		askers.Go(func() {
			for ctx.Err() == nil {
				_, _ = n.api.Get(ctx, "asked-for") // of a code that was never given away nobody asks the database
			}
		})
		askers.Go(func() {
			for ctx.Err() == nil {
				_, _ = n.api.CreateMany(ctx, []client.NewLink{{LongURL: "https://example.com/a"}, {LongURL: "https://example.com/b"}}) // 503
			}
		})
	}
	return func() { cancel(); askers.Wait() }
}
