package postgres_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres"
	"curt/internal/codegen"
	"curt/internal/codegen/keypool"
	"curt/internal/codegen/keypool/keypooltest"
	"curt/internal/link"
)

// keyPools proves pools of keys, and both sides of them.
func keyPools(t *testing.T, d *databases) {
	var opened sync.Map // of each store, the links beside it
	beside := func(l *postgres.Links) keypool.Store {
		s := l.Keys()
		opened.Store(s, l)
		return s
	}
	keypooltest.Run(t,
		func(t *testing.T) keypool.Store { return beside(d.fresh(t)) },
		func(t *testing.T, s keypool.Store) keypool.Store {
			l, _ := opened.Load(s)
			return beside(d.again(t, l))
		})
	stores := func(l *postgres.Links) keypooltest.Stores { return keypooltest.Stores{Keys: l.Keys(), Leases: l} }
	keypooltest.RunPool(t,
		func(t *testing.T) keypooltest.Stores { return stores(d.fresh(t)) },
		func(t *testing.T, s keypooltest.Stores) keypooltest.Stores { return stores(d.again(t, s.Leases)) })
}

// restoredKeys: in a database that was restored, and whose leases were moved on, no key of before is taken.
func restoredKeys(t *testing.T, d *databases) {
	l := d.fresh(t)
	url, _ := d.urls.Load(l)
	keys := l.Keys()
	if err := keys.Put(t.Context(), "codes-7", []link.Code{"aaaaaaa", "bbbbbbb"}); err != nil {
		t.Fatal(err)
	}
	if _, err := codegen.SkipRestored(t.Context(), l, time.Now()); err != nil {
		t.Fatal(err)
	}
	if b, err := keys.Take(t.Context(), "codes-7", "a"); !errors.Is(err, keypool.ErrEmpty) {
		t.Errorf("took %+v, %v", b, err)
	}
	if level, err := keys.Level(t.Context(), "codes-7"); err != nil || level != (keypool.Level{}) {
		t.Errorf("level %+v, %v", level, err)
	}
	if err := keys.Put(t.Context(), "codes-7", []link.Code{"ccccccc"}); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Abandon(t.Context(), "a"); err != nil { // as a server that starts
		t.Fatal(err)
	}
	if b, err := keys.Take(t.Context(), "codes-7", "a"); err != nil || len(b.Keys) != 1 || b.Keys[0] != "ccccccc" {
		t.Errorf("took %+v, %v", b, err)
	}
	c, err := pgx.Connect(t.Context(), url.(string))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	var left int
	if err := c.QueryRow(t.Context(), "SELECT count(*) FROM unused_keys").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d batches of the epoch before are left, %v", left, err)
	}
}

// damagedKeys: a batch whose text was changed is leaked, and the next one is taken.
func damagedKeys(t *testing.T, d *databases) {
	l := d.fresh(t)
	url, _ := d.urls.Load(l)
	keys := l.Keys()
	for _, k := range []link.Code{"aaaaaaa", "bbbbbbb"} {
		if err := keys.Put(t.Context(), "codes-7", []link.Code{k}); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, url.(string), "UPDATE unused_keys SET keys = replace(keys, 'a', 'x')")
	if b, err := keys.Take(t.Context(), "codes-7", "a"); !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("took %+v, %v", b, err)
	}
	if b, err := keys.Take(t.Context(), "codes-7", "a"); err != nil || len(b.Keys) != 1 || b.Keys[0] != "bbbbbbb" {
		t.Errorf("took %+v, %v", b, err)
	}
	if level, err := keys.Level(t.Context(), "codes-7"); err != nil || level != (keypool.Level{Held: 1, Leaked: 1, Taken: 2}) {
		t.Errorf("level %+v, %v", level, err)
	}
}
