package linkservice_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/search"
	"curt/internal/search/searchtest"
	"curt/internal/shorten/linkservice"
)

// library is a store of many links with an index and a ranking that know them.
func library(t *testing.T, n int) (*linkservice.Service, *linktest.Memory, *searchtest.Memory, *searchtest.Ranks) {
	t.Helper()
	store, index, ranks := linktest.NewMemory(), searchtest.NewMemory(), searchtest.NewRanks()
	batch := search.Batch{Position: search.Position{Filled: true}}
	for i := range n {
		l := linktest.Counted(link.Code(fmt.Sprintf("c%06d", i)), uint64(i), linktest.Epoch())
		l.Workspace = []link.WorkspaceID{"acme", "evil"}[i%2]
		l.Title = fmt.Sprintf("word%d", i%3)
		stored, err := store.Create(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		batch.Docs = append(batch.Docs, search.NewDocument(&stored))
		if i%5 == 0 {
			err = ranks.Rank(t.Context(), []search.Rank{{
				Hit: search.Hit{ID: l.ID, Key: l.Key}, Workspace: l.Workspace, Clicks: uint64(1 + i%7),
			}}, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := index.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return linkservice.New(linkservice.Config{Store: store, Index: index, Ranking: ranks}), store, index, ranks
}

func find(t *testing.T, c *linkservice.Service, who auth.Principal, f search.Filter, limit int) (all []link.Link) {
	t.Helper()
	for p := (link.Page{Limit: limit}); ; {
		slice, err := c.Find(t.Context(), linktest.Epoch(), who, f, p)
		if err != nil || len(slice.Links) > limit {
			t.Fatalf("%d links, %v", len(slice.Links), err)
		}
		all = append(all, slice.Links...)
		if p.After = slice.Next; p.After == "" {
			return all
		}
	}
}

// A list by clicks is complete, in order, and each link comes once: whether few match
// or many, with ranks that lie beside the filter or in it.
func TestMostClicked(t *testing.T) {
	for _, n := range []int{50, 3000} {
		c, _, _, ranks := library(t, n)
		for _, f := range []search.Filter{
			{Order: search.MostClicked},
			{Order: search.MostClicked, Words: []string{"word1"}},
			{Order: search.MostClicked, State: link.StateExpired},
			{Order: search.MostClicked, Status: link.Active},
		} {
			for _, who := range []auth.Principal{admin(), member("acme", auth.LinksRead)} {
				var want []link.Link
				plain := f
				plain.Order = search.Newest
				want = find(t, c, who, plain, 97)
				got := find(t, c, who, f, 97)
				seen := map[link.ID]bool{}
				last := search.RankPosition{Clicks: 1 << 60}
				for _, l := range got {
					clicks, err := ranks.Clicks(t.Context(), []link.ID{l.ID})
					if err != nil {
						t.Fatal(err)
					}
					place := search.RankPosition{Clicks: clicks[0], ID: l.ID}
					if seen[l.ID] || last.Compare(place) >= 0 {
						t.Fatalf("%d links, %+v: %s is out of order", n, f, l.Key)
					}
					seen[l.ID], last = true, place
				}
				if len(got) != len(want) {
					t.Errorf("%d links, %+v: %d by clicks, %d by age", n, f, len(got), len(want))
				}
			}
		}
	}
}

// careless is an index that finds everything, whatever is asked.
type careless struct{ *searchtest.Memory }

func (c careless) Find(ctx context.Context, _ search.Query, p search.Page) (search.Hits, error) {
	return c.Memory.Find(ctx, search.Query{}, p)
}

// What an index says of another workspace is not shown, whatever the caller asks for.
func TestFindShowsNoOtherWorkspace(t *testing.T) {
	_, store, index, ranks := library(t, 40)
	c := linkservice.New(linkservice.Config{Store: store, Index: careless{index}, Ranking: ranks})
	for _, order := range []search.Order{search.Newest, search.Oldest, search.MostClicked} {
		for _, asked := range []link.WorkspaceID{"", "acme", "evil"} {
			f := search.Filter{Words: []string{"word0"}, Order: order, Workspace: asked}
			got := find(t, c, member("acme", auth.LinksRead), f, 3)
			for _, l := range got {
				if l.Workspace != "acme" {
					t.Errorf("order %d, of %q: shows %s of %s", order, asked, l.Key, l.Workspace)
				}
			}
			if len(got) != 7 {
				t.Errorf("order %d, of %q: %d links, want 7", order, asked, len(got))
			}
		}
	}
}

// An index that is behind, or wrong, shows nothing that the store does not confirm.
func TestFindConfirmsWhatTheIndexSays(t *testing.T) {
	c, store, _, _ := library(t, 40)
	words := search.Filter{Words: []string{"word0"}}
	if got := find(t, c, member("acme", auth.LinksRead), words, 10); len(got) != 7 {
		t.Fatalf("%d links", len(got))
	}
	for code, change := range map[link.Code]func(*link.Link){
		"c000000": func(l *link.Link) { *l = l.Tombstone(linktest.Epoch().Add(time.Hour)) },
		"c000006": func(l *link.Link) { l.Title = "another" },
	} {
		if _, err := link.Update(t.Context(), store, link.Key{Code: code}, "tester", func(l *link.Link) error { change(l); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, order := range []search.Order{search.Newest, search.Oldest, search.MostClicked} {
		words.Order = order
		got := find(t, c, member("acme", auth.LinksRead), words, 3)
		for _, l := range got {
			if l.Workspace != "acme" || l.Status == link.Deleted || l.Title != "word0" {
				t.Errorf("order %d shows %+v", order, l)
			}
		}
		if len(got) != 5 {
			t.Errorf("order %d: %d links", order, len(got))
		}
	}
}
