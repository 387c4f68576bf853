package moderation

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// aliveEvery is how often a Moderator with peers says that it is there, and looks for
// those that are not: several times within SilentFor.
const aliveEvery = 10 * time.Second

// since reports whether it is so long ago, also when the clock was set back.
func since(now, then time.Time, d time.Duration) bool {
	return now.Sub(then) >= d || now.Before(then)
}

// succeed keeps this process known to its peers, and takes over what those left that fell
// silent: walks that they did not end, and bans that they may not have known when they
// made links. Of two who take over at once both do it, which costs a walk. What a peer
// decided and did not come to do is done by everybody who follows the journal.
func (m *Moderator) succeed(ctx context.Context) error {
	now := m.cfg.Now()
	if m.cfg.Peers == nil || !since(now, m.looked, aliveEvery) {
		return nil
	}
	m.dirty = true
	if err := m.keep(ctx); err != nil {
		return err
	}
	left, err := m.cfg.Peers.Silent(ctx)
	if err != nil {
		return fmt.Errorf("look for peers that ended: %w", err)
	}
	for i := range left {
		if err := m.inherit(ctx, &left[i]); err != nil {
			return err
		}
	}
	m.looked = now
	return nil
}

// inherit makes the rest of a peer's work this process's, durably, and then forgets it.
func (m *Moderator) inherit(ctx context.Context, l *Left) error {
	bans, err := m.unknown(ctx, l.Progress.Applied)
	if err != nil {
		return err
	}
	for i := range bans {
		m.enlist(&bans[i])
	}
	if walks := l.Progress.Clone().Walks; len(walks) > 0 {
		m.change(func(p *Progress) { p.Walks = append(p.Walks, walks...) })
	}
	m.dirty = true
	if err := m.keep(ctx); err != nil {
		return err
	}
	if err := m.cfg.Peers.Forget(ctx, *l); err != nil {
		return fmt.Errorf("take over from a peer that ended: %w", err)
	}
	return nil
}

// unknown returns the bans and lifts behind an entry, up to where this process is: what
// comes then, it comes to by itself.
func (m *Moderator) unknown(ctx context.Context, after uint64) (bans []Entry, err error) {
	for after < m.next {
		page, err := m.cfg.Journal.Read(ctx, after, followPage)
		if err != nil {
			return nil, fmt.Errorf("read what a peer did not know: %w", err)
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].Sequence
		bans = append(bans, slices.DeleteFunc(page, func(e Entry) bool {
			return e.Sequence > m.next || e.Action != ActionBan && e.Action != ActionLift
		})...)
	}
	return bans, nil
}
