package searchtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
	"curt/internal/search"
)

// Ranks is the model of a Ranking.
type Ranks struct {
	mu         sync.Mutex
	ranks      map[link.ID]search.Rank // guarded by mu
	generation uint64                  // guarded by mu
}

var _ search.Ranking = (*Ranks)(nil)

// NewRanks returns an empty Ranks.
func NewRanks() *Ranks { return &Ranks{ranks: map[link.ID]search.Rank{}} }

// Rank implements search.Ranking.
func (r *Ranks) Rank(_ context.Context, ranks []search.Rank, generation uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rank := range ranks {
		r.ranks[rank.ID] = rank
		if rank.Clicks == 0 {
			delete(r.ranks, rank.ID)
		}
	}
	if generation > 0 {
		r.generation = generation
	}
	return nil
}

// Generation implements search.Ranking.
func (r *Ranks) Generation(context.Context) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.generation, nil
}

// Top implements search.Ranking.
func (r *Ranks) Top(_ context.Context, w link.WorkspaceID, from search.RankPosition, n int) (top []search.Rank, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	place := func(r search.Rank) search.RankPosition { return search.RankPosition{Clicks: r.Clicks, ID: r.ID} }
	for _, rank := range r.ranks {
		if (w == "" || rank.Workspace == w) && place(rank).Compare(from) >= 0 {
			top = append(top, rank)
		}
	}
	slices.SortFunc(top, func(a, b search.Rank) int { return place(a).Compare(place(b)) })
	return top[:min(n, len(top))], nil
}

// Clicks implements search.Ranking.
func (r *Ranks) Clicks(_ context.Context, ids []link.ID) ([]uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clicks := make([]uint64, len(ids))
	for i, id := range ids {
		clicks[i] = r.ranks[id].Clicks
	}
	return clicks, nil
}

// RunRanking proves a driver of search.Ranking against the model.
func RunRanking(t *testing.T, open func(t testing.TB) search.Ranking) {
	random := rand.New(rand.NewPCG(1, 2))
	x, m := open(t), NewRanks()
	for step := range uint64(80) {
		var ranks []search.Rank
		for range random.IntN(12) {
			n := random.IntN(60)
			ranks = append(ranks, search.Rank{
				Hit:       search.Hit{ID: id(n), Key: link.Key{Domain: "d.example", Code: link.Code(fmt.Sprint("c", n))}},
				Workspace: []link.WorkspaceID{"a", "b"}[n%2], Clicks: uint64(random.IntN(5)),
			})
		}
		generation := step * uint64(random.IntN(2))
		for _, r := range []search.Ranking{x, m} {
			if err := r.Rank(t.Context(), ranks, generation); err != nil {
				t.Fatal(err)
			}
		}
		same(t, random, x, m)
	}
}

func same(t *testing.T, random *rand.Rand, x, m search.Ranking) {
	t.Helper()
	w := []link.WorkspaceID{"", "a", "b", "c"}[random.IntN(4)]
	from := search.RankPosition{Clicks: uint64(random.IntN(6)), ID: id(random.IntN(60))}
	n := 1 + random.IntN(30)
	got, err := x.Top(t.Context(), w, from, n)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := m.Top(t.Context(), w, from, n)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("top %d of %q from %+v (-want +got):\n%s", n, w, from, diff)
	}
	ids := []link.ID{id(random.IntN(60)), id(random.IntN(60)), id(1000)}
	clicks, err := x.Clicks(t.Context(), ids)
	expected, _ := m.Clicks(t.Context(), ids)
	if err != nil || !slices.Equal(clicks, expected) {
		t.Fatalf("clicks %v, want %v, %v", clicks, expected, err)
	}
	generation, err := x.Generation(t.Context())
	if noted, _ := m.Generation(t.Context()); err != nil || generation != noted {
		t.Fatalf("generation %d, want %d, %v", generation, noted, err)
	}
}
