package movedata

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/backend/coldsql"
	"curt/internal/backend/dynamodb"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/postgres"
	pgaccounts "curt/internal/backend/postgres/accounts"
	"curt/internal/backend/sqlite"
	"curt/internal/cli"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/testkit"
)

// ran runs a command and returns what it printed for people.
func ran(t *testing.T, run func(context.Context, cli.Terminal) error) (said string, err error) {
	t.Helper()
	var errs bytes.Buffer
	err = run(t.Context(), cli.Terminal{In: strings.NewReader(""), Out: t.Output(), Err: &errs})
	return errs.String(), err
}

// refused fails unless a move is refused by one line that says why.
func refused(t *testing.T, what, why string, m *Move) {
	t.Helper()
	_, err := ran(t, m.Run)
	if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "\n") ||
		errors.Is(err, link.ErrUncertain) || errors.Is(err, link.ErrUnavailable) {
		t.Errorf("%s: %v, want a line with %q", what, err, why)
	}
}

func moved(t *testing.T, m *Move) {
	t.Helper()
	if _, err := ran(t, m.Run); err != nil {
		t.Fatal(err)
	}
}

// stores are services in which databases and tables are made.
type stores struct {
	pg  *testkit.Postgres
	ddb *testkit.DynamoDB
}

func startStores(t *testing.T) stores {
	t.Helper()
	return stores{testkit.StartPostgres(t, testkit.PostgresConfig{}), testkit.StartDynamoDB(t, false)}
}

// tables returns the URL of empty tables.
func (s stores) tables(t *testing.T, name string) string {
	t.Helper()
	url := s.ddb.URL(name)
	if _, err := dynamodb.Migrate(t.Context(), address(t, url), false); err != nil {
		t.Fatal(err)
	}
	return url
}

func address(t *testing.T, url string) ddb.Address {
	t.Helper()
	at, err := ddb.ParseAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// linkStore is what servers have open.
type linkStore interface {
	Create(ctx context.Context, l link.Link) (link.Link, error)
	Get(ctx context.Context, k link.Key) (link.Link, error)
	CodeKey(ctx context.Context) ([32]byte, error)
	Lease(ctx context.Context, counter string, n uint64) (uint64, error)
	Close() error
}

func open(t *testing.T, url string) (linkStore, error) {
	t.Helper()
	if strings.HasPrefix(url, ddb.Scheme) {
		return dynamodb.OpenLinks(t.Context(), dynamodb.Config{Address: address(t, url), Instance: "a server"})
	}
	return postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: url})
}

