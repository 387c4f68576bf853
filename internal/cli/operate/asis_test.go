package operate

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/cli"
	"curt/internal/config"
	"curt/internal/settings"
	"curt/internal/testkit"
)

// asIs has a database of links and one of statistics.
type asIs struct {
	config.Config

	house *testkit.ClickHouse
	name  string // of the database there
	conn  *pgx.Conn
}

func newAsIs(t *testing.T) *asIs {
	t.Helper()
	a := &asIs{house: testkit.StartClickHouse(t)}
	a.name = a.house.Database(t)
	a.Links, a.Analytics, a.Events = testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t), a.house.URL(a.name), "kafka://127.0.0.1:1/clicks"
	var err error
	if a.conn, err = pgx.Connect(t.Context(), a.Links); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.conn.Close(context.WithoutCancel(t.Context())) })
	return a
}

func (a *asIs) number(t *testing.T, query string) (n int64) {
	t.Helper()
	if err := a.conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

const (
	newest    = "SELECT max(version_id) FROM goose_db_version"
	relations = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
)

// run is a command, and what it printed.
func run(t *testing.T, command interface {
	Run(context.Context, cli.Terminal) error
},
) (out string, err error) {
	t.Helper()
	var printed bytes.Buffer
	err = command.Run(t.Context(), cli.Terminal{In: strings.NewReader(""), Out: &printed, Err: t.Output()})
	return printed.String(), err
}

// Who looks at clicks, or says that a server is gone, migrates nothing: databases of an earlier schema, or
// without one, are refused by a line that says what to run, and are as they were. What that says helps.
func TestLookingAtClicksMigratesNothing(t *testing.T) {
	a := newAsIs(t)
	flags := config.Flags{Config: a.Config}
	commands := map[string]interface {
		Run(context.Context, cli.Terminal) error
	}{
		"servers": &ListSenders{Flags: flags},
		"forget":  &ForgetSender{Flags: flags, Name: "nobody", Yes: true},
		"verify":  &VerifyClicks{Flags: flags, ofHours: ofHours{Hours: 1}, ofReplica: ofReplica{Replica: 1}},
	}
	refused := func(what string, want error, names ...string) {
		t.Helper()
		for _, name := range names {
			if _, err := run(t, commands[name]); !errors.Is(err, want) || strings.Contains(err.Error(), "\n") || !strings.HasSuffix(err.Error(), "run curt migrate") {
				t.Errorf("%s, curt clicks %s: %v", what, name, err)
			}
		}
	}
	migrate := func(want string) {
		t.Helper()
		only := &Migrate{Flags: flags}
		only.Events = ""
		if done, err := only.migrate(t.Context()); err != nil || !slices.Equal(done, []string{want}) {
			t.Errorf("migrate: %q, %v, want %q", done, err, want)
		}
	}
	refused("empty", pgdb.ErrNotMigrated, "servers", "forget")
	refused("empty", clickdb.ErrNotMigrated, "verify")
	if n := a.number(t, relations); n != 0 {
		t.Errorf("the empty database has %d relations", n)
	}
	if n := a.house.Exec(t, "SELECT count() FROM system.tables WHERE database = '"+a.name+"'"); n != "0" {
		t.Errorf("the empty database of ClickHouse has %s tables", n)
	}
	migrate("the schema of CURT_LINKS was brought up to date")
	refused("empty", clickdb.ErrNotMigrated, "servers", "verify")
	store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: a.Analytics})
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, commands["servers"]); err != nil {
		t.Errorf("servers: %v", err)
	}

	now := a.number(t, newest)
	if _, err := a.conn.Exec(t.Context(), "DELETE FROM goose_db_version WHERE version_id = ("+newest+")"); err != nil {
		t.Fatal(err)
	}
	before := a.number(t, newest)
	refused("an earlier schema", pgdb.ErrNotMigrated, "servers", "forget")
	if after := a.number(t, newest); after != before {
		t.Errorf("the schema was %d and is %d", before, after)
	}
	if _, err := a.conn.Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, true)", now); err != nil {
		t.Fatal(err)
	}
	migrate("the schema of CURT_LINKS is up to date")
	a.house.Exec(t, "DELETE FROM "+a.name+".migrations WHERE version = (SELECT max(version) FROM "+a.name+".migrations)")
	tables := a.house.Exec(t, "SELECT max(version) FROM "+a.name+".migrations")
	refused("earlier tables", clickdb.ErrNotMigrated, "servers", "verify")
	if after := a.house.Exec(t, "SELECT max(version) FROM "+a.name+".migrations"); after != tables {
		t.Errorf("the tables were %s and are %s", tables, after)
	}
	if _, err := run(t, commands["forget"]); err == nil || !strings.Contains(err.Error(), "unknown server") {
		t.Errorf("forget: %v", err)
	}
	if _, err := a.conn.Exec(t.Context(), "INSERT INTO click_senders (folder, host, instance, began) VALUES ('nobody', 'host', 1, 0)"); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, commands["forget"]); err != nil {
		t.Errorf("forget: %v", err)
	}
	all, err := settings.SendersOf(t.Context(), a.Config)
	if err != nil || len(all) != 1 || all[0].Folder != "nobody" || all[0].Forgotten.IsZero() {
		t.Errorf("senders are %+v, %v", all, err)
	}
}
