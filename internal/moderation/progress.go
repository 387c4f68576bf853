package moderation

import (
	"context"
	"encoding/json"
	"slices"

	"curt/internal/link"
)

// Progress is how much of the journal has taken effect on the links.
type Progress struct {
	// Applied: what entries up to this one decide about links stands in the links, and
	// their bans are walked or stand in Walks.
	Applied uint64
	Walks   []Walk // oldest first
}

// Walk is a way through all links that is not over: it gives those that its entities mean
// the safety that they should have.
type Walk struct {
	Entities []Entity // banned or lifted
	All      bool     // every link, whatever is banned
	After    link.Cursor
	Seen     uint64 // links
	Changed  uint64 // links among them that got another safety
}

// storedWalk is a walk as JSON, with its cursor as it is: that need not be text.
type storedWalk struct {
	Entities      []Entity
	All           bool
	After         []byte
	Seen, Changed uint64
}

// storedProgress is progress as JSON.
type storedProgress struct {
	Applied uint64
	Walks   []storedWalk
}

// MarshalJSON writes what stores keep.
func (p Progress) MarshalJSON() ([]byte, error) {
	stored := storedProgress{Applied: p.Applied}
	for _, w := range p.Walks {
		stored.Walks = append(stored.Walks, storedWalk{w.Entities, w.All, []byte(w.After), w.Seen, w.Changed})
	}
	return json.Marshal(stored)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Progress) UnmarshalJSON(text []byte) error {
	var stored storedProgress
	if err := json.Unmarshal(text, &stored); err != nil {
		return err
	}
	*p = Progress{Applied: stored.Applied}
	for _, w := range stored.Walks {
		p.Walks = append(p.Walks, Walk{Entities: w.Entities, All: w.All, After: link.Cursor(w.After), Seen: w.Seen, Changed: w.Changed})
	}
	return nil
}

// Clone returns a copy that shares nothing with p.
func (p Progress) Clone() Progress {
	p.Walks = slices.Clone(p.Walks)
	for i := range p.Walks {
		p.Walks[i].Entities = slices.Clone(p.Walks[i].Entities)
	}
	return p
}

// ProgressStore keeps the progress of the one Moderator that works on a store of links.
// Losing the newest of it is no harm: what was done is then done again. Its errors are
// those of Journal.
type ProgressStore interface {
	// Progress returns what was kept last; the zero Progress when nothing ever was.
	Progress(ctx context.Context) (Progress, error)

	// KeepProgress replaces it, durably.
	KeepProgress(ctx context.Context, p Progress) error
}