// serve is a server that makes links of a workspace and ends, with its accounts elsewhere.
func serve(t *testing.T, url, accounts string, codes ...link.Code) {
	t.Helper()
	s, err := open(t, url)
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range codes {
		n := 0 // of the id
		for _, b := range []byte(code) {
			n = (31*n + int(b)) % 9973
		}
		l := linktest.Chosen(n, code)
		l.Workspace = "team"
		if _, err := s.Create(t.Context(), l); err != nil {
			t.Error(err)
		}
	}
	if accounts != "" {
		keep(t, s, accounts)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(url, ddb.Scheme) {
		testkit.AwaitNoServer(t, url)
	}
}

// keep makes a key in a database of accounts.
func keep(t *testing.T, s linkStore, url string) {
	t.Helper()
	key, err := s.CodeKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := pgaccounts.Open(t.Context(), pgaccounts.Config{URL: url, Of: coldsql.Of(key), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if l, is := s.(*postgres.Links); is {
		err = coldsql.Part(t.Context(), l.Accounts().Accounts, a.Accounts.Accounts, coldsql.Of(key))
	} else {
		err = a.Belong(t.Context(), coldsql.Of(key))
	}
	if err == nil {
		_, err = a.Keys().Create(t.Context(), auth.Key{ID: link.ID{15: 1}, Workspace: "acme", Name: "kept", Created: time.UnixMilli(1)}, "", auth.SumOf("a secret"))
	}
	if errors.Is(err, link.ErrExists) { // of an earlier server
		err = nil
	}
	if err = errors.Join(err, a.Close()); err != nil {
		t.Fatal(err)
	}
}

// folderHas fails unless a folder has links and the key of keep.
func folderHas(t *testing.T, data string, codes ...link.Code) {
	t.Helper()
	l, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: filepath.Join(data, "curt.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // only read
	for _, code := range codes {
		if _, err := l.Get(t.Context(), link.Key{Code: code}); err != nil {
			t.Errorf("link %s: %v", code, err)
		}
	}
	if k, err := l.Accounts().Keys().Find(t.Context(), auth.SumOf("a secret")); err != nil || k.Key.Workspace != "acme" {
		t.Errorf("the key of another workspace: %+v, %v", k.Key, err)
	}
}

// respelled is the URL of the same store with another text.
func respelled(url string) string {
	switch {
	case strings.HasPrefix(url, ddb.Scheme):
		return url + "&tags=a:b"
	case strings.Contains(url, "?"):
		return url + "&application_name=another"
	}
	return url + "?application_name=another"
}

// TestAStoreIsNotMovedOntoItself: however its URL is spelled, and also where it was a target before. What happened
// there since would be undone.
func TestAStoreIsNotMovedOntoItself(t *testing.T) {
	testkit.Faults(t)
	s := startStores(t)
	a, b, c := s.pg.Database(t), s.tables(t, "one"), s.pg.Database(t)
	accounts := s.pg.Database(t)
	serve(t, a, accounts, "first")
	const same = "the same store"
	refused(t, "a database onto itself", same, &Move{From: a, To: a})
	refused(t, "a database onto itself, spelled otherwise", same, &Move{From: a, To: respelled(a)})
	moved(t, &Move{From: a, To: b})
	moved(t, &Move{From: a, To: b}) // of an interrupted run: nothing is left to do
	refused(t, "a target that servers may write to", same, &Move{From: b, To: respelled(b)})
	refused(t, "a move to another store from where the links are no more", "were moved to", &Move{From: a, To: c})
	serve(t, b, accounts, "second")
	refused(t, "back to where the links were moved from", "were moved to", &Move{From: b, To: a})
	moved(t, &Move{From: b, To: c})
	serve(t, c, accounts, "third")
	refused(t, "a target once more, behind its servers", same, &Move{From: c, To: respelled(c)})
	folder := filepath.Join(t.TempDir(), "new")
	refused(t, "back from where the links are no more", "were moved to", &Move{dataFolder: dataFolder{folder}, From: b, Accounts: accounts})
	moved(t, &Move{dataFolder: dataFolder{folder}, From: c, Accounts: accounts})
	folderHas(t, folder, "first", "second", "third")
}

// TestAMoveBackNeedsTheAccountsOfTheLinks: from PostgreSQL and from DynamoDB. They are neither lost nor another's.
func TestAMoveBackNeedsTheAccountsOfTheLinks(t *testing.T) {
	testkit.Faults(t)
	s := startStores(t)
	for name, url := range map[string]string{"PostgreSQL": s.pg.Database(t), "DynamoDB": s.tables(t, "mine")} {
		accounts, others, none := s.pg.Database(t), s.pg.Database(t), s.pg.Database(t)
		serve(t, url, accounts, "here", "there")
		serve(t, s.pg.Database(t), others, "theirs")
		serve(t, none, "")
		data := filepath.Join(t.TempDir(), "new")
		back := func(accounts string) *Move { return &Move{dataFolder: dataFolder{data}, From: url, Accounts: accounts} }
		if name == "PostgreSQL" {
			refused(t, "without accounts", "pass it with --accounts", back(""))
		}
		refused(t, name+" with the accounts of others", coldsql.ErrForeign.Error(), back(others))
		refused(t, name+" with a database that has none", coldsql.ErrNone.Error(), back(none))
		if _, err := os.Stat(data); err == nil {
			t.Errorf("%s: there is a folder although nothing was moved", name)
		}
		moved(t, back(accounts))
		folderHas(t, data, "here", "there")
		if _, err := open(t, url); err == nil || !strings.Contains(err.Error(), "were moved") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: a server starts where the links are no more: %v", name, err)
		}
		refused(t, name+" once more", "were moved to", &Move{dataFolder: dataFolder{data + "2"}, From: url, Accounts: accounts})
	}
}

// TestARefusedMoveLeavesNoMark: what would have taken accounts or links can still take others, and so can tables and
// a database whose first server did not come further than its key of codes.
func TestARefusedMoveLeavesNoMark(t *testing.T) {
	testkit.Faults(t)
	s := startStores(t)
	data := t.TempDir()
	l, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: filepath.Join(data, "curt.db")})
	if err == nil {
		_, err = l.Create(t.Context(), linktest.Chosen(1, "mine"))
		err = errors.Join(err, l.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	used, fresh := s.tables(t, "used"), s.pg.Database(t)
	serve(t, used, s.pg.Database(t), "theirs")
	to := func(url string) *Move {
		return &Move{dataFolder: dataFolder{data}, To: url, Accounts: fresh, LeaveStatistics: true}
	}
	refused(t, "used tables", "have links already", to(used))
	running := s.tables(t, "running")
	server, err := open(t, running)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "tables with a server", "have links already", to(running))
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, "tables without links", "has no links", &Move{From: s.tables(t, "empty"), To: s.pg.Database(t)})
	database := s.pg.Database(t)
	serve(t, database, "")
	moved(t, &Move{From: used, To: database}) // that has a key of codes alone, of a server that ended
	moved(t, to(running))
	restarted, err := open(t, running)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := restarted.Get(t.Context(), link.Key{Code: "mine"}); err != nil {
		t.Error(err)
	}
	if err := restarted.Close(); err != nil {
		t.Error(err)
	}
}

// TestAMoveOfStoresThatAreNotThereIsRefused by a line, whichever of both it is.
func TestAMoveOfStoresThatAreNotThereIsRefused(t *testing.T) {
	testkit.Faults(t)
	s := startStores(t)
	there, tables := s.pg.Database(t), s.tables(t, "there")
	serve(t, there, "", "a")
	serve(t, tables, "", "a")
	refused(t, "tables that are not there", "missing", &Move{From: s.ddb.URL("nosuch"), To: s.pg.Database(t)})
	refused(t, "to tables that are not there", "missing", &Move{From: there, To: s.ddb.URL("nosuch")})
	gone := strings.Replace(there, "/"+there[strings.LastIndex(there, "/")+1:], "/nosuch", 1)
	refused(t, "a database that is not there", "nosuch", &Move{From: gone, To: tables})
	refused(t, "to a database that is not there", "nosuch", &Move{From: tables, To: gone})
}

// TestAnImportSaysWhatItWrote: rows that are there already are not made, and one that is there with other content is a
// conflict.
func TestAnImportSaysWhatItWrote(t *testing.T) {
	testkit.Faults(t)
	s := startStores(t)
	from, file := s.pg.Database(t), filepath.Join(t.TempDir(), "links.jsonl")
	serve(t, from, "", "one", "two", "three")
	if _, err := ran(t, (&Export{What: "links", From: from, Output: file}).Run); err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, into := range map[string]Import{
		"a folder": {Data: t.TempDir()}, "PostgreSQL": {To: s.pg.Database(t)}, "DynamoDB": {To: s.tables(t, "into"), Accounts: s.pg.Database(t)},
	} {
		put := func(text, want string, failed bool) {
			t.Helper()
			into.File = filepath.Join(t.TempDir(), "rows.jsonl")
			into.Results, into.Format = into.File+".results.jsonl", "auto"
			if err := os.WriteFile(into.File, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			said, err := ran(t, into.Run)
			if (err != nil) != failed || !strings.Contains(said, want) {
				t.Errorf("%s: %v, %q, want %q", name, err, said, want)
			}
			if results, _ := os.ReadFile(into.Results); failed != strings.Contains(string(results), "conflict") {
				t.Errorf("%s: the results are %s", name, results)
			}
		}
		put(string(rows), "3 made, 0 failed;", false)
		put(string(rows), "0 made, 0 failed, 3 there already", false)
		first, rest, _ := strings.Cut(string(rows), "\n")
		put(strings.Replace(first, `"version":1`, `"version":5`, 1)+"\n"+rest, "0 made, 1 failed, 2 there already", true)
		at := strings.Index(first, `"long_url":"`) + len(`"long_url":"https://`)
		put(first[:at]+"elsewhere."+first[at:]+"\n"+rest, "0 made, 1 failed, 2 there already", true)
	}
}
