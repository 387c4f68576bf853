package sqlitedb_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"curt/internal/backend/sqlite/sqlitedb"
)

func TestFirstIdleReaderIsLent(t *testing.T) {
	nothing := func() {}
	s, err := sqlitedb.OpenStore(t.Context(), sqlitedb.StoreConfig{
		Path: filepath.Join(t.TempDir(), "curt.db"), Synchronous: "FULL", Readers: 4, ListReaders: 1, ReaderCacheKiB: 1024, WriterCacheKiB: 1024,
		BeforeCommit: func(*sqlitedb.Tx) error { return nil }, Committed: nothing, RolledBack: nothing, Checkpointing: nothing,
		Checkpointed: func(context.Context) error { return nil }, Emptied: func() error { return nil },
		Folder: ".", Migrations: fstest.MapFS{"00001_one.sql": {Data: []byte("-- +goose Up\nCREATE TABLE one (n INTEGER) STRICT;\n")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	caches, again, err := s.ReaderCaches()
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{-1024, -1024, -256, -256}; !slices.Equal(caches, want) {
		t.Errorf("page caches of the readers in the order of lending: %d, want %d", caches, want)
	}
	// Two were given back, the first one first: the first is lent all the same.
	if want := int64(-1024); again != want {
		t.Errorf("the reader that is lent next has a cache of %d, want that of the first, %d", again, want)
	}
}
