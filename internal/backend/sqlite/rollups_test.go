package sqlite_test

import (
	"path/filepath"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/clicks"
	"curt/internal/clicks/clickstest"
)

func openRollups(t *testing.T, path string) *sqlite.Rollups {
	t.Helper()
	s, err := sqlite.OpenRollups(t.Context(), sqlite.RollupsConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestRollupsConform(t *testing.T) {
	paths := map[clicks.RollupStore]string{}
	clickstest.Run(t, clickstest.Harness{
		Open: func(t *testing.T) clicks.RollupStore {
			path := filepath.Join(t.TempDir(), "clicks.db")
			s := openRollups(t, path)
			paths[s] = path
			return s
		},
		Again: func(t *testing.T, s clicks.RollupStore) clicks.RollupStore {
			if err := s.(*sqlite.Rollups).Close(); err != nil {
				t.Fatal(err)
			}
			return openRollups(t, paths[s])
		},
	})
}
