package search_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/search"
	"curt/internal/search/searchtest"
)

// rig is an indexer over memory stores, in synctest's time.
type rig struct {
	t       *testing.T
	links   *linktest.Memory
	index   search.Index
	indexer *search.Indexer
	n       int
	stop    func()
}

func newRig(t *testing.T, index search.Index) *rig {
	return &rig{t: t, links: linktest.NewMemory(), index: index}
}

func (r *rig) start() {
	ctx, cancel := context.WithCancel(r.t.Context())
	r.indexer = search.NewIndexer(search.IndexerConfig{Links: r.links, Creates: r.links, Index: r.index})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.indexer.Run(ctx); err != nil {
			r.t.Error(err)
		}
	})
	r.stop = func() { cancel(); wg.Wait() }
}

// draft returns a link that begins now.
func (r *rig) draft() link.Link {
	now := time.Now().UTC().Truncate(time.Millisecond)
	id, err := link.NewID(now, rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	r.n++
	return link.Link{
		ID: id, Key: link.Key{Code: link.Code(fmt.Sprintf("c%06d", r.n))}, CodeKind: linktest.Kind(r.n%3 > 0),
		Destination: fmt.Sprintf("https://example.com/page/%d", r.n), Workspace: "acme",
		Status: link.Active, Safety: link.Clean, Redirect: 302, Created: now, Updated: now,
	}
}

func (r *rig) store(l link.Link) link.Link {
	r.t.Helper()
	stored, err := r.links.Create(r.t.Context(), l)
	if err != nil {
		r.t.Fatal(err)
	}
	r.indexer.Stored(l.ID)
	return stored
}

func (r *rig) change(k link.Key, f func(*link.Link)) {
	r.t.Helper()
	_, err := link.Update(r.t.Context(), r.links, k, "tester", func(l *link.Link) error { f(l); return nil })
	if err != nil && !errors.Is(err, link.ErrNotFound) {
		r.t.Fatal(err)
	}
}

// same fails unless the index says of every link what the store does.
func (r *rig) same() {
	r.t.Helper()
	all, err := r.links.List(r.t.Context(), link.Filter{}, link.Page{Limit: link.MaxPage})
	if err != nil || all.Next != "" {
		r.t.Fatalf("%q, %v", all.Next, err)
	}
	want := searchtest.NewMemory()
	var docs []search.Document
	for i := range all.Links {
		docs = append(docs, search.NewDocument(&all.Links[i]))
	}
	if err := want.Apply(r.t.Context(), search.Batch{Docs: docs}); err != nil {
		r.t.Fatal(err)
	}
	for _, f := range []search.Filter{{}, {Words: []string{"page"}}, {Tag: "blue"}, {Words: []string{"changed"}}, {Status: link.Disabled}} {
		q := f.Query(time.Now())
		got, err := r.index.Find(r.t.Context(), q, search.Page{Limit: 10_000})
		expected, _ := want.Find(r.t.Context(), q, search.Page{Limit: 10_000})
		if err != nil || len(got.Found) != len(expected.Found) {
			r.t.Fatalf("%+v: the index has %d links, the store %d, %v", f, len(got.Found), len(expected.Found), err)
		}
		for i := range got.Found {
			if got.Found[i] != expected.Found[i] {
				r.t.Fatalf("%+v: %v, want %v", f, got.Found[i], expected.Found[i])
			}
		}
	}
}

// caughtUp is long enough for whatever waits.
func caughtUp() {
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

func TestIndexerFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, searchtest.NewMemory())
		r.start()
		defer func() { r.stop() }()
		caughtUp()
		if at, err := r.index.Position(t.Context()); err != nil || !at.Filled {
			t.Fatalf("an empty store: %+v, %v", at, err)
		}
		for range 40 {
			r.store(r.draft())
			time.Sleep(37 * time.Millisecond)
		}
		caughtUp()
		r.same()
		r.change(link.Key{Code: "c000003"}, func(l *link.Link) { l.Title, l.Tags = "Changed", []string{"blue"} })
		r.change(link.Key{Code: "c000004"}, func(l *link.Link) { l.Status = link.Disabled })
		r.change(link.Key{Code: "c000005"}, func(l *link.Link) { *l = l.Tombstone(time.Now().UTC().Truncate(time.Millisecond)) })
		caughtUp()
		r.same()
	})
}

// A create that takes long is stored with an id that the walk has passed.
func TestIndexerFindsLateLinks(t *testing.T) {
	for _, late := range []int{1, 40, 3000} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, searchtest.NewMemory())
			r.start()
			defer func() { r.stop() }()
			var slow []link.Link
			for range late {
				l := r.draft()
				l.CodeKind = link.Counted
				slow = append(slow, l)
			}
			time.Sleep(3 * time.Second)
			r.store(r.draft())
			caughtUp()
			for _, l := range slow[:min(late, 900)] {
				r.store(l)
			}
			caughtUp()
			r.same()
		})
	}
}

