package moderation

import (
	"context"
	"encoding/json"
	"slices"
	"time"

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

// MaxWalks is how many walks go on side by side. Bans beyond join one that has not
// begun, so that a thousand of them at once read all links a few times, not a thousand
// times.
const MaxWalks = 4

// Begun reports whether a walk has left its beginning.
func (w *Walk) Begun() bool { return w.After != "" || w.Seen > 0 }

// Enlist adds an entity to the walks to be.
func (p *Progress) Enlist(e Entity) {
	if n := len(p.Walks); n >= MaxWalks && !p.Walks[n-1].Begun() && !p.Walks[n-1].All {
		p.Walks[n-1].Entities = append(p.Walks[n-1].Entities, e)
		return
	}
	p.Walks = append(p.Walks, Walk{Entities: []Entity{e}})
}

// Filter returns which links a walk lists.
func (w *Walk) Filter() link.Filter {
	if len(w.Entities) == 1 && w.Entities[0].Kind == KindWorkspace {
		return link.Filter{Workspace: link.WorkspaceID(w.Entities[0].Name)}
	}
	return link.Filter{}
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

// ProgressStore keeps the progress of a Moderator. Where several processes work on one
// store of links, each has its own: bans are in the memory of each, and only it knows when
// those that it judged without one have written. Losing the newest of it is no harm: what
// was done is then done again. Its errors are those of Journal.
type ProgressStore interface {
	// Progress returns what this process kept last. A process that never kept any begins
	// where all others have been: with the least Applied among theirs; zero when there are
	// none.
	Progress(ctx context.Context) (Progress, error)

	// StoreProgress replaces that of this process, durably.
	StoreProgress(ctx context.Context, p Progress) error
}

// Peers are the processes that work on the same store of links. Its errors are those of
// Journal.
type Peers interface {
	// Silent returns what was left by processes that have not kept progress for SilentFor,
	// by the clock of the store: they ended, or cannot reach it.
	Silent(ctx context.Context) ([]Left, error)

	// Forget removes what Silent returned, unless its process has kept progress since.
	Forget(ctx context.Context, l Left) error
}

// Left is the progress of a process that is silent.
type Left struct {
	Name     string
	StoredAt time.Time // by the clock of the store
	Progress Progress
}

// SilentFor is how long a process keeps no progress before others do what it left. A
// Moderator with peers keeps some every ten seconds.
const SilentFor = time.Minute
