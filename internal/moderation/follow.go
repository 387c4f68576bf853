package moderation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"curt/internal/feed"
	"curt/internal/link"
)

const (
	// followPage is how many entries are looked at together.
	followPage = 256
	// lookEvery is how often Run asks for entries that others appended, and tries again what
	// failed. keepEvery bounds the commits for progress.
	lookEvery = time.Second
	keepEvery = time.Second
)

// follower reads the journal behind those who append to it, and sees to it that what it
// says takes effect also where they did not come to it: they died, the store was full, or
// they were another process.
type follower struct {
	next    uint64              // everything up to this entry was looked at
	delayed map[uint64]link.Key // of these entries the effect failed, and is tried again
	dirty   bool                // there is progress to keep
	keptAt  time.Time
	looked  time.Time // for peers that fell silent
	turn    int       // the walk that was on last
	failing bool      // the last step failed, and the log says so
}

func newFollower(p Progress) follower {
	return follower{next: p.Applied, delayed: map[uint64]link.Key{}}
}

// Run lets take effect what the journal says and the links do not, walks for bans, and
// keeps the progress of both, until ctx ends; then it returns nil. What fails is logged
// once and tried again.
func (m *Moderator) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		more, err := m.step(ctx)
		if ctx.Err() != nil {
			return m.keep(context.WithoutCancel(ctx))
		}
		if err != nil && !m.failing {
			m.cfg.Log.ErrorContext(ctx, "decisions of the journal cannot take effect; trying again", slog.Any("err", err))
		}
		if m.failing = err != nil; more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-m.wake:
		case <-tick.C:
		}
	}
}

// step does some of what there is to do.
func (m *Moderator) step(ctx context.Context) (more bool, err error) {
	if err := m.follow(ctx); err != nil {
		return false, err
	}
	if err := m.succeed(ctx); err != nil {
		return false, err
	}
	if m.rebuild.Swap(false) {
		m.change(func(p *Progress) { p.Walks = append(p.Walks, Walk{All: true}) })
	}
	if more, err = m.walk(ctx); err != nil {
		return false, err
	}
	if m.dirty && (!more || m.cfg.Now().Sub(m.keptAt) >= keepEvery) {
		err = m.keep(ctx)
	}
	return more, err
}

// poke lets Run look at once.
func (m *Moderator) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// change changes the progress.
func (m *Moderator) change(f func(*Progress)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.progress)
	m.dirty = true
}

// keep stores the progress, unless that of now is stored.
func (m *Moderator) keep(ctx context.Context) error {
	if !m.dirty {
		return nil
	}
	m.mu.Lock()
	p := m.progress.Clone()
	m.mu.Unlock()
	if err := m.cfg.Progress.KeepProgress(ctx, p); err != nil {
		return fmt.Errorf("keep how far the journal was followed: %w", err)
	}
	m.dirty, m.keptAt = false, m.cfg.Now()
	return nil
}

// follow looks at every entry that is new. It fails when one could not take effect, which
// keeps none of the others from it.
func (m *Moderator) follow(ctx context.Context) error {
	err := m.settleAll(ctx, maps.Clone(m.delayed))
	follower := feed.Follower[uint64, Entry]{
		Name: "decisions", Page: followPage, Log: LogOf(m.cfg.Journal),
		Position: func(context.Context) (uint64, bool, error) { return m.next, true, nil },
		Apply: func(ctx context.Context, page []Entry, to uint64) error {
			failed, takeErr := m.applyPage(ctx, page, to)
			if failed != nil {
				err = failed
			}
			return takeErr
		},
	}
	if readErr := follower.CatchUp(ctx); readErr != nil {
		return readErr
	}
	m.advance()
	return err
}

// applyPage returns in failed why an effect is delayed.
func (m *Moderator) applyPage(ctx context.Context, page []Entry, to uint64) (failed, err error) {
	touched := map[uint64]link.Key{}
	for i := range page {
		k, ok, err := m.take(ctx, &page[i])
		if err != nil {
			return nil, err
		}
		if ok {
			touched[page[i].Sequence] = k
		}
	}
	failed = m.settleAll(ctx, touched)
	m.next = to
	m.advance()
	return failed, nil
}

// take notes what an entry means for others than its link, and returns the link that it
// means.
func (m *Moderator) take(ctx context.Context, e *Entry) (k link.Key, ok bool, err error) {
	switch e.Action {
	case ActionDecide, ActionAnswer:
		m.metrics.decided(e)
		k, ok = e.Entity.Key()
	case ActionBan, ActionLift:
		m.publish(e)
		if k, ok = e.Entity.Key(); !ok {
			m.enlist(e)
		}
	case ActionErase:
		err = m.forget(ctx, e.Entity)
	}
	return k, ok, err
}

// enlist has links looked for that a ban or a lift means.
func (m *Moderator) enlist(e *Entry) {
	switch e.Entity.Kind {
	case KindWorkspace, KindKey, KindHost, KindDomain:
		m.change(func(p *Progress) { p.enlist(e.Entity) })
	case KindLink, KindNetwork: // is settled; means what is to come
	}
}

// forget takes the texts of a ban out of memory that a peer has erased.
func (m *Moderator) forget(ctx context.Context, of Entity) error {
	m.banning.Lock()
	defer m.banning.Unlock()
	ban, ok := m.bans.of(of)
	if !ok || m.cfg.Peers == nil { // Erase has done it
		return nil
	}
	found, err := m.cfg.Journal.Read(ctx, ban.Sequence-1, 1)
	if err != nil {
		return fmt.Errorf("read what was erased: %w", err)
	}
	if len(found) == 1 && found[0].Sequence == ban.Sequence {
		m.bans.put(found[0])
	}
	return nil
}

// publish lets a ban or a lift be known, unless it is: in this process Ban and Lift do it
// sooner.
func (m *Moderator) publish(e *Entry) {
	m.banning.Lock()
	defer m.banning.Unlock()
	if e.Sequence > m.known {
		m.learn(e)
	}
}

// learn changes what is banned; banning is held.
func (m *Moderator) learn(e *Entry) {
	m.known = e.Sequence
	if e.Action == ActionBan {
		m.bans.put(*e)
	} else {
		m.bans.drop(e.Entity)
	}
}

// settleAll settles the links of entries, and remembers those that it has to come back to.
func (m *Moderator) settleAll(ctx context.Context, touched map[uint64]link.Key) (failed error) {
	sequences := slices.Sorted(maps.Keys(touched))
	var mu sync.Mutex
	inParallel(len(sequences), func(i int) {
		_, _, err := m.settle(ctx, m.cfg.Now(), touched[sequences[i]])
		err = dropNotFound(err)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			delete(m.delayed, sequences[i])
			return
		}
		_, waits := m.delayed[sequences[i]]
		m.delayed[sequences[i]] = touched[sequences[i]]
		// A link that is damaged keeps no other from being settled; it waits until it is deleted.
		if _, damaged := errors.AsType[*link.DamagedError](err); !damaged {
			failed = err
		} else if !waits {
			m.cfg.Log.ErrorContext(ctx, "a decision has no effect on a link that is damaged; delete the link", slog.Any("err", err))
		}
	})
	return failed
}

// advance moves the mark to before the first entry that waits for its effect.
func (m *Moderator) advance() {
	applied := m.next
	for sequence := range m.delayed {
		applied = min(applied, sequence-1)
	}
	if m.applied() != applied {
		m.change(func(p *Progress) { p.Applied = applied })
	}
}

func (m *Moderator) applied() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.progress.Applied
}
