package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/expiry/expirytest"
)

func TestExpiry(t *testing.T) {
	var configs sync.Map // by store
	open := func(t testing.TB, config sqlite.LinksConfig) expirytest.Store {
		s, err := sqlite.OpenLinks(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		configs.Store(s, config)
		return s
	}
	expirytest.Run(t, expirytest.Harness{
		Open: func(t testing.TB) expirytest.Store {
			return open(t, sqlite.LinksConfig{Path: filepath.Join(t.TempDir(), "curt.db")})
		},
		Again: func(t testing.TB, s expirytest.Store) expirytest.Store {
			config, _ := configs.Load(s)
			return open(t, config.(sqlite.LinksConfig))
		},
	})
}
