package postgres_test

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // to read unused keys

	"curt.example/client"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/codegen/keypool"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// pooled are the settings of servers with a pool of keys.
func pooled() []string { return []string{"CURT_CODES=pool", "CURT_LIMITS=default=off"} }

// left is what stores had that links were moved from: it stays there, and must never be seen again.
type left struct {
	codes   map[string]bool // of links, and of keys that were generated ahead
	aliases []string        // that were reserved
}

// leave creates links at a server out of its pool, and has a workspace reserve an alias there.
func (l *left) leave(t *testing.T, n node, alias string) {
	t.Helper()
	figure(t, n.Server, "curt_key_pool_keys", func(v float64) bool { return v >= 50_000 })
	figure(t, n.Server, "curt_keys_in_memory", func(v float64) bool { return v > 5_000 })
	createMany(t, n.api, 1, l.codes)
	holder, _ := member(t, n, "acme")
	if r, err := holder.Aliases.Reserve(t.Context(), alias, ""); err != nil || r.ExpiresIn < 200 {
		t.Fatalf("reserve %s: %+v, %v", alias, r, err)
	}
	l.aliases = append(l.aliases, alias)
}

// generated notes batches of keys as a store has them.
func (l *left) generated(t *testing.T, batches []string) {
	t.Helper()
	n := 0
	for _, text := range batches {
		if text == "" {
			continue // a batch that has ended
		}
		keys, err := keypool.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			l.codes[string(k)] = true
		}
		n += len(keys)
	}
	if n < 50_000 {
		t.Fatalf("%d keys were generated ahead: this shows nothing", n)
	}
}

const sqlBatches = `SELECT keys FROM unused_keys UNION ALL SELECT keys FROM used_keys`

// ofFolder are the batches of a folder whose server has ended.
func ofFolder(t *testing.T, data string) (all []string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(data, "curt.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it was read
	rows, err := db.QueryContext(t.Context(), sqlBatches)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // as above
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// ofDatabase are the batches of a database.
func ofDatabase(t *testing.T, url string) []string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context()) //nolint:errcheck // it was read
	rows, err := c.Query(t.Context(), sqlBatches)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ofTables are the unused batches of tables.
func ofTables(t *testing.T, url string) (all []string) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	at, err := ddb.ParseAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	db, err := ddb.Open(t.Context(), at, ddb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for in := (&dynamodb.ScanInput{TableName: &db.State}); ; {
		items, next, err := db.Scan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			if strings.HasPrefix(ddb.TextOf(item, ddb.Partition), "unused-keys#") {
				all = append(all, ddb.TextOf(item, "value"))
			}
		}
		if in.ExclusiveStartKey = next; next == nil {
			return all
		}
	}
}

// check holds a server of the store that links were moved to against what stayed behind: no code comes again, and
// reserved aliases are free.
func (l *left) check(t *testing.T, n node) {
	t.Helper()
	figure(t, n.Server, "curt_keys_in_memory", func(v float64) bool { return v > 5_000 })
	createMany(t, n.api, 2, l.codes)
	other, _ := member(t, n, "rival")
	alias := l.aliases[len(l.aliases)-1]
	if got, _ := n.answers(t, "/"+alias); got != http.StatusNotFound {
		t.Errorf("a visitor of %s, which was reserved, is answered %d", alias, got)
	}
	if a, err := other.CheckAlias(t.Context(), alias, ""); err != nil || a.State != "free" {
		t.Errorf("%s, which was reserved, is %+v, %v", alias, a, err)
	}
	if _, err := other.Create(t.Context(), client.NewLink{LongURL: "https://example.com/", CustomAlias: alias}); err != nil {
		t.Errorf("a create of %s, which was reserved: %v", alias, err)
	}
	if got, _ := n.answers(t, "/"+alias); got != http.StatusFound {
		t.Errorf("a visitor of %s, by now a link, is answered %d", alias, got)
	}
}

// notExported fails if an export of a database or a table has a reserved alias.
func (l *left) notExported(t *testing.T, url string, links int) {
	t.Helper()
	all := rows(t, "--from="+url)
	alias := l.aliases[len(l.aliases)-1]
	if len(all) != links || strings.Contains(strings.Join(all, ""), `"`+alias+`"`) {
		t.Errorf("%d links are exported, want %d without %s", len(all), links, alias)
	}
}

