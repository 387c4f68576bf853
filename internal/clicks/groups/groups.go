// Package groups knows which group, a workspace, the clicks of each link count for. Fold
// counts for groups with it, and History lists their clicks.
package groups

import (
	"context"
	"fmt"
	"hash/maphash"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/link"
)

const (
	// maxKnown bounds the links whose group is remembered, some 6 MB. All are forgotten when
	// there are more, and the busiest learnt again at once.
	maxKnown = 1 << 17

	// maxGroups bounds the groups that are remembered with them.
	maxGroups = 1 << 14
)

// Cache remembers which group each link belongs to. Owned by one goroutine, but for Changed.
type Cache struct {
	ask   func(ctx context.Context, keys []link.Key) ([]string, error) // nil = there are no groups
	seeds [2]maphash.Seed
	known map[mark]uint32   // by a link's mark: a place in keys
	names map[string]uint32 // of groups: a place in keys
	keys  [][]byte          // of groups, in the log's spelling; the first is nil: no group
	heard link.ChangedSet   // links whose group may have changed
}

// mark stands for a link's key: with 128 bits that cannot be chosen from outside, two of 100,000
// links share one once in 10^28 lives of the process.
type mark [2]uint64

func New(ask func(context.Context, []link.Key) ([]string, error)) *Cache {
	g := &Cache{ask: ask, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	g.forget()
	return g
}

func (g *Cache) forget() {
	g.known, g.names, g.keys = map[mark]uint32{}, map[string]uint32{"": 0}, [][]byte{nil}
}

func (g *Cache) mark(key []byte) mark {
	return mark{maphash.Bytes(g.seeds[0], key), maphash.Bytes(g.seeds[1], key)}
}

// Changed has the groups of links asked for again before they are needed next; no links = of all.
// It never waits.
func (g *Cache) Changed(keys ...link.Key) { g.heard.Add(keys...) }

// Learn finds out the groups of all links of a block. After an error the block MUST not be
// counted: its clicks would be missing in their groups for good.
func (g *Cache) Learn(ctx context.Context, b *clicklog.Block) error {
	if g.ask == nil {
		return nil
	}
	changed, all := g.heard.Take()
	if all || len(g.known) > maxKnown || len(g.keys) > maxGroups {
		g.forget()
	}
	for _, k := range changed {
		delete(g.known, g.mark(clicklog.AppendLinkKey(nil, k)))
	}
	var marks []mark
	var keys []link.Key
	_ = b.Events(func(e *clicklog.Event) error { // what is damaged is found again, and said, when it is counted
		if e.Outcome == clicks.Orphan {
			return nil
		}
		m := g.mark(e.Key)
		if _, known := g.known[m]; !known {
			g.known[m] = 0
			marks, keys = append(marks, m), append(keys, clicklog.LinkKey(e.Key))
		}
		return nil
	})
	if len(keys) == 0 {
		return nil
	}
	names, err := g.ask(ctx, keys)
	if err != nil {
		for _, m := range marks {
			delete(g.known, m)
		}
		return fmt.Errorf("groups of %d links: %w", len(keys), err)
	}
	for i, name := range names {
		g.known[marks[i]] = g.place(name)
	}
	return nil
}

// place returns where the key of a group lies in keys.
func (g *Cache) place(name string) uint32 {
	at, ok := g.names[name]
	if !ok {
		at = uint32(len(g.keys))
		g.names[name] = at
		g.keys = append(g.keys, clicklog.AppendLinkKey(nil, clicks.GroupKey(name)))
	}
	return at
}

// Of returns the group that an event counts for; nil = none.
func (g *Cache) Of(e *clicklog.Event) []byte {
	if g.ask == nil || e.Outcome == clicks.Orphan {
		return nil
	}
	return g.keys[g.known[g.mark(e.Key)]]
}
