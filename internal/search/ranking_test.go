package search_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/search"
	"curt/internal/search/searchtest"
)

// counts are clicks of links c000000, c000001 and so on.
type counts struct {
	mu         sync.Mutex
	clicks     map[link.Key]uint64 // guarded by mu
	generation uint64              // guarded by mu
}

func (c *counts) Counted(context.Context) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation, nil
}

func (c *counts) Count(_ context.Context, keys []link.Key) ([]uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := make([]uint64, len(keys))
	for i, k := range keys {
		n[i] = c.clicks[k]
	}
	return n, nil
}

func (c *counts) Clicked(_ context.Context, _ int64, _ int) (keys []link.Key, next int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.clicks {
		keys = append(keys, k)
	}
	return keys, 0, nil
}

// click counts one click of a link in a batch of its own.
func (c *counts) click(n int) (link.Key, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := link.Key{Code: link.Code(fmt.Sprintf("c%06d", n))}
	c.clicks[k]++
	c.generation++
	return k, c.generation
}

// The ranking follows what is counted, also what was counted while nobody ranked.
func TestRankerFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ranks, c := linktest.NewMemory(), searchtest.NewRanks(), &counts{clicks: map[link.Key]uint64{{}: 3}}
		for n := range 5 {
			if _, err := store.Create(t.Context(), linktest.Counted(link.Code(fmt.Sprintf("c%06d", n)), uint64(n), linktest.Epoch())); err != nil {
				t.Fatal(err)
			}
		}
		c.click(4) // before anybody ranks
		for round := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			r := search.NewRanker(search.RankerConfig{Links: store, Counts: c, Ranking: ranks})
			var wg sync.WaitGroup
			wg.Go(func() { _ = r.Run(ctx) })
			for range 3 + round {
				k, generation := c.click(round)
				r.Clicked(k)
				r.Counted(generation)
			}
			time.Sleep(5 * time.Second)
			top, err := ranks.Top(t.Context(), "", search.RankPosition{Clicks: 100}, 10)
			if err != nil || len(top) != round+2 || top[0].Clicks != uint64(3+round) {
				t.Errorf("round %d: %+v, %v", round, top, err)
			}
			if noted, _ := ranks.Generation(t.Context()); noted != c.generation {
				t.Errorf("round %d: generation %d of %d", round, noted, c.generation)
			}
			cancel()
			wg.Wait()
		}
	})
}
