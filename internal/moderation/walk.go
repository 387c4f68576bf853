package moderation

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"curt/internal/link"
)

const (
	// maxWalks is how many walks go on side by side. Bans beyond join one that has not
	// begun, so that a thousand of them at once read all links a few times, not a thousand
	// times.
	maxWalks = 4
	// walkPage is how many links are looked at together: some 10 ms from memory.
	walkPage = 500
)

// begun reports whether a walk has left its beginning.
func (w *Walk) begun() bool { return w.After != "" || w.Seen > 0 }

// enlist adds an entity to the walks to be.
func (p *Progress) enlist(e Entity) {
	if n := len(p.Walks); n >= maxWalks && !p.Walks[n-1].begun() && !p.Walks[n-1].All {
		p.Walks[n-1].Entities = append(p.Walks[n-1].Entities, e)
		return
	}
	p.Walks = append(p.Walks, Walk{Entities: []Entity{e}})
}

// filter returns which links a walk lists.
func (w *Walk) filter() link.Filter {
	if len(w.Entities) == 1 && w.Entities[0].Kind == KindWorkspace {
		return link.Filter{Workspace: link.WorkspaceID(w.Entities[0].Name)}
	}
	return link.Filter{}
}

// meant returns what tells whether a walk is for a link.
func meant(entities ...Entity) *banSet {
	set := newBanSet()
	for _, e := range entities {
		set.put(Entry{Entity: e, Safety: link.Blocked})
	}
	return set
}

// walk goes one page on with one of the walks, newest links first; more says that there
// are further ones to go.
func (m *Moderator) walk(ctx context.Context) (more bool, err error) {
	w, ok := m.nextWalk()
	if !ok {
		return false, nil
	}
	defer m.cfg.Work()()
	if !w.begun() {
		// Who was judged before the ban was known has written when this returns.
		if err := m.gate.drain(ctx); err != nil {
			return false, err
		}
	}
	page, err := m.cfg.Links.List(ctx, w.filter(), link.Page{After: w.After, Limit: walkPage})
	if errors.Is(err, link.ErrInvalid) && w.After != "" { // a cursor of another release: from the beginning
		w.After = ""
		page, err = m.cfg.Links.List(ctx, w.filter(), link.Page{Limit: walkPage})
	}
	if err != nil {
		return false, fmt.Errorf("walk links for a ban: %w", err)
	}
	changed, err := m.settlePage(ctx, &w, page.Links)
	if err != nil {
		return false, fmt.Errorf("walk links for a ban: %w", err)
	}
	w.Seen, w.Changed, w.After = w.Seen+uint64(len(page.Links)), w.Changed+changed, page.Next
	m.change(func(p *Progress) {
		if p.Walks[m.turn] = w; w.After == "" {
			p.Walks = append(p.Walks[:m.turn:m.turn], p.Walks[m.turn+1:]...)
		}
		more = len(p.Walks) > 0
	})
	return more, nil
}

// nextWalk returns the walk whose turn it is.
func (m *Moderator) nextWalk() (w Walk, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(len(m.progress.Walks), maxWalks)
	if n == 0 {
		return Walk{}, false
	}
	m.turn = (m.turn + 1) % n
	return m.progress.Walks[m.turn], true
}

// settlePage settles those of the links that the walk is for.
func (m *Moderator) settlePage(ctx context.Context, w *Walk, links []link.Link) (changed uint64, err error) {
	set := meant(w.Entities...)
	var hit []link.Key
	for i := range links {
		if w.All || set.means(&links[i]) > link.Clean {
			hit = append(hit, links[i].Key)
		}
	}
	var mu sync.Mutex
	inParallel(len(hit), func(i int) {
		_, did, settled := m.settle(ctx, m.cfg.Now(), hit[i])
		mu.Lock()
		defer mu.Unlock()
		if settled = dropNotFound(settled); settled != nil && !link.Absent(settled) {
			err = settled
		}
		if did {
			changed++
		}
	})
	return changed, err
}

// Rebuild lets Run look at every link, and give it the safety that the journal says:
// whatever has been done to the links by hand, the journal alone decides. It reads the
// journal first, and refuses with ErrBroken when that is not what was written: when the
// chain does not hold, when entries that took effect are gone, or when there are none.
// Anyway is for those who know why, and reads nothing.
func (m *Moderator) Rebuild(ctx context.Context, anyway bool) error {
	if !anyway {
		if err := m.trust(ctx); err != nil {
			return fmt.Errorf("rebuild: %w", err)
		}
	}
	m.rebuild.Store(true)
	m.poke()
	return nil
}

// trust returns nil if the journal is one to follow.
func (m *Moderator) trust(ctx context.Context) error {
	applied := m.applied() // before the journal is read, which grows
	switch last, err := Verify(ctx, m.cfg.Journal, nil); {
	case err != nil:
		return err
	case last.Sequence < applied:
		return fmt.Errorf("%w: entries %d to %d took effect and are gone", ErrBroken, last.Sequence+1, applied)
	case last.Sequence == 0:
		return fmt.Errorf("%w: it has no entry", ErrBroken)
	}
	return nil
}
