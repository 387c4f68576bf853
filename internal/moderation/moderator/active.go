package moderator

import (
	"context"
	"fmt"
	"sync"

	"curt/internal/moderation"
	"curt/internal/moderation/bans"
)

// activeBans are the active bans in memory, in step with the journal.
type activeBans struct {
	*bans.Set

	journal moderation.Journal

	mu     sync.Mutex                   // held from the append of a ban or a lift until it is in Set
	loaded uint64                       // bans were loaded with all entries up to this one; set once
	ahead  map[moderation.Entity]uint64 // the newest entry of this process that the follower has not reached; guarded by mu
}

func newActiveBans(journal moderation.Journal, active []moderation.Entry) *activeBans {
	b := &activeBans{Set: bans.New(active...), journal: journal, ahead: map[moderation.Entity]uint64{}}
	if len(active) > 0 {
		b.loaded = active[len(active)-1].Sequence
	}
	return b
}

// append writes a ban or a lift into the journal, and then into memory.
func (b *activeBans) append(ctx context.Context, e moderation.Entry) (moderation.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	stored, err := b.journal.Append(ctx, e)
	if err != nil {
		return moderation.Entry{}, err
	}
	b.learn(&stored[0])
	b.ahead[stored[0].Entity] = stored[0].Sequence
	return stored[0], nil
}

// publish takes a ban or a lift from the journal, unless memory has it: append takes those of this
// process sooner. An entry of a peer is new also where one of this process came later.
func (b *activeBans) publish(e *moderation.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.ahead[e.Entity]
	if e.Sequence >= own {
		delete(b.ahead, e.Entity)
	}
	if e.Sequence > b.loaded && e.Sequence > own {
		b.learn(e)
	}
}

// learn changes what is banned; mu is held.
func (b *activeBans) learn(e *moderation.Entry) {
	if e.Action == moderation.ActionBan {
		b.Put(*e)
	} else {
		b.Drop(e.Entity)
	}
}

// erase erases the texts of an entry from the journal, and from the active ban that has them.
func (b *activeBans) erase(ctx context.Context, of moderation.Entity, sequence uint64, by moderation.Entry) (moderation.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	erasure, err := b.journal.Erase(ctx, sequence, by)
	if err != nil {
		return moderation.Entry{}, err
	}
	if ban, ok := b.Of(of); ok && ban.Sequence == sequence {
		ban.Reason, ban.Evidence = ban.Reason.Erase(), ban.Evidence.Erase()
		b.Put(ban)
	}
	return erasure, nil
}

// reload replaces the active ban of an entity by its entry, whose texts a peer may have erased.
func (b *activeBans) reload(ctx context.Context, of moderation.Entity) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ban, ok := b.Of(of)
	if !ok {
		return nil
	}
	found, err := b.journal.Read(ctx, ban.Sequence-1, 1)
	if err != nil {
		return fmt.Errorf("read erasures: %w", err)
	}
	if len(found) == 1 && found[0].Sequence == ban.Sequence {
		b.Put(found[0])
	}
	return nil
}
