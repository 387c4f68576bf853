package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/feed/feedtest"
	"curt/internal/link"
)

func TestFeed(t *testing.T) {
	var configs sync.Map // by store
	open := func(t testing.TB, config sqlite.LinksConfig) feedtest.Store {
		s, err := sqlite.OpenLinks(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		configs.Store(s, config)
		return s
	}
	feedtest.Run(t, feedtest.Harness{
		Open: func(t testing.TB, changes int64, bounds link.LogBounds) feedtest.Store {
			return open(t, sqlite.LinksConfig{Path: filepath.Join(t.TempDir(), "curt.db"), ChangeLog: changes, LogBounds: bounds})
		},
		Again: func(t testing.TB, s feedtest.Store) feedtest.Store {
			config, _ := configs.Load(s)
			return open(t, config.(sqlite.LinksConfig))
		},
		Foreign: "999/0",
		Trim: func(t testing.TB, s feedtest.Store) {
			if err := s.(*sqlite.Links).Trim(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	})
}
