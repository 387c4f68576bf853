package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"curt/internal/backend/coldsql/coldjobs"
	"curt/internal/backend/sqlite"
	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
	"curt/internal/codegen/keypool"
	"curt/internal/codegen/keypool/keypooltest"
	"curt/internal/idempotency"
	"curt/internal/idempotency/idempotencytest"
	"curt/internal/job"
	"curt/internal/job/jobtest"
	"curt/internal/joblease"
	"curt/internal/joblease/jobleasetest"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// files opens stores and remembers where they lie, for second handles.
type files struct{ paths sync.Map }

func (f *files) open(t testing.TB, path string) *sqlite.Links {
	t.Helper()
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	f.paths.Store(s, path)
	return s
}

func (f *files) fresh(t testing.TB) *sqlite.Links {
	return f.open(t, filepath.Join(t.TempDir(), "curt.db"))
}

func (f *files) again(t testing.TB, s any) *sqlite.Links {
	path, _ := f.paths.Load(s)
	return f.open(t, path.(string))
}

func links(t testing.TB) linktest.Harness {
	f, declared := new(files), linktest.Declared(t, "../../../docs/backends.md", "sqlite")
	declared.ManyGetter = true
	return linktest.Harness{
		Open:     func(t testing.TB) link.Store { return f.fresh(t) },
		Again:    func(t testing.TB, s link.Store) link.Store { return f.again(t, s) },
		Features: declared,
	}
}

func TestLinks(t *testing.T) { linktest.Run(t, links(t)) }

// FuzzLinks opens its stores without fsync: it looks for wrong answers, and one
// store per script is the cost of a round.
func FuzzLinks(f *testing.F) {
	h := links(f)
	h.Again = nil
	h.Open = func(t testing.TB) link.Store {
		s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{
			Path: filepath.Join(t.TempDir(), "curt.db"), Synchronous: "OFF", Readers: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	linktest.FuzzModel(f, h)
}

func TestSnowflakeOverLinks(t *testing.T) {
	f := new(files)
	codegentest.RunSnowflake(t,
		func(t *testing.T) codegen.Leaser { return f.fresh(t) },
		func(t *testing.T, l codegen.Leaser) codegen.Leaser { return f.again(t, l) })
}

func TestKeyPools(t *testing.T) {
	var opened sync.Map // of each store, the links beside it
	beside := func(l *sqlite.Links) keypool.Store {
		s := l.Keys()
		opened.Store(s, l)
		return s
	}
	f := new(files)
	keypooltest.Run(t,
		func(t *testing.T) keypool.Store { return beside(f.fresh(t)) },
		func(t *testing.T, s keypool.Store) keypool.Store {
			l, _ := opened.Load(s)
			return beside(f.again(t, l))
		})
}

func TestPoolOverLinks(t *testing.T) {
	f := new(files)
	stores := func(l *sqlite.Links) keypooltest.Stores { return keypooltest.Stores{Keys: l.Keys(), Leases: l} }
	keypooltest.RunPool(t,
		func(t *testing.T) keypooltest.Stores { return stores(f.fresh(t)) },
		func(t *testing.T, s keypooltest.Stores) keypooltest.Stores { return stores(f.again(t, s.Leases)) })
}

func TestLinksLeaser(t *testing.T) {
	f := new(files)
	codegentest.RunLeaser(t,
		func(t *testing.T) codegen.Leaser { return f.fresh(t) },
		func(t *testing.T, l codegen.Leaser) codegen.Leaser { return f.again(t, l) })
}

func TestIdempotency(t *testing.T) {
	f := new(files)
	var opened sync.Map // of each store, the links beside it
	beside := func(l *sqlite.Links) idempotency.Store {
		s := l.Accounts().Idempotency()
		opened.Store(s, l)
		return s
	}
	idempotencytest.Run(t, idempotencytest.Harness{
		Open: func(t testing.TB) idempotency.Store { return beside(f.fresh(t)) },
		Again: func(t testing.TB, s idempotency.Store) idempotency.Store {
			l, _ := opened.Load(s)
			return beside(f.again(t, l))
		},
	})
}

func TestJobLeases(t *testing.T) {
	f := new(files)
	jobleasetest.Run(t, func(t testing.TB) [2]joblease.Store {
		l := f.fresh(t)
		return [2]joblease.Store{l.Accounts().JobLeases(), f.again(t, l).Accounts().JobLeases()}
	})
}

func TestJobs(t *testing.T) {
	f := new(files)
	jobtest.Run(t, func(t testing.TB, b job.Bounds) [2]job.Store {
		l := f.fresh(t)
		return [2]job.Store{coldjobs.New(l.Accounts().DB(), b), coldjobs.New(f.again(t, l).Accounts().DB(), b)}
	})
}

func BenchmarkLinks(b *testing.B) { linktest.Bench(b, links(b), countedCodes(b)) }

// countedCodes returns codes as the store's own permutation makes them.
func countedCodes(b testing.TB) func(link.Store) func(uint64) link.Code {
	return func(s link.Store) func(uint64) link.Code {
		key, err := s.(*sqlite.Links).CodeKey(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		p := codegen.NewPermutation(key)
		return func(n uint64) link.Code { return p.Code(7, n) }
	}
}
