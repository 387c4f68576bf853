package bans

import (
	"context"
	"fmt"

	"curt/internal/moderation"
)

// followPage is how many entries are read at once.
const followPage = 256

// Follower keeps a Set in step with a journal that others write, in a process that makes no decisions itself. It is for one goroutine; the
// Set is for any.
type Follower struct {
	Set     *Set
	journal moderation.Journal
	next    uint64 // entries up to this one are in Set
	loaded  bool
}

// NewFollower returns a Follower whose Set is empty until Step.
func NewFollower(j moderation.Journal) *Follower { return &Follower{Set: New(), journal: j} }

// Step brings Set up to date.
func (f *Follower) Step(ctx context.Context) error {
	if !f.loaded {
		if err := f.load(ctx); err != nil {
			return err
		}
	}
	for {
		page, err := f.journal.Read(ctx, f.next, followPage)
		if err != nil {
			return fmt.Errorf("follow bans: %w", err)
		}
		for i := range page {
			switch e := &page[i]; e.Action {
			case moderation.ActionBan:
				f.Set.Put(*e)
			case moderation.ActionLift:
				f.Set.Drop(e.Entity)
			default:
			}
			f.next = page[i].Sequence
		}
		if len(page) < followPage {
			return nil
		}
	}
}

// load reads the bans that stand. Entries behind the position, which is read before them, are read again.
func (f *Follower) load(ctx context.Context) error {
	newest, err := f.journal.Find(ctx, moderation.Filter{}, 0, 1)
	if err != nil {
		return fmt.Errorf("find the end of the journal: %w", err)
	}
	active, err := f.journal.Bans(ctx)
	if err != nil {
		return fmt.Errorf("load bans: %w", err)
	}
	for _, ban := range active {
		f.Set.Put(ban)
	}
	if f.loaded = true; len(newest) > 0 {
		f.next = newest[0].Sequence
	}
	return nil
}
