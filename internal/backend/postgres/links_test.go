package postgres_test

import (
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"curt/internal/backend/postgres"
	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/testkit"
)

// databases opens stores, each in a database of its own, and remembers which, for second
// handles.
type databases struct {
	server *testkit.Postgres
	front  *testkit.Postgres // what the stores connect to: the server, or a pooler before it
	urls   sync.Map          // by store
}

// template is the database that all others are copied from: it has the schema.
const template = "template_curt"

func newDatabases(t *testing.T) *databases {
	t.Helper()
	d := &databases{server: testkit.StartPostgres(t, testkit.PostgresConfig{})}
	d.front = d.server
	schema(t, d.server)
	return d
}

// schema makes the template of a server's databases.
func schema(t *testing.T, server *testkit.Postgres) {
	t.Helper()
	server.Exec(t, "CREATE DATABASE "+template)
	s, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: server.URL(template)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func (d *databases) open(t testing.TB, url string) *postgres.Links {
	t.Helper()
	s, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: url, Readers: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	d.urls.Store(s, url)
	return s
}

func (d *databases) fresh(t testing.TB) *postgres.Links {
	return d.open(t, d.front.URL(d.server.Copy(t, template)))
}

func (d *databases) again(t testing.TB, s any) *postgres.Links {
	url, _ := d.urls.Load(s)
	return d.open(t, url.(string))
}

func (d *databases) links(t testing.TB) linktest.Harness {
	declared := linktest.Declared(t, "../../../docs/backends.md", "postgres://…")
	declared.ManyGetter = true
	return linktest.Harness{
		Open:     func(t testing.TB) link.Store { return d.fresh(t) },
		Again:    func(t testing.TB, s link.Store) link.Store { return d.again(t, s) },
		Features: declared,
	}
}

// pooled runs what would notice that statements of one process end up on many connections
// of the server, and those of many on one: all operations against the model, and many
// callers at once. CURT_TEST_LONG runs the whole suite so.
func pooled(t *testing.T, direct *databases) {
	d := &databases{server: direct.server, front: testkit.StartPgBouncer(t, direct.server)}
	if os.Getenv("CURT_TEST_LONG") != "" {
		linktest.Run(t, d.links(t))
		accountStores(t, d)
		return
	}
	random := rand.New(rand.NewPCG(7, 1))
	script := make([]byte, 1200)
	for i := range script {
		script[i] = byte(random.Uint32())
	}
	t.Run("model", func(t *testing.T) { linktest.ModelRun(t, d.links(t), script) })
	t.Run("changes", func(t *testing.T) { changesInOrder(t, d) })
	t.Run("instances", func(t *testing.T) { instances(t, d) })
}

// TestPostgres runs every suite against one server, which takes longer to start than any
// of them to run.
func TestPostgres(t *testing.T) {
	d := newDatabases(t)
	t.Run("links", func(t *testing.T) { linktest.Run(t, d.links(t)) })
	t.Run("leaser", func(t *testing.T) {
		codegentest.RunLeaser(t,
			func(t *testing.T) codegen.Leaser { return d.fresh(t) },
			func(t *testing.T, l codegen.Leaser) codegen.Leaser { return d.again(t, l) })
	})
	t.Run("snowflake", func(t *testing.T) {
		codegentest.RunSnowflake(t,
			func(t *testing.T) codegen.Leaser { return d.fresh(t) },
			func(t *testing.T, l codegen.Leaser) codegen.Leaser { return d.again(t, l) })
	})
	t.Run("keys", func(t *testing.T) { keyPools(t, d) })
	accountStores(t, d)
	t.Run("roll-ups", func(t *testing.T) { rollups(t, d) })
	t.Run("behind a pooler", func(t *testing.T) { pooled(t, d) })
	for name, prove := range map[string]func(*testing.T, *databases){
		"what cannot be stored is refused alone":       badRows,
		"what the database refuses is refused alone":   refusedRows,
		"a code of ours that is taken":                 countedTaken,
		"changes are numbered in the order of commits": changesInOrder,
		"each process has progress of its own":         instances,
		"followers of a fleet":                         feeds,
		"expired links":                                expires,
		"a day has one key":                            dayKeys,
		"unused keys end with a restore":               restoredKeys,
		"a damaged batch of keys is leaked":            damagedKeys,
		"whoever may hold clicks is known":             senders,
		"a server that forgets is refused":             unfit,
		"a key of codes that was cut is refused":       cutCodeKey,
		"no connections are none":                      noReaders,
		"a database says when it was written last":     written,
		"statements find what they want by an index":   plans,
		"what is missing in a database is told":        missing,
		"a write whose answer is lost is uncertain":    answersLost,
		"connections that fell silent are given up":    fellSilent,
		"reads outlive the connections that they had":  terminated,
		"look-ups never wait for lists":                besideLists,
		"a table that is locked is told":               locked,
	} {
		t.Run(name, func(t *testing.T) { prove(t, d) })
	}
}
