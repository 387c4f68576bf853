package postgres_test

import (
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
	urls   sync.Map // by store
}

// template is the database that all others are copied from: it has the schema.
const template = "template_curt"

func newDatabases(t *testing.T) *databases {
	t.Helper()
	d := &databases{server: testkit.StartPostgres(t, testkit.PostgresConfig{})}
	d.server.Exec(t, "CREATE DATABASE "+template)
	s, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: d.server.URL(template)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return d
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

func (d *databases) fresh(t testing.TB) *postgres.Links { return d.open(t, d.server.Copy(t, template)) }

func (d *databases) again(t testing.TB, s any) *postgres.Links {
	url, _ := d.urls.Load(s)
	return d.open(t, url.(string))
}

func (d *databases) links() linktest.Harness {
	return linktest.Harness{
		Open:     func(t testing.TB) link.Store { return d.fresh(t) },
		Again:    func(t testing.TB, s link.Store) link.Store { return d.again(t, s) },
		Features: linktest.PostgreSQL().Features,
	}
}

// TestPostgres runs every suite against one server, which takes longer to start than any
// of them to run.
func TestPostgres(t *testing.T) {
	d := newDatabases(t)
	t.Run("links", func(t *testing.T) { linktest.Run(t, d.links()) })
	t.Run("leaser", func(t *testing.T) {
		codegentest.RunLeaser(t,
			func(t *testing.T) codegen.Leaser { return d.fresh(t) },
			func(t *testing.T, l codegen.Leaser) codegen.Leaser { return d.again(t, l) })
	})
	accounts(t, d)
	for name, prove := range map[string]func(*testing.T, *databases){
		"what cannot be stored is refused alone":       badRows,
		"changes are numbered in the order of commits": changesInOrder,
		"one process at a time where that is wanted":   holders,
		"a day has one key":                            dayKeys,
		"a server that forgets is refused":             unfit,
		"statements find what they want by an index":   plans,
	} {
		t.Run(name, func(t *testing.T) { prove(t, d) })
	}
}
