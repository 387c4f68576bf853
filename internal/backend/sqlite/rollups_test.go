package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/clicks"
	"curt/internal/clicks/clickstest"
	"curt/internal/link"
	"curt/internal/link/linktest"
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

// A column that cannot be read costs that row of statistics alone: the batch is counted.
func TestRollupsADamagedColumnCostsItself(t *testing.T) {
	quarter := clicks.BucketAt(clicks.Quarter, linktest.Epoch())
	batch := func(generation uint64) clicks.Batch {
		var deltas []clicks.LinkDelta
		for _, code := range []link.Code{"a", "b"} {
			c := clicks.Counts{Clicks: 3, Humans: 2}
			r := &clicks.Rollup{Counts: c}
			r.Visitors.Add([]uint64{7})
			deltas = append(deltas, clicks.LinkDelta{Key: link.Key{Code: code}, Total: clicks.Total{Counts: c}, Buckets: []clicks.BucketDelta{{Bucket: quarter, Rollup: r}}})
		}
		return clicks.Batch{State: clicks.State{Generation: generation}, Links: slices.Values([][]clicks.LinkDelta{deltas})}
	}
	for _, column := range []string{"minutes", "dimensions", "visitors", "minutes = x'fffefd', dimensions"} {
		path := filepath.Join(t.TempDir(), "clicks.db")
		s := openRollups(t, path)
		if err := s.Apply(t.Context(), batch(1)); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.ExecContext(t.Context(), "UPDATE rollups SET "+column+" = x'fffefd'")
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(t.Context(), batch(2)); err != nil {
			t.Errorf("%s is damaged: %v", column, err)
			continue
		}
		totals, _, err := s.Totals(t.Context(), []link.Key{{Code: "a"}, {Code: "b"}})
		if err != nil || totals[0].Clicks != 6 || totals[1].Clicks != 6 {
			t.Errorf("%s is damaged: totals %+v, %v", column, totals, err)
		}
		got, err := s.Read(t.Context(), link.Key{Code: "a"}, clicks.WantVisitors, clicks.Span{Granularity: clicks.Quarter, First: quarter.Ordinal, Last: quarter.Ordinal})
		if err != nil || len(got.Rows) != 1 || got.Rows[0].Rollup.Clicks != 6 {
			t.Errorf("%s was damaged: %+v, %v", column, got, err)
		}
	}
}
