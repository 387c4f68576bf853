package moderator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/bans"
)

// Ban is a ban that stands.
type Ban struct {
	Entry moderation.Entry
	Walk  *moderation.Walk // through the links that were there before it; nil = it is over
}

// Ban bans an entity from now on: nothing that it means can be made any more once the
// journal has it, and the links that it means get at least the safety, newest first, while
// Run runs. A ban that stands is replaced. Errors: InvalidError, link.ErrNotFound for a
// link that is not there, and those of the journal.
func (m *Moderator) Ban(ctx context.Context, now time.Time, actor string, e moderation.Entity, s link.Safety, reason string) (Ban, error) {
	if s <= link.Clean || s > link.Legal {
		return Ban{}, moderation.Invalid("safety", "expected warn, quarantined, blocked or legal")
	}
	entry, err := m.draftBan(ctx, now, actor, e, reason)
	if err != nil {
		return Ban{}, err
	}
	entry.Action, entry.Safety = moderation.ActionBan, s
	if entry, err = m.append(ctx, now, entry); err != nil {
		return Ban{}, err
	}
	return m.withWalk(entry), nil
}

// Lift ends the ban that an entry began. The links that it meant get the safety that they
// have without it. ErrNotFound when that ban does not stand, or was replaced.
func (m *Moderator) Lift(ctx context.Context, now time.Time, actor string, sequence uint64, reason string) (moderation.Entry, error) {
	ban, ok := m.ActiveBan(sequence)
	if !ok {
		return moderation.Entry{}, fmt.Errorf("lift the ban of entry %d: %w", sequence, moderation.ErrNotFound)
	}
	entry, err := m.draftBan(ctx, now, actor, ban.Entry.Entity, reason)
	if err != nil {
		return moderation.Entry{}, err
	}
	entry.Link, entry.Action, entry.Safety = ban.Entry.Link, moderation.ActionLift, link.Clean
	return m.append(ctx, now, entry)
}

// draftBan returns the entry of a ban or a lift, without what it does.
func (m *Moderator) draftBan(ctx context.Context, now time.Time, actor string, e moderation.Entity, reason string) (moderation.Entry, error) {
	if err := moderation.CheckReason(reason); err != nil {
		return moderation.Entry{}, err
	}
	e, err := moderation.ParseEntity(e.Kind, e.Name)
	if err != nil {
		return moderation.Entry{}, err
	}
	entry := moderation.Entry{At: instant(now), Entity: e, Actor: actor}
	if k, ok := e.Key(); ok {
		l, err := m.cfg.Links.Get(ctx, k)
		if err != nil {
			return moderation.Entry{}, fmt.Errorf("ban %s: %w", e, m.cfg.Pending(ctx, k, err))
		}
		entry.Link = l.ID
	}
	return entry, fill(m.cfg.Random, &entry, reason, "")
}

// append writes a ban or a lift down, then lets it be known, then lets Run look for the
// links; the link of a ban of one is changed at once. A lift that another came before is
// written down and does nothing.
func (m *Moderator) append(ctx context.Context, now time.Time, e moderation.Entry) (moderation.Entry, error) {
	stored, err := m.bans.append(ctx, e)
	if err != nil {
		return moderation.Entry{}, fmt.Errorf("%s %s: %w", e.Action, e.Entity, err)
	}
	if k, ok := e.Entity.Key(); ok {
		_, _ = m.Apply(context.WithoutCancel(ctx), now, k) // what fails is done by Run, which tells
	}
	m.follower.poke()
	return stored, nil
}

// Bans returns the bans that stand, the newest first.
func (m *Moderator) Bans() []Ban {
	entries := m.bans.All()
	bans := make([]Ban, len(entries))
	for i := range entries {
		bans[i] = m.withWalk(entries[i])
	}
	return bans
}

// BansOf returns the bans that mean a link, oldest first.
func (m *Moderator) BansOf(l *link.Link) []Ban {
	found := map[uint64]moderation.Entry{}
	m.bans.Each(l, func(b moderation.Entry, ok bool) {
		if ok {
			found[b.Sequence] = b
		}
	})
	var bans []Ban
	for _, sequence := range slices.Sorted(maps.Keys(found)) {
		bans = append(bans, m.withWalk(found[sequence]))
	}
	return bans
}

// ActiveBan returns the ban that an entry began, if it stands.
func (m *Moderator) ActiveBan(sequence uint64) (Ban, bool) {
	for _, e := range m.bans.All() {
		if e.Sequence == sequence {
			return m.withWalk(e), true
		}
	}
	return Ban{}, false
}

// withWalk adds the walk of a ban.
func (m *Moderator) withWalk(e moderation.Entry) Ban {
	b := Ban{Entry: e}
	if e.Entity.Kind == moderation.KindNetwork || e.Entity.Kind == moderation.KindLink {
		return b
	}
	f := m.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Sequence > f.progress.Applied {
		b.Walk = &moderation.Walk{}
	}
	for _, w := range f.progress.Walks {
		for _, walked := range w.Entities {
			if walked == e.Entity {
				b.Walk = &moderation.Walk{Seen: w.Seen, Changed: w.Changed}
			}
		}
	}
	return b
}

const (
	// previewTime bounds a preview: whoever asks waits for it.
	previewTime = 2 * time.Second
	// sampleSize is how many links a preview shows.
	sampleSize = 10
)

// Preview is what a ban would mean for the links that there are.
type Preview struct {
	Entity   moderation.Entity // as the journal would know it
	Links    uint64            // that it means; at least so many unless Complete
	Seen     uint64            // links that were looked at, the newest first
	Complete bool              // all were
	Sample   []link.Link
}

// Preview counts the links that a ban of e would mean, without banning anything. It looks
// at the newest first, for two seconds at most. Errors: InvalidError, those of the links.
func (m *Moderator) Preview(ctx context.Context, e moderation.Entity) (Preview, error) {
	e, err := moderation.ParseEntity(e.Kind, e.Name)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Entity: e}
	switch e.Kind {
	case moderation.KindNetwork, moderation.KindDestination: // no link says from where it was made; no ban means a destination
		p.Complete = true
		return p, nil
	case moderation.KindLink:
		k, _ := e.Key()
		l, err := m.cfg.Links.Get(ctx, k)
		if err != nil {
			return Preview{}, fmt.Errorf("preview: %w", err)
		}
		p.add(&l)
		p.Seen, p.Complete = 1, true
		return p, nil
	default:
	}
	set, w := meant(e), moderation.Walk{Entities: []moderation.Entity{e}}
	for began, at := m.cfg.Now(), link.Cursor(""); ; {
		err := m.cfg.Yielder.Queue(ctx, func(ctx context.Context) error {
			page, err := m.cfg.Links.List(ctx, w.Filter(), link.Page{After: at, Limit: walkPage})
			p.count(page.Links, set)
			at = page.Next
			return err
		})
		if err != nil {
			return Preview{}, fmt.Errorf("preview: %w", err)
		}
		if at == "" || m.cfg.Now().Sub(began) >= previewTime {
			p.Complete = at == ""
			return p, nil
		}
	}
}

// count adds those of a page that the ban means.
func (p *Preview) count(page []link.Link, set *bans.Set) {
	for i := range page {
		if p.Seen++; set.Safety(&page[i]) > link.Clean {
			p.add(&page[i])
		}
	}
}

func (p *Preview) add(l *link.Link) {
	if p.Links++; len(p.Sample) < sampleSize {
		p.Sample = append(p.Sample, *l)
	}
}
