package moderation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"curt/internal/link"
)

// Ban is a ban that stands.
type Ban struct {
	Entry Entry
	Walk  *Walk // through the links that were there before it; nil = it is over
}

// Ban bans an entity from now on: nothing that it means can be made any more once the
// journal has it, and the links that it means get at least the safety, newest first, while
// Run runs. A ban that stands is replaced. Errors: InvalidError, link.ErrNotFound for a
// link that is not there, and those of the journal.
func (m *Moderator) Ban(ctx context.Context, now time.Time, actor string, e Entity, s link.Safety, reason string) (Ban, error) {
	if s <= link.Clean || s > link.Legal {
		return Ban{}, invalid("safety", "want warn, quarantined, blocked or legal")
	}
	entry, err := m.draftBan(ctx, now, actor, e, reason)
	if err != nil {
		return Ban{}, err
	}
	entry.Action, entry.Safety = ActionBan, s
	if entry, err = m.append(ctx, now, entry); err != nil {
		return Ban{}, err
	}
	return m.withWalk(entry), nil
}

// Lift ends the ban that an entry began. The links that it meant get the safety that they
// have without it. ErrNotFound when that ban does not stand, or was replaced.
func (m *Moderator) Lift(ctx context.Context, now time.Time, actor string, sequence uint64, reason string) (Entry, error) {
	ban, ok := m.Standing(sequence)
	if !ok {
		return Entry{}, fmt.Errorf("lift the ban of entry %d: %w", sequence, ErrNotFound)
	}
	entry, err := m.draftBan(ctx, now, actor, ban.Entry.Entity, reason)
	if err != nil {
		return Entry{}, err
	}
	entry.Link, entry.Action, entry.Safety = ban.Entry.Link, ActionLift, link.Clean
	return m.append(ctx, now, entry)
}

// draftBan returns the entry of a ban or a lift, without what it does.
func (m *Moderator) draftBan(ctx context.Context, now time.Time, actor string, e Entity, reason string) (Entry, error) {
	if err := checkReason(reason); err != nil {
		return Entry{}, err
	}
	e, err := ParseEntity(e.Kind, e.Name)
	if err != nil {
		return Entry{}, err
	}
	entry := Entry{At: instant(now), Entity: e, Actor: actor}
	if k, ok := e.Key(); ok {
		l, err := m.cfg.Links.Get(ctx, k)
		if err != nil {
			return Entry{}, fmt.Errorf("ban %s: %w", e, err)
		}
		entry.Link = l.ID
	}
	return entry, m.fill(&entry, reason, "")
}

// append writes a ban or a lift down, then lets it be known, then lets Run look for the
// links; the link of a ban of one is settled at once. A lift that another came before is
// written down and does nothing.
func (m *Moderator) append(ctx context.Context, now time.Time, e Entry) (Entry, error) {
	stored, err := m.write(ctx, e)
	if err != nil {
		return Entry{}, fmt.Errorf("%s %s: %w", e.Action, e.Entity, err)
	}
	if k, ok := e.Entity.Key(); ok {
		_, _ = m.Settle(context.WithoutCancel(ctx), now, k) // what fails is done by Run, which tells
	}
	m.poke()
	return stored, nil
}

func (m *Moderator) write(ctx context.Context, e Entry) (Entry, error) {
	m.banning.Lock()
	defer m.banning.Unlock()
	stored, err := m.cfg.Journal.Append(ctx, e)
	if err != nil {
		return Entry{}, err
	}
	m.learn(&stored[0])
	return stored[0], nil
}

// Bans returns the bans that stand, the newest first.
func (m *Moderator) Bans() []Ban {
	entries := m.bans.all()
	bans := make([]Ban, len(entries))
	for i := range entries {
		bans[i] = m.withWalk(entries[i])
	}
	return bans
}

// BansOf returns the bans that mean a link, oldest first.
func (m *Moderator) BansOf(l *link.Link) []Ban {
	found := map[uint64]Entry{}
	m.bans.each(l, func(b Entry, ok bool) {
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

// Standing returns the ban that an entry began, if it stands.
func (m *Moderator) Standing(sequence uint64) (Ban, bool) {
	for _, e := range m.bans.all() {
		if e.Sequence == sequence {
			return m.withWalk(e), true
		}
	}
	return Ban{}, false
}

// withWalk adds the walk of a ban.
func (m *Moderator) withWalk(e Entry) Ban {
	b := Ban{Entry: e}
	if e.Entity.Kind == KindNetwork || e.Entity.Kind == KindLink {
		return b
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Sequence > m.progress.Applied {
		b.Walk = &Walk{}
	}
	for _, w := range m.progress.Walks {
		for _, walked := range w.Entities {
			if walked == e.Entity {
				b.Walk = &Walk{Seen: w.Seen, Changed: w.Changed}
			}
		}
	}
	return b
}
