package backup_test

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/counts"
	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/fold"
	"curt/internal/codegen"
	"curt/internal/link"
)

// folder is a data folder as a server holds it open.
type folder struct {
	data    string
	links   *sqlite.Links
	rollups *counts.Rollups
	log     *clicklog.Log
	codes   *codegen.Range

	made    map[link.Key]link.Link
	clicked uint64
}

func openFolder(t *testing.T, data string) *folder {
	t.Helper()
	f := &folder{data: data, made: map[link.Key]link.Link{}}
	var err error
	if f.links, err = sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: filepath.Join(data, "curt.db")}); err != nil {
		t.Fatal(err)
	}
	if f.rollups, err = counts.Open(t.Context(), counts.Config{Path: filepath.Join(data, "clicks.db")}); err != nil {
		t.Fatal(err)
	}
	if f.log, err = clicklog.Open(clicklog.Config{Dir: filepath.Join(data, "clicks"), SegmentBytes: 4096}); err != nil {
		t.Fatal(err)
	}
	key, err := f.links.CodeKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.codes = codegen.NewRange(codegen.RangeConfig{Leaser: f.links, Permutation: codegen.NewPermutation(key), Length: 7})
	t.Cleanup(func() { f.close(t) })
	return f
}

// close closes the folder as a server would, and returns its name.
func (f *folder) close(t *testing.T) string {
	if err := errors.Join(f.links.Close(), f.rollups.Close(), f.log.Close()); err != nil {
		t.Error(err)
	}
	return f.data
}

// newFolder has links of every kind, clicks that were counted and some that were not.
func newFolder(t *testing.T) *folder {
	t.Helper()
	f := openFolder(t, t.TempDir())
	put(t, filepath.Join(f.data, "admin.key"), []byte("curt_test_0123456789abcdefghijklmnop\n"))
	first := f.mint(t)
	for range 50 {
		f.mint(t)
	}
	alias := f.mint(t)
	alias.Key.Code, alias.CodeKind, alias.Title, alias.Tags, alias.MaxClicks = "an-alias", link.Chosen, "=1+1", []string{"a", "b"}, 7
	f.create(t, alias)
	if _, err := f.links.Spend(t.Context(), alias.Key, 3); err != nil {
		t.Fatal(err)
	}
	alias = f.made[alias.Key]
	alias.Spent = 3
	f.made[alias.Key] = alias
	dead, err := f.links.Replace(t.Context(), first.Tombstone(first.Created.Add(time.Hour)), link.Edit{})
	if err != nil {
		t.Fatal(err)
	}
	f.made[first.Key] = dead
	f.click(t, 200)
	f.fold(t)
	f.click(t, 100)
	return f
}

// mint makes a link as the write path does.
func (f *folder) mint(t *testing.T) link.Link {
	t.Helper()
	code, err := f.codes.Next(t.Context(), codegen.Need{})
	if err != nil {
		t.Fatal(err)
	}
	return f.create(t, link.Link{
		Key: link.Key{Code: code}, CodeKind: link.Counted, Destination: "https://example.com/" + string(code), Workspace: link.WorkspaceDefault,
		Status: link.Active, Safety: link.Clean, Redirect: 302,
	})
}

func (f *folder) create(t *testing.T, l link.Link) link.Link {
	t.Helper()
	l.Created = time.Now().UTC().Truncate(time.Millisecond)
	l.Updated = l.Created
	var err error
	if l.ID, err = link.NewID(l.Created, rand.Reader); err != nil {
		t.Fatal(err)
	}
	if l, err = f.links.Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	f.made[l.Key] = l
	return l
}

// ended is a context for loops that are to do what there is to do, and end.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// click brings n clicks into the log.
func (f *folder) click(t *testing.T, n int) {
	t.Helper()
	ring := capture.NewRing(capture.RingConfig{})
	for range n {
		if !ring.Record(&clicks.Raw{Time: time.Now().UnixMilli(), Code: []byte("an-alias"), Outcome: clicks.Redirected, UserAgent: []byte("Mozilla/5.0 Firefox/140.0")}) {
			t.Fatal("the ring is full")
		}
	}
	f.clicked += uint64(n)
	if err := capture.New(capture.Config{Ring: ring, Log: f.log, Keys: f.links}).Run(ended(t)); err != nil {
		t.Fatal(err)
	}
}

// fold counts the log to its end.
func (f *folder) fold(t *testing.T) {
	t.Helper()
	fold := fold.New(fold.Config{Log: f.log, Store: f.rollups})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- fold.Run(ctx) }()
	for fold.Stats().Read.Compare(f.log.End()) < 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func (f *folder) counted(t *testing.T) uint64 {
	t.Helper()
	totals, _, err := f.rollups.Totals(t.Context(), []link.Key{{Code: "an-alias"}})
	if err != nil {
		t.Fatal(err)
	}
	return totals[0].Clicks
}
