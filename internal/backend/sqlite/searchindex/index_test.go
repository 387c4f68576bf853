package searchindex_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"curt/internal/backend/sqlite/searchindex"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/search"
	"curt/internal/search/searchtest"
)

func alias(n int) link.Link {
	l := linktest.Counted(link.Code(fmt.Sprintf("alias-%06d", n)), uint64(n), linktest.Epoch())
	l.CodeKind = link.Chosen
	return l
}

// searchFile opens search.db; small segments, so that a few hundred documents are
// merged as millions are.
func searchFile(t testing.TB, path string) *searchindex.Index {
	t.Helper()
	x, err := searchindex.Open(t.Context(), searchindex.Config{Path: path, SegmentDocs: 600, Log: nil})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return x
}

func TestSearch(t *testing.T) {
	paths := map[search.Index]string{}
	open := func(t testing.TB, path string) search.Index {
		x := searchFile(t, path)
		paths[x] = path
		return x
	}
	searchtest.Run(t, searchtest.Harness{
		Open: func(t testing.TB) search.Index { return open(t, filepath.Join(t.TempDir(), "search.db")) },
		Again: func(t testing.TB, x search.Index) search.Index {
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, paths[x])
		},
	})
}

func TestSearchRanking(t *testing.T) {
	searchtest.RunRanking(t, func(t testing.TB) search.Ranking { return searchFile(t, filepath.Join(t.TempDir(), "search.db")) })
}

// What is new does not have a big segment written again each time, and all the same
// there are few segments in the end.
func TestSearchMergesWhatIsWorthIt(t *testing.T) {
	x := searchFile(t, filepath.Join(t.TempDir(), "search.db"))
	made := 0
	add := func(docs int) {
		t.Helper()
		var b search.Batch
		for range docs {
			l := alias(made)
			made++
			binary.BigEndian.PutUint32(l.ID[12:], uint32(made))
			b.Docs = append(b.Docs, search.NewDocument(&l))
		}
		if err := x.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	add(400) // of 600
	merges := 0
	for range 64 {
		add(1)
		for more := true; more; merges++ {
			var err error
			if more, err = x.Tidy(t.Context(), false); err != nil {
				t.Fatal(err)
			}
		}
		merges-- // the last one had nothing to do
	}
	// 8 of one each, and those once or twice more: not one for each that was added.
	if merges > 64/8+64/16 {
		t.Errorf("%d merges for 64 documents", merges)
	}
	if n := x.Segments(); n > 16 {
		t.Errorf("%d segments", n)
	}
}

// Whatever is damaged, an open succeeds, and a question is answered or refused.
func TestSearchDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "search.db")
	x := searchFile(t, path)
	for n := range 30 {
		var docs []search.Document
		for i := range 40 {
			l := alias(n*40 + i)
			l.ID[14], l.ID[15] = byte(n), byte(i)
			docs = append(docs, search.NewDocument(&l))
		}
		if err := x.Apply(t.Context(), search.Batch{Docs: docs}); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	intact, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	noticed := 0
	for range 120 {
		spoilt := bytes.Clone(intact)
		spoilt[random.IntN(len(spoilt))] ^= 1 << random.IntN(8)
		for _, suffix := range []string{"-wal", "-shm"} {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := searchindex.Open(t.Context(), searchindex.Config{Path: path, SegmentDocs: 600})
		if err != nil {
			noticed++ // a schema that nobody wrote: the operator is told
			continue
		}
		for _, f := range []search.Filter{{Words: []string{"alias"}}, {Workspace: "default"}} {
			if _, err := x.Find(t.Context(), f.Query(linktest.Epoch()), search.Page{Limit: 2000}); err != nil {
				noticed++
				if !errors.Is(err, search.ErrUnavailable) {
					t.Errorf("a damaged page: %v", err)
				}
			}
		}
		if err := x.Reset(t.Context()); err != nil {
			t.Errorf("reset: %v", err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	if noticed == 0 {
		t.Error("no damage was noticed, so nothing was tried")
	}
}
