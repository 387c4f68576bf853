package clicks

import (
	"context"
	"fmt"

	"curt/internal/link"
)

// groupDomain is no host, so that no link is counted under it.
const groupDomain = "*"

// GroupKey returns the key under which the clicks of a group are counted.
func GroupKey(name string) link.Key { return link.Key{Domain: groupDomain, Code: link.Code(name)} }

// IsGroup reports whether a key is that of a group.
func IsGroup(k link.Key) bool { return k.Domain == groupDomain }

// maxKnown bounds the links whose group is remembered, some 5 MB. The busiest are learnt
// again at once when there were more.
const maxKnown = 1 << 15

// groups knows which group each link belongs to. Owned by Fold.Run.
type groups struct {
	ask   func(ctx context.Context, keys []link.Key) ([]string, error) // nil = there are no groups
	known map[string][]byte                                            // a group's key by a link's, both in the log's spelling; nil = none
}

func newGroups(ask func(context.Context, []link.Key) ([]string, error)) groups {
	return groups{ask: ask, known: map[string][]byte{}}
}

// learn finds out the groups of all links of a block. After an error the block MUST not be
// counted: its clicks would be missing in their groups for good.
func (g *groups) learn(ctx context.Context, b *Block) error {
	if g.ask == nil {
		return nil
	}
	if len(g.known) > maxKnown {
		clear(g.known)
	}
	var spelled []string
	var keys []link.Key
	_ = b.Events(func(e *Event) error { // what is damaged is found again, and said, when it is counted
		if _, known := g.known[string(e.Key)]; e.Outcome != Orphan && !known {
			key := string(e.Key)
			g.known[key] = nil
			spelled, keys = append(spelled, key), append(keys, linkKey(key))
		}
		return nil
	})
	if len(keys) == 0 {
		return nil
	}
	names, err := g.ask(ctx, keys)
	if err != nil {
		for _, key := range spelled {
			delete(g.known, key)
		}
		return fmt.Errorf("groups of %d links: %w", len(keys), err)
	}
	for i, name := range names {
		if name != "" {
			g.known[spelled[i]] = appendLinkKey(nil, GroupKey(name))
		}
	}
	return nil
}

// of returns the group that an event counts for; nil = none.
func (g *groups) of(e *Event) []byte {
	if g.ask == nil || e.Outcome == Orphan {
		return nil
	}
	return g.known[string(e.Key)]
}
