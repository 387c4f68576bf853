package counts_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"curt/internal/backend/sqlite/counts"
	"curt/internal/clicks/rollup"
	"curt/internal/clicks/rollup/rolluptest"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

func openRollups(t *testing.T, path string) *counts.Rollups {
	t.Helper()
	s, err := counts.Open(t.Context(), counts.Config{Path: path})
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
	paths := map[rollup.Store]string{}
	rolluptest.Run(t, rolluptest.Harness{
		Open: func(t *testing.T) rollup.Store {
			path := filepath.Join(t.TempDir(), "clicks.db")
			s := openRollups(t, path)
			paths[s] = path
			return s
		},
		Again: func(t *testing.T, s rollup.Store) rollup.Store {
			if err := s.(*counts.Rollups).Close(); err != nil {
				t.Fatal(err)
			}
			return openRollups(t, paths[s])
		},
	})
}

// A column that cannot be read costs that row of statistics alone: the batch is counted.
func TestRollupsADamagedColumnCostsItself(t *testing.T) {
	quarter := rollup.BucketAt(rollup.Quarter, linktest.Epoch())
	batch := func(generation uint64) rollup.Batch {
		var deltas []rollup.LinkDelta
		for _, code := range []link.Code{"a", "b"} {
			c := rollup.Counts{Clicks: 3, Humans: 2}
			r := &rollup.Rollup{Counts: c}
			r.Visitors.Add([]uint64{7})
			deltas = append(deltas, rollup.LinkDelta{Key: link.Key{Code: code}, Total: rollup.Total{Counts: c}, Buckets: []rollup.BucketDelta{{Bucket: quarter, Rollup: r}}})
		}
		return rollup.Batch{State: rollup.State{Generation: generation}, Links: slices.Values([][]rollup.LinkDelta{deltas})}
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
		got, err := s.Read(t.Context(), link.Key{Code: "a"}, rollup.WantVisitors, rollup.Span{Granularity: rollup.Quarter, First: quarter.Ordinal, Last: quarter.Ordinal})
		if err != nil || len(got.Rows) != 1 || got.Rows[0].Rollup.Clicks != 6 {
			t.Errorf("%s was damaged: %+v, %v", column, got, err)
		}
	}
}
