package linktest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
)

// pages walks lists while links are inserted and deleted between the pages.
func pages(t *testing.T, h Harness) {
	t.Run("complete and stable", func(t *testing.T) { stable(t, h) })
	t.Run("filters", func(t *testing.T) { filters(t, h) })
	t.Run("cursors belong to their filter", func(t *testing.T) { foreignCursors(t, h) })
}

func stable(t *testing.T, h Harness) {
	for _, f := range []link.Filter{{}, {Oldest: true}, {Workspace: "a"}, {Workspace: "a", Oldest: true}} {
		stores := handles(t, h)
		expected := map[link.ID]bool{}
		for i := range 60 {
			l := paged(i * 10)
			mustCreate(t, stores[0], l)
			if f.Workspace == "" || l.Workspace == f.Workspace {
				expected[l.ID] = true
			}
		}
		step := 0
		got := walkList(t, stores[1], f, 7, func() { // insert on both sides of the position, and delete
			if step++; step > 59 {
				return // of a store whose pages are short
			}
			mustCreate(t, stores[0], paged(step*10+3))
			mustCreate(t, stores[0], paged(step*10+5))
			mustCreate(t, stores[0], paged(10_000+step))
			if l := mustGet(t, stores[0], paged((59-step)*10).Key); l.Status != link.Deleted {
				mustReplace(t, stores[0], l.Tombstone(epoch))
				delete(expected, l.ID)
			}
		})
		seen := map[link.ID]bool{}
		for _, l := range got {
			if seen[l.ID] {
				t.Errorf("%+v: %s came twice", f, l.ID)
			}
			seen[l.ID] = true
		}
		for id := range expected {
			if !seen[id] {
				t.Errorf("%+v: %s is missing", f, id)
			}
		}
		inOrder(t, f, got)
	}
}

// paged spreads links over two workspaces and two kinds of code.
func paged(n int) link.Link {
	l := sample(n, link.Code(fmt.Sprintf("p%06d", n)))
	l.CodeKind = Kind(n%3 == 0)
	l.Workspace = []link.WorkspaceID{"a", "b"}[n/10%2]
	return l
}

// walkList reads all pages, calling between after each but the last, and fails when
// a page is too long.
func walkList(t testing.TB, s link.Store, f link.Filter, limit int, between func()) []link.Link {
	t.Helper()
	var all []link.Link
	for p := (link.Page{Limit: limit}); ; {
		got, err := s.List(t.Context(), f, p)
		if err != nil || len(got.Links) > limit {
			t.Fatalf("list %+v after %q: %d links, %v", f, p.After, len(got.Links), err)
		}
		all = append(all, got.Links...)
		if got.Next == "" {
			return all
		}
		p.After = got.Next
		between()
	}
}

func inOrder(t testing.TB, f link.Filter, links []link.Link) {
	t.Helper()
	sorted := slices.IsSortedFunc(links, func(a, b link.Link) int {
		if f.Oldest {
			return slices.Compare(a.ID[:], b.ID[:])
		}
		return slices.Compare(b.ID[:], a.ID[:])
	})
	if !sorted {
		t.Errorf("list %+v is not in the order of age", f)
	}
}

func filters(t *testing.T, h Harness) {
	s := h.Open(t)
	var all []link.Link
	for i := range 40 {
		l := paged(i)
		l.Key.Domain = []link.Domain{"", "a.example"}[i%2]
		if i%5 == 0 {
			l.Status = link.Disabled
		}
		all = append(all, mustCreate(t, s, l))
	}
	none, other := link.Domain(""), link.Domain("a.example")
	for _, f := range []link.Filter{
		{},
		{Status: link.Active},
		{Status: link.Disabled, Oldest: true},
		{Status: link.Deleted},
		{Domain: &none},
		{Domain: &other, Workspace: "b", Status: link.Active},
		{Workspace: "nobody"},
		{Since: all[17].ID},
		{Since: all[17].ID, Oldest: true, Status: link.Active},
		{Since: all[39].ID, Workspace: "a"},
		{Since: link.ID{0xff}, Oldest: true},
	} {
		var expected []link.Link
		for _, l := range all {
			if matches(l, f) {
				expected = append(expected, l)
			}
		}
		if !f.Oldest {
			slices.Reverse(expected)
		}
		if diff := cmp.Diff(expected, walkList(t, s, f, 6, func() {})); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", f, diff)
		}
	}
}

func foreignCursors(t *testing.T, h Harness) {
	s := h.Open(t)
	for i := range 5 {
		mustCreate(t, s, paged(i))
	}
	page, err := s.List(t.Context(), link.Filter{}, link.Page{Limit: 2})
	if err != nil || page.Next == "" {
		t.Fatalf("first page: %q, %v", page.Next, err)
	}
	domain := link.Domain("")
	for _, f := range []link.Filter{{Oldest: true}, {Workspace: "a"}, {Status: link.Active}, {Domain: &domain}, {Since: link.ID{1}}} {
		_, err := s.List(t.Context(), f, link.Page{Limit: 2, After: page.Next})
		want(t, fmt.Sprintf("cursor used with %+v", f), err, link.ErrInvalid)
	}
}