// TestReservationsAndKeysOfAFolderStayBehind: a folder whose server was killed moves to PostgreSQL, and from there to
// another folder. Neither a reservation nor keys that were generated ahead come along, and neither is in the way.
func TestReservationsAndKeysOfAFolderStayBehind(t *testing.T) {
	testkit.Faults(t)
	l := &left{codes: map[string]bool{}}
	data := t.TempDir()
	old := node{Server: curttest.Start(t, curttest.Options{Data: data, Env: pooled()})}
	old.api = as(t, old, curttest.Key)
	l.leave(t, old, "held-in-a-folder")
	old.Kill()
	l.generated(t, ofFolder(t, data))
	url := database(t)
	if m := beginMove(t, data, url); m.wait(t) != 0 {
		t.Fatalf("curt move: %s", m.errs.String())
	}
	fleet := begin(t, 1, url, append(pooled(), "CURT_ANALYTICS="+url)...)[0]
	l.check(t, fleet)

	l.leave(t, fleet, "held-in-postgresql")
	l.notExported(t, url, 4001)
	if code, _ := fleet.Terminate(t); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	testkit.AwaitNoServer(t, url)
	l.generated(t, ofDatabase(t, url))
	data = filepath.Join(t.TempDir(), "new")
	if m := beginMover(t, "--data="+data, "--from="+url); m.wait(t) != 0 {
		t.Fatalf("curt move: %s", m.errs.String())
	}
	back := node{Server: curttest.Start(t, curttest.Options{Data: data, Env: pooled()})}
	back.api = as(t, back, curttest.Key)
	l.check(t, back)
}

// TestReservationsAndKeysStayBehindBetweenStores: as for a folder, from PostgreSQL to DynamoDB and from there to another
// database, while servers run.
func TestReservationsAndKeysStayBehindBetweenStores(t *testing.T) {
	testkit.Faults(t)
	l := &left{codes: map[string]bool{}}
	url := database(t)
	old := begin(t, 1, url, append(pooled(), "CURT_ANALYTICS="+url)...)[0]
	l.leave(t, old, "held-in-postgresql")
	l.notExported(t, url, 1000)
	tables := freshTables(t)
	move := func(from, to string) {
		t.Helper()
		if m := beginMover(t, "--from="+from, "--to="+to); m.wait(t) != 0 {
			t.Fatalf("curt move: %s", m.errs.String())
		}
	}
	move(url, tables)
	l.generated(t, ofDatabase(t, url))
	between := overTables(t, 1, tables, url, pooled()...)[0]
	l.check(t, between)

	l.leave(t, between, "held-in-dynamodb")
	l.notExported(t, tables, 4001)
	l.generated(t, ofTables(t, tables))
	other := database(t)
	move(tables, other)
	fleet := begin(t, 1, other, append(pooled(), "CURT_ACCOUNTS="+url, "CURT_ANALYTICS="+url)...)[0]
	l.check(t, fleet)
}

// TestARestoredPoolIsVoid: after a restore no key that was unused in the backup is used again, as links that were lost may
// have had it, and a reservation of the backup is none but to its holder. A server on a copy that nobody told of the restore is
// the control: it issues codes again.
func TestARestoredPoolIsVoid(t *testing.T) {
	testkit.Faults(t)
	server := testkit.StartPostgres(t, testkit.PostgresConfig{})
	url := server.Database(t)
	env := append(pooled(), "CURT_ANALYTICS="+server.Database(t))
	l := &left{codes: map[string]bool{}}
	n := begin(t, 1, url, env...)[0]
	l.leave(t, n, "held")
	_, key := member(t, n, "acme")
	if code, _ := n.Terminate(t); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	name := url[strings.LastIndexByte(url, '/')+1 : strings.IndexByte(url, '?')]
	backup, unaware := server.URL(server.Copy(t, name)), server.URL(server.Copy(t, name))
	n = begin(t, 1, url, env...)[0]
	createMany(t, n.api, 2, l.codes) // lost
	n.Terminate(t)

	control := begin(t, 1, unaware, env...)[0]
	twice := 0
	for _, c := range control.MustCreate(t, 200) {
		if l.codes[c.Code] {
			twice++
		}
	}
	if twice == 0 {
		t.Error("a server that knows nothing of the restore issues no code again: there is nothing to void")
	}
	if said, code := curt(t, []string{"CURT_LINKS=" + backup}, "migrate", "--restored"); code != 0 || !strings.Contains(said, "skipped codes") {
		t.Fatalf("migrate --restored: code %d, %s", code, said)
	}
	restored := begin(t, 1, backup, env...)[0]
	figure(t, restored.Server, "curt_keys_in_memory", func(v float64) bool { return v > 5_000 })
	createMany(t, restored.api, 2, l.codes)
	if got, _ := restored.answers(t, "/held"); got != http.StatusNotFound {
		t.Errorf("a visitor of a reserved alias is answered %d", got)
	}
	other, _ := member(t, restored, "rival")
	if a, err := other.CheckAlias(t.Context(), "held", ""); err != nil || a.State != "reserved" {
		t.Errorf("the reserved alias is %+v, %v", a, err)
	}
	if _, err := as(t, restored, key.Secret).Create(t.Context(), client.NewLink{LongURL: "https://example.com/", CustomAlias: "held"}); err != nil {
		t.Errorf("a create by its holder: %v", err)
	}
}
