package moderator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/feed"
	"curt/internal/link"
	"curt/internal/moderation"
)

const (
	// followPage is how many entries are looked at together.
	followPage = 256
	// lookEvery is how often Run asks for entries that others appended, and tries again what
	// failed: what a peer appends is known well within a second. keepEvery bounds the commits for
	// progress.
	lookEvery = 500 * time.Millisecond
	keepEvery = time.Second
)

// follower reads the journal behind those who append to it, and sees to it that what it
// says takes effect also where they did not come to it: they died, the store was full, or
// they were another process.
type follower struct {
	m *Moderator // set once

	wake    chan struct{} // capacity 1: there is something for run to do
	rebuild atomic.Bool   // somebody asked for a walk through all links

	mu       sync.Mutex
	progress moderation.Progress // guarded by mu; run alone changes it

	// Owned by Open, then by run.
	next    uint64              // everything up to this entry was looked at
	delayed map[uint64]link.Key // of these entries the effect failed, and is tried again
	dirty   bool                // there is progress to keep
	keptAt  time.Time
	looked  time.Time // for peers that fell silent
	turn    int       // the walk that was on last
	failing bool      // the last step failed, and the log says so
}

func newFollower(m *Moderator, p moderation.Progress) *follower {
	return &follower{m: m, wake: make(chan struct{}, 1), progress: p, next: p.Applied, delayed: map[uint64]link.Key{}}
}

// Run lets take effect what the journal says and the links do not, walks for bans, and
// keeps the progress of both, until ctx ends; then it returns nil. What fails is logged
// once and tried again.
func (m *Moderator) Run(ctx context.Context) error { return m.follower.run(ctx) }

func (f *follower) run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		more, err := f.step(ctx)
		if ctx.Err() != nil {
			return f.keep(context.WithoutCancel(ctx))
		}
		if err != nil && !f.failing {
			f.m.cfg.Log.ErrorContext(ctx, "applying journal decisions failed, retrying", slog.Any("err", err))
		}
		if f.failing = err != nil; more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-f.wake:
		case <-tick.C:
		}
	}
}

// step does some of what there is to do.
func (f *follower) step(ctx context.Context) (more bool, err error) {
	if err := f.follow(ctx); err != nil {
		return false, err
	}
	if err := f.succeed(ctx); err != nil {
		return false, err
	}
	if f.rebuild.Swap(false) {
		f.change(func(p *moderation.Progress) { p.Walks = append(p.Walks, moderation.Walk{All: true}) })
	}
	if more, err = f.walk(ctx); err != nil {
		return false, err
	}
	if f.dirty && (!more || f.m.cfg.Now().Sub(f.keptAt) >= keepEvery) {
		err = f.keep(ctx)
	}
	return more, err
}

// poke lets Run look at once.
func (f *follower) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// change changes the progress.
func (f *follower) change(edit func(*moderation.Progress)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.progress)
	f.dirty = true
}

// keep stores the progress, unless that of now is stored.
func (f *follower) keep(ctx context.Context) error {
	if !f.dirty {
		return nil
	}
	f.mu.Lock()
	p := f.progress.Clone()
	f.mu.Unlock()
	if err := f.m.cfg.Progress.StoreProgress(ctx, p); err != nil {
		return fmt.Errorf("store the position in the journal: %w", err)
	}
	f.dirty, f.keptAt = false, f.m.cfg.Now()
	return nil
}

// follow looks at every entry that is new. It fails when one could not take effect, which
// keeps none of the others from it.
func (f *follower) follow(ctx context.Context) error {
	err := f.applyAll(ctx, maps.Clone(f.delayed))
	follower := feed.Follower[uint64, moderation.Entry]{
		Name: "decisions", Page: followPage, Log: moderation.LogOf(f.m.cfg.Journal),
		Position: func(context.Context) (uint64, bool, error) { return f.next, true, nil },
		Apply: func(ctx context.Context, page []moderation.Entry, to uint64) error {
			failed, takeErr := f.applyPage(ctx, page, to)
			if failed != nil {
				err = failed
			}
			return takeErr
		},
	}
	readErr := follower.CatchUp(ctx)
	if listErr := f.m.cfg.Lists.Publish(); listErr != nil {
		err = listErr
	}
	if readErr != nil {
		return readErr
	}
	f.advance()
	return err
}

// applyPage returns in failed why an effect is delayed.
func (f *follower) applyPage(ctx context.Context, page []moderation.Entry, to uint64) (failed, err error) {
	touched := map[uint64]link.Key{}
	for i := range page {
		k, ok, err := f.take(ctx, &page[i])
		if err != nil {
			return nil, err
		}
		if ok {
			touched[page[i].Sequence] = k
		}
	}
	failed = f.applyAll(ctx, touched)
	f.next = to
	f.advance()
	return failed, nil
}

// take notes what an entry means for others than its link, and returns the link that it
// means.
func (f *follower) take(ctx context.Context, e *moderation.Entry) (k link.Key, ok bool, err error) {
	switch e.Action {
	case moderation.ActionDecide, moderation.ActionAnswer:
		f.m.metrics.decided(e)
		f.m.verdicts.Put(*e) // of a destination; in this process DecideDestination does it sooner
		k, ok = e.Entity.Key()
	case moderation.ActionBan, moderation.ActionLift:
		f.m.bans.publish(e)
		if k, ok = e.Entity.Key(); !ok {
			f.enlist(e)
		}
	case moderation.ActionErase:
		if f.m.cfg.Peers != nil { // Erase has done it for this process
			err = f.m.bans.reload(ctx, e.Entity)
		}
	case moderation.ActionList, moderation.ActionUnlist:
		f.m.cfg.Lists.Learn(e)
	}
	return k, ok, err
}

// enlist has links looked for that a ban or a lift means.
func (f *follower) enlist(e *moderation.Entry) {
	switch e.Entity.Kind {
	case moderation.KindWorkspace, moderation.KindKey, moderation.KindHost, moderation.KindDomain:
		f.change(func(p *moderation.Progress) { p.Enlist(e.Entity) })
	default: // of a link it is applied already, of a network it concerns future links
	}
}

// applyAll applies what was decided to the links of entries, and remembers those that it has
// to come back to.
func (f *follower) applyAll(ctx context.Context, touched map[uint64]link.Key) (failed error) {
	sequences := slices.Sorted(maps.Keys(touched))
	var mu sync.Mutex
	inParallel(len(sequences), func(i int) {
		_, _, err := f.m.apply(ctx, f.m.cfg.Now(), touched[sequences[i]])
		err = dropNotFound(err)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			delete(f.delayed, sequences[i])
			return
		}
		_, waits := f.delayed[sequences[i]]
		f.delayed[sequences[i]] = touched[sequences[i]]
		// A link that is damaged does not delay the others; it waits until it is deleted.
		if _, damaged := errors.AsType[*link.DamagedError](err); !damaged {
			failed = err
		} else if !waits {
			f.m.cfg.Log.ErrorContext(ctx, "cannot apply a decision to a damaged link, delete the link", slog.Any("err", err))
		}
	})
	return failed
}

// advance moves the mark to before the first entry that waits for its effect.
func (f *follower) advance() {
	applied := f.next
	for sequence := range f.delayed {
		applied = min(applied, sequence-1)
	}
	if f.applied() != applied {
		f.change(func(p *moderation.Progress) { p.Applied = applied })
	}
}

func (f *follower) applied() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.progress.Applied
}
