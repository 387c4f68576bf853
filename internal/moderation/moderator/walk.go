package moderator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/bans"
)

// walkPage is how many links are looked at together: some 10 ms from memory.
const walkPage = 500

// meant returns what tells whether a walk is for a link.
func meant(entities ...moderation.Entity) *bans.Set {
	set := bans.New()
	for _, e := range entities {
		set.Put(moderation.Entry{Entity: e, Safety: link.Blocked})
	}
	return set
}

// walk goes one page on with one of the walks, newest links first; more says that there
// are further ones to go.
func (f *follower) walk(ctx context.Context) (more bool, err error) {
	w, ok := f.nextWalk()
	if !ok {
		return false, nil
	}
	defer f.m.cfg.Yielder.Boost()()
	if !w.Begun() {
		// Who was judged before the ban was known has written when this returns.
		if err := f.m.gate.Drain(ctx); err != nil {
			return false, err
		}
	}
	page, err := f.m.cfg.Links.List(ctx, w.Filter(), link.Page{After: w.After, Limit: walkPage})
	if errors.Is(err, link.ErrInvalid) && w.After != "" { // a cursor of another release: from the beginning
		w.After = ""
		page, err = f.m.cfg.Links.List(ctx, w.Filter(), link.Page{Limit: walkPage})
	}
	if err != nil {
		return false, fmt.Errorf("walk links for a ban: %w", err)
	}
	changed, err := f.applyToPage(ctx, &w, page.Links)
	if err != nil {
		return false, fmt.Errorf("walk links for a ban: %w", err)
	}
	w.Seen, w.Changed, w.After = w.Seen+uint64(len(page.Links)), w.Changed+changed, page.Next
	f.change(func(p *moderation.Progress) {
		if p.Walks[f.turn] = w; w.After == "" {
			p.Walks = append(p.Walks[:f.turn:f.turn], p.Walks[f.turn+1:]...)
		}
		more = len(p.Walks) > 0
	})
	return more, nil
}

// nextWalk returns the walk whose turn it is.
func (f *follower) nextWalk() (w moderation.Walk, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(len(f.progress.Walks), moderation.MaxWalks)
	if n == 0 {
		return moderation.Walk{}, false
	}
	f.turn = (f.turn + 1) % n
	return f.progress.Walks[f.turn], true
}

// applyToPage applies what was decided to those of the links that the walk is for.
func (f *follower) applyToPage(ctx context.Context, w *moderation.Walk, links []link.Link) (changed uint64, err error) {
	set := meant(w.Entities...)
	var hit []link.Key
	for i := range links {
		if w.All || set.Safety(&links[i]) > link.Clean {
			hit = append(hit, links[i].Key)
		}
	}
	var mu sync.Mutex
	inParallel(len(hit), func(i int) {
		_, did, settled := f.m.apply(ctx, f.m.cfg.Now(), hit[i])
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
		if err := trust(ctx, m.cfg.Journal, m.follower.applied()); err != nil {
			return fmt.Errorf("rebuild: %w", err)
		}
	}
	m.follower.rebuild.Store(true)
	m.follower.poke()
	return nil
}

// trust returns nil if the journal is one to follow: applied is what took effect before it is
// read, because it grows.
func trust(ctx context.Context, journal moderation.Reader, applied uint64) error {
	switch last, err := moderation.Verify(ctx, journal, nil); {
	case err != nil:
		return err
	case last.Sequence < applied:
		return fmt.Errorf("%w: applied entries %d to %d are missing", moderation.ErrBroken, last.Sequence+1, applied)
	case last.Sequence == 0:
		return fmt.Errorf("%w: it has no entry", moderation.ErrBroken)
	}
	return nil
}