// exactExpiry looks at links around their last millisecond.
func exactExpiry(t *testing.T, h Harness) {
	ctx, stores := t.Context(), handles(t, h)
	s := stores[0]
	ends := epoch.Add(time.Hour)
	var expected []link.Key
	for i := range 12 {
		l := sample(i, link.Code(fmt.Sprintf("code%02d", 11-i)))
		l.Expires = ends.Add(time.Duration(i/4-1) * time.Millisecond) // four each: before, at, after
		l.CodeKind = Kind(i%2 == 0)
		if i%4 == 3 {
			l.Status = link.Disabled
		}
		mustCreate(t, s, l)
	}
	mustCreate(t, s, sample(20, "forever"))
	for _, code := range []link.Code{"code09", "code10", "code11", "code05", "code06", "code07"} {
		expected = append(expected, link.Key{Code: code}) // by expiry, then by key
	}
	got, at := walkExpired(ctx, t, stores[1], "", ends, 2)
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("expired at %s (-want +got):\n%s", ends, diff)
	}
	for k, state := range map[link.Code]link.State{
		"code09": link.StateExpired, "code05": link.StateExpired, "code01": link.StateLive, "forever": link.StateLive,
	} {
		// The store neither removes an expired link nor frees its code.
		if got := mustGet(t, s, link.Key{Code: k}).Target().At(ends); got != state {
			t.Errorf("%s at its last millisecond is %s, want %s", k, got, state)
		}
	}
	_, err := s.Create(ctx, sample(30, "code09"))
	want(t, "create the code of an expired link", err, link.ErrExists)

	// Later, the cursor goes on where it stopped; what was revived is gone.
	revived := mustGet(t, s, link.Key{Code: "code03"})
	revived.Expires = ends.Add(time.Hour)
	mustReplace(t, s, revived)
	later, last := walkExpired(ctx, t, s, at, ends.Add(time.Minute), 100)
	if diff := cmp.Diff([]link.Key{{Code: "code01"}, {Code: "code02"}}, later); diff != "" {
		t.Errorf("expired later (-want +got):\n%s", diff)
	}
	if keys, end, err := s.Expired(ctx, last, ends.Add(time.Minute), 10); err != nil || len(keys) != 0 || end != last {
		t.Errorf("after the last: %v, cursor %q, %v", keys, end, err)
	}
}

func walkExpired(ctx context.Context, t testing.TB, s link.Store, at link.Cursor, before time.Time, n int) ([]link.Key, link.Cursor) {
	t.Helper()
	var all []link.Key
	for {
		keys, next, err := s.Expired(ctx, at, before, n)
		if err != nil || len(keys) > n {
			t.Fatalf("expired after %q: %d keys, %v", at, len(keys), err)
		}
		if len(keys) == 0 {
			return all, at
		}
		all, at = append(all, keys...), next
	}
}

// size lists more links of one owner than any page of a driver's own holds.
func size(t *testing.T, h Harness) {
	s := h.Open(t)
	const links = 10_000
	batch := make([]link.Link, links)
	for i := range batch {
		batch[i] = sample(i, link.Code(fmt.Sprintf("s%06d", i)))
		batch[i].CodeKind, batch[i].Title = link.Counted, fmt.Sprintf("the title of link %d, which takes some room", i)
	}
	fill(t, s, batch)
	for _, limit := range []int{499, link.MaxPage} {
		got := walkList(t, s, link.Filter{Workspace: link.WorkspaceDefault}, limit, func() {})
		if len(got) != links {
			t.Errorf("%d links by pages of %d, want %d", len(got), limit, links)
		}
		inOrder(t, link.Filter{}, got)
	}
	// A filter that matches one link far down ends, by however many short pages.
	last := mustGet(t, s, batch[5].Key)
	last.Status = link.Disabled
	mustReplace(t, s, last)
	got := walkList(t, s, link.Filter{Status: link.Disabled}, 10, func() {})
	if len(got) != 1 || got[0].Key != last.Key {
		t.Errorf("the one disabled link: got %d links", len(got))
	}
}

// fill creates links in batches where the driver has them.
func fill(t testing.TB, s link.Store, links []link.Link) {
	t.Helper()
	b, ok := s.(link.Batcher)
	if !ok {
		for _, l := range links {
			mustCreate(t, s, l)
		}
		return
	}
	for chunk := range slices.Chunk(links, 1000) {
		results, err := b.CreateMany(t.Context(), epoch, Entries(chunk...))
		if err != nil || len(results) != len(chunk) {
			t.Fatalf("create %d links: %d results, %v", len(chunk), len(results), err)
		}
		for i, r := range results {
			if r.Err != nil {
				t.Fatalf("create %s: %v", chunk[i].Key, r.Err)
			}
		}
	}
}
