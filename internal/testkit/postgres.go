package testkit

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Postgres is one PostgreSQL server of a test, with databases for each part of it. It
// is safe for many goroutines.
type Postgres struct {
	Dir string // its files
	Pid int    // of the server

	address string
	service *service
	made    atomic.Int64
}

// PostgresConfig says how a server runs. The zero value is right for all but tests of
// durability.
type PostgresConfig struct {
	Fsync bool // off, a test takes a fraction of the time, and a power cut everything
	Own   bool // has a system identifier that no other server has, by which these are told apart
}

// StartPostgres starts a server that ends with the test, with Fsync or on its Own.
func StartPostgres(t testing.TB, config PostgresConfig) *Postgres {
	t.Helper()
	fsync := "off"
	switch {
	case config.Fsync:
		fsync = "on"
	case config.Own:
		fsync = "own"
	}
	return begin(t, "postgres", fsync)
}

// StartPgBouncer puts PgBouncer in transaction mode before a server. What it returns has
// the databases of the server, and their URLs lead through the pooler.
func StartPgBouncer(t testing.TB, server *Postgres) *Postgres {
	t.Helper()
	return begin(t, "pgbouncer", server.port(t))
}

// StartStandby starts a synchronous standby of a server: from now on a commit waits for
// both.
func StartStandby(t testing.TB, server *Postgres) *Postgres {
	t.Helper()
	return begin(t, "standby", server.port(t))
}

func (p *Postgres) port(t testing.TB) string {
	t.Helper()
	_, port, err := net.SplitHostPort(p.address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Promote makes a standby the primary, and returns when it takes writes.
func (p *Postgres) Promote(t testing.TB) {
	t.Helper()
	p.Exec(t, "SELECT pg_promote(true, 180)")
}

// begin starts a service in a folder that goes with it. The folder is not t.TempDir's,
// where the user that the service runs as may not go.
func begin(t testing.TB, service, how string) *Postgres {
	t.Helper()
	dir, port := filepath.Join(os.TempDir(), "curt-"+service+"-"+rand.Text()), FreePort(t)
	p := &Postgres{address: net.JoinHostPort("127.0.0.1", port)}
	p.service, p.Dir = launch(t, service, dir, port, how)(), dir
	p.Pid = p.service.Pid
	return p
}

// Again starts a server that has ended once more, on its data, and returns when it takes
// connections.
func (p *Postgres) Again(t testing.TB) {
	t.Helper()
	p.service.Again(t)
	p.Pid = p.service.Pid
}

// URL returns what a client connects to a database with.
func (p *Postgres) URL(database string) string { return p.URLs(database) }

// URLs returns what a client connects to a database with that one of several servers has.
func (p *Postgres) URLs(database string, others ...*Postgres) string {
	hosts := []string{p.address}
	for _, o := range others {
		hosts = append(hosts, o.address)
	}
	return (&url.URL{Scheme: "postgres", User: url.User("curt"), Host: strings.Join(hosts, ","), Path: "/" + database, RawQuery: "sslmode=disable"}).String()
}

// Database makes an empty database and returns its URL.
func (p *Postgres) Database(t testing.TB) string { return p.URL(p.Copy(t, "template1")) }

// Copy makes a database that holds what another one does, which nobody may be using,
// and returns its name. It takes about 30 ms where migrations would take several times
// that.
func (p *Postgres) Copy(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", p.made.Add(1))
	p.Exec(t, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy", pgx.Identifier{name}.Sanitize(), pgx.Identifier{template}.Sanitize()))
	return name
}

// Exec runs a statement as the owner of the server.
func (p *Postgres) Exec(t testing.TB, statement string) {
	t.Helper()
	p.ExecIn(t, "postgres", statement)
}

// ExecIn is Exec in a database.
func (p *Postgres) ExecIn(t testing.TB, database, statement string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // clean-up uses it too
	c, err := pgx.Connect(ctx, p.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	if _, err := c.Exec(ctx, statement); err != nil {
		t.Fatal(err)
	}
}

// AwaitNoServer waits until no server of curt is connected to a database: PostgreSQL shows one that has ended until it has
// noticed.
func AwaitNoServer(t testing.TB, url string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	until(t, "the end of all connections of servers", func() bool {
		connected := 0
		if err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'curt/%'").Scan(&connected); err != nil {
			t.Fatal(err)
		}
		return connected == 0
	})
}
