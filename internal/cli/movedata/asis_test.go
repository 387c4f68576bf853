package movedata

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/postgres"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/cli"
	"curt/internal/testkit"
)

// Who moves or exports from a database migrates nothing there: one of an earlier schema is refused by a line that says what
// to run, and is as it was.
func TestWhatIsMovedFromIsNotMigrated(t *testing.T) {
	url, house := testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t), testkit.StartClickHouse(t)
	name := house.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // a test's
	number := func(query string) (n int64) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	data := filepath.Join(t.TempDir(), "new")
	back := &Move{dataFolder: dataFolder{data}, From: url, Analytics: house.URL(name)}
	refused := func(what string, want error, run func(context.Context, cli.Terminal) error) {
		t.Helper()
		var out bytes.Buffer
		err := run(t.Context(), cli.Terminal{In: strings.NewReader(""), Out: &out, Err: t.Output()})
		if !errors.Is(err, want) || strings.Contains(err.Error(), "\n") || !strings.HasSuffix(err.Error(), "run curt migrate") || out.Len() > 0 {
			t.Errorf("%s: %v\n%s", what, err, out.String())
		}
		if _, err := os.Stat(data); err == nil {
			t.Errorf("%s: there is a folder", what)
		}
	}
	const (
		newest    = "SELECT max(version_id) FROM goose_db_version"
		relations = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
	)
	all := map[string]func(context.Context, cli.Terminal) error{
		"move":           back.Run,
		"export":         (&Export{What: "links", From: url}).Run,
		"between stores": (&Move{From: url, To: testkit.DynamoDBURL("curt", "http://127.0.0.1:1")}).Run,
	}
	for what, run := range all {
		refused("an empty database, "+what, pgdb.ErrNotMigrated, run)
	}
	if n := number(relations); n != 0 {
		t.Errorf("the empty database has %d relations", n)
	}
	links, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: url})
	if err == nil {
		err = links.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	testkit.AwaitNoServer(t, url)
	refused("an empty database of ClickHouse", clickdb.ErrNotMigrated, back.Run)
	if n := house.Exec(t, "SELECT count() FROM system.tables WHERE database = '"+name+"'"); n != "0" {
		t.Errorf("the empty database of ClickHouse has %s tables", n)
	}
	store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: house.URL(name)})
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	migrations := name + ".migrations"
	house.Exec(t, "DELETE FROM "+migrations+" WHERE version = (SELECT max(version) FROM "+migrations+")")
	tables := house.Exec(t, "SELECT max(version) FROM "+migrations)
	refused("earlier tables of ClickHouse", clickdb.ErrNotMigrated, back.Run)
	if after := house.Exec(t, "SELECT max(version) FROM "+migrations); after != tables {
		t.Errorf("the tables were %s and are %s", tables, after)
	}
	if _, err := conn.Exec(t.Context(), "DELETE FROM goose_db_version WHERE version_id = ("+newest+")"); err != nil {
		t.Fatal(err)
	}
	before := number(newest)
	for what, run := range all {
		refused("an earlier schema, "+what, pgdb.ErrNotMigrated, run)
	}
	if after := number(newest); after != before {
		t.Errorf("the schema was %d and is %d", before, after)
	}
}
