package moderator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"curt/internal/moderation"
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
func (f *follower) succeed(ctx context.Context) error {
	now := f.m.cfg.Now()
	if f.m.cfg.Peers == nil || !since(now, f.looked, aliveEvery) {
		return nil
	}
	f.dirty = true
	if err := f.keep(ctx); err != nil {
		return err
	}
	left, err := f.m.cfg.Peers.Silent(ctx)
	if err != nil {
		return fmt.Errorf("find stopped peers: %w", err)
	}
	for i := range left {
		if err := f.inherit(ctx, &left[i]); err != nil {
			return err
		}
	}
	f.looked = now
	return nil
}

// inherit makes the rest of a peer's work this process's, durably, and then forgets it.
func (f *follower) inherit(ctx context.Context, l *moderation.Left) error {
	bans, err := f.unknown(ctx, l.Progress.Applied)
	if err != nil {
		return err
	}
	for i := range bans {
		f.enlist(&bans[i])
	}
	if walks := l.Progress.Clone().Walks; len(walks) > 0 {
		f.change(func(p *moderation.Progress) { p.Walks = append(p.Walks, walks...) })
	}
	f.dirty = true
	if err := f.keep(ctx); err != nil {
		return err
	}
	if err := f.m.cfg.Peers.Forget(ctx, *l); err != nil {
		return fmt.Errorf("take over from a stopped peer: %w", err)
	}
	return nil
}

// unknown returns the bans and lifts behind an entry, up to where this process is: what
// comes then, it comes to by itself.
func (f *follower) unknown(ctx context.Context, after uint64) (bans []moderation.Entry, err error) {
	for after < f.next {
		page, err := f.m.cfg.Journal.Read(ctx, after, followPage)
		if err != nil {
			return nil, fmt.Errorf("read entries unknown to a peer: %w", err)
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].Sequence
		bans = append(bans, slices.DeleteFunc(page, func(e moderation.Entry) bool {
			return e.Sequence > f.next || e.Action != moderation.ActionBan && e.Action != moderation.ActionLift
		})...)
	}
	return bans, nil
}
