package fill_test

import (
	"io"
	"strings"
	"testing"

	"curt/bench/internal/fill"
	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/searchindex"
	"curt/internal/link"
	"curt/internal/search"
)

// TestBusyIsFoundCountedAndRanked fills a small store twice: the second call uses what
// the first one left.
func TestBusyIsFoundCountedAndRanked(t *testing.T) {
	folder := t.TempDir()
	var b *fill.Busy
	for range 2 {
		var err error
		if b, err = fill.FillBusy(t.Context(), folder, 1_000, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	links, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: folder + "/" + fill.Database})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = links.Close() }() // it was only read
	for i := range b.Count() {
		l, err := links.Get(t.Context(), link.Key{Code: b.Code(i)})
		if err != nil && b.Plain(i) {
			t.Fatalf("link %d: %v", i, err)
		}
		if err == nil && (l.Destination != b.URL(i) || !strings.Contains(l.Destination, "-"+b.Rare(i)+"?")) {
			t.Fatalf("link %d leads to %s, want %s with %s", i, l.Destination, b.URL(i), b.Rare(i))
		}
	}
	index, err := searchindex.Open(t.Context(), searchindex.Config{Path: folder + "/" + fill.Index})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = index.Close() }() // it was only read
	hot, err := links.Get(t.Context(), link.Key{Code: b.Hot})
	if err != nil {
		t.Fatal(err)
	}
	ranks, err := index.Clicks(t.Context(), []link.ID{hot.ID})
	if err != nil || ranks[0] != fill.HotClicks {
		t.Errorf("the hot link has rank %d: %v", ranks, err)
	}
	found, err := index.Find(t.Context(), search.Query{}, search.Page{From: hot.ID, Oldest: true, Limit: 1})
	if err != nil || len(found.Found) != 1 || found.Found[0].ID != hot.ID {
		t.Errorf("the hot link is not in the index: %v, %v", found, err)
	}
}
