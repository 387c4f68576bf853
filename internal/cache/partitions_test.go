package cache_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/feed/feedtest"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// TestPartitions follows a log of three partitions, where one link moves between them: each change
// reaches each process, by the log or by the bus, and what L2 has of before it is not believed.
func TestPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l2, bus := feedtest.NewMemory(3), cachetest.NewShared(), cachetest.NewBus()
		const links = 10
		code := func(i int) link.Code { return link.Code(fmt.Sprintf("feed-%d", i)) }
		versions := map[link.Key]link.Version{}
		change := func(c *cache.Tiered, i int) {
			l, err := link.Update(t.Context(), s, key(string(code(i))), "me", func(l *link.Link) error { l.Title += "x"; return nil })
			if err != nil {
				t.Fatal(err)
			}
			if versions[l.Key] = l.Version; c != nil {
				c.Changed(link.Change{Key: l.Key, Version: l.Version})
			}
		}
		for i := range links {
			l, err := s.Create(t.Context(), linktest.Chosen(i, code(i)))
			if err != nil {
				t.Fatal(err)
			}
			versions[l.Key] = l.Version
			change(nil, i)
		}
		start := func() *cache.Tiered {
			c := newTiered(t, cache.Config{Shared: true, Bus: bus, L2: l2}, s)
			run(t, c.Run)
			run(t, func(ctx context.Context) error { return c.Follow(ctx, s, time.Second) })
			time.Sleep(5 * time.Second) // what was before is recalled
			return c
		}
		one, two := start(), start()
		all := []*cache.Tiered{one, two}
		for round := range 12 {
			for _, c := range all {
				for k, v := range versions {
					wantVersion(t, c, k, v)
				}
				synctest.Wait() // L2 has them
			}
			for i := range links {
				switch (i + round) % 3 {
				case 0:
					change(all[i%2], i) // told by the bus
				case 1:
					change(nil, i) // found in the log
				}
			}
			time.Sleep(5 * time.Second)
		}
		if before := two.Stats().SharedHits; before == 0 {
			t.Error("nothing of L2 was ever believed")
		}
		third := start()
		for k, v := range versions {
			wantVersion(t, third, k, v)
		}
		if third.Stats().SharedHits == 0 {
			t.Error("a process that starts believes nothing of L2: it did not recall what was before")
		}
	})
}