// The process dies at random moments, between and inside writes to the index, and
// starts again: nothing is missed, nothing deleted stays.
func TestIndexerMissesNothing(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			random := mrand.New(mrand.NewPCG(seed, 7))
			index := &flaky{Memory: searchtest.NewMemory(), random: mrand.New(mrand.NewPCG(seed, 8))} // used by the indexer alone
			r := newRig(t, index)
			r.start()
			var slow []link.Link
			for range 300 {
				switch random.IntN(8) {
				case 0:
					r.change(link.Key{Code: link.Code(fmt.Sprintf("c%06d", 1+random.IntN(r.n+1)))}, func(l *link.Link) { l.Title = "Changed" })
				case 1:
					r.change(link.Key{Code: link.Code(fmt.Sprintf("c%06d", 1+random.IntN(r.n+1)))}, func(l *link.Link) {
						*l = l.Tombstone(time.Now().UTC().Truncate(time.Millisecond))
					})
				case 2:
					slow = append(slow, r.draft())
				case 3:
					if len(slow) > 0 {
						r.store(slow[0])
						slow = slow[1:]
					}
				case 4:
					if random.IntN(3) == 0 {
						r.stop()
						r.start()
					}
				default:
					r.store(r.draft())
				}
				time.Sleep(time.Duration(random.IntN(700)) * time.Millisecond)
			}
			r.stop()
			index.random = nil
			r.start()
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			r.same()
			r.stop()
		})
	}
}

// flaky fails some writes, before or after they happened.
type flaky struct {
	*searchtest.Memory

	random *mrand.Rand
}

var errLost = errors.New("lost")

func (f *flaky) Apply(ctx context.Context, b search.Batch) error {
	if f.random != nil && f.random.IntN(10) == 0 {
		return errLost
	}
	err := f.Memory.Apply(ctx, b)
	if f.random != nil && f.random.IntN(10) == 0 {
		return errLost
	}
	return err
}

// The clock goes back by an hour: what is made meanwhile is found.
func TestIndexerAndTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, searchtest.NewMemory())
		r.start()
		defer func() { r.stop() }()
		early := r.draft()
		time.Sleep(time.Hour)
		r.store(r.draft())
		caughtUp()
		early.CodeKind = link.Counted
		r.store(early)
		caughtUp()
		r.same()
	})
}

// An index that is damaged is filled anew.
func TestIndexerFillsADamagedIndexAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		index := searchtest.NewMemory()
		r := newRig(t, &damaged{Memory: index})
		r.start()
		defer func() { r.stop() }()
		for range 5 {
			r.store(r.draft())
		}
		caughtUp()
		r.index.(*damaged).broken = true
		r.store(r.draft())
		caughtUp()
		caughtUp()
		r.same()
	})
}

type damaged struct {
	*searchtest.Memory

	broken bool
}

func (d *damaged) Apply(ctx context.Context, b search.Batch) error {
	if d.broken {
		return search.ErrDamaged
	}
	return d.Memory.Apply(ctx, b)
}

func (d *damaged) Reset(ctx context.Context) error {
	d.broken = false
	return d.Memory.Reset(ctx)
}

// While there are many creates the indexer waits, but not for ever.
func TestIndexerWaitsInABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, searchtest.NewMemory())
		r.start()
		defer func() { r.stop() }()
		caughtUp()
		first := r.store(r.draft())
		known := func() bool {
			hits, err := r.index.Find(t.Context(), search.Query{}, search.Page{Limit: 1})
			return err == nil && len(hits.Found) == 1
		}
		for step := range 45 * 4 {
			for range 1000 {
				r.indexer.Stored(first.ID)
			}
			time.Sleep(250 * time.Millisecond)
			if step == 20*4 && known() {
				t.Error("indexed in the middle of a burst")
			}
		}
		if !known() {
			t.Error("not indexed after 45 s of burst")
		}
	})
}

// Other processes store links with ids of yesterday, and tell nobody.
func TestIndexerFindsLateLinksOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, searchtest.NewMemory())
		r.start()
		defer func() { r.stop() }()
		r.store(r.draft())
		late := r.draft()
		time.Sleep(24 * time.Hour)
		r.store(r.draft())
		caughtUp()
		if _, err := r.links.Create(t.Context(), late); err != nil {
			t.Fatal(err)
		}
		caughtUp()
		caughtUp()
		r.same()
	})
}
