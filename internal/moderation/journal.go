package moderation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"curt/internal/link"
)

// Journal is append-only. It is safe for many goroutines and, where the store is shared,
// processes; its errors are ErrInvalid, ErrNotFound, and link.ErrUnavailable when it
// cannot be asked. A write that returned link.ErrUncertain, or any other error, may have
// happened. A call whose context has ended returns its cause; after the end of the store it is
// link.ErrUnavailable.
type Journal interface {
	Reader

	// Append stores the entries, all or none, in one durable write, and returns them with
	// Sequence and Hash, which are set here: the chain has one order. An At before that of
	// the last entry is moved up to it. One that fails Validate, and more than MaxAppend
	// at once, are ErrInvalid; none is nothing.
	Append(ctx context.Context, entries ...Entry) ([]Entry, error)

	// Find returns up to n entries that f chooses, the newest first, that lie before a
	// sequence; 0 = from the end.
	Find(ctx context.Context, f Filter, before uint64, n int) ([]Entry, error)

	// EffectiveDecision returns what was decided about a link, bans aside: its newest ActionDecide
	// or ActionAnswer, but for a newer one of ActorPolicy that is less grave than the
	// newest of a person ([Prevailing]): it does not lower what a person decided, not even one
	// that was under way when the person did. ErrNotFound when nothing ever was decided.
	// It goes by the id, because
	// a key is more than one link's: an entry is written before its link is stored, and a
	// link whose key turns out to be taken never is. Such an entry says nothing about the
	// link that has the key, and whoever reads by keys compares Link first.
	EffectiveDecision(ctx context.Context, id link.ID) (Entry, error)

	// Bans returns the bans that stand, in order: of each entity the newest ActionBan,
	// where no ActionLift came later.
	Bans(ctx context.Context) ([]Entry, error)

	// Verdicts returns the decisions about destinations, in order.
	Verdicts(ctx context.Context) ([]Entry, error)

	// Erase takes the texts of one entry away, for good, and appends by, an ActionErase
	// that says so, in one durable write. It returns by as Append does. The chain verifies
	// as before. ErrNotFound when there is no such entry; one that has no text left is
	// erased again.
	Erase(ctx context.Context, sequence uint64, by Entry) (Entry, error)
}

// Appendable returns the error of an Append of entries that no journal may take, and nil
// of others; stores may have reasons of their own.
func Appendable(entries []Entry) error {
	if len(entries) > MaxAppend {
		return fmt.Errorf("append to the journal: %w: %d entries at once", ErrInvalid, len(entries))
	}
	for i := range entries {
		if e := &entries[i]; strings.ContainsRune(e.Entity.Name+e.Actor, 0) { // no database keeps it as text
			return fmt.Errorf("append to the journal: %w: a name with a NUL, of %s", ErrInvalid, e.Entity)
		}
		if err := entries[i].Validate(); err != nil {
			return fmt.Errorf("append to the journal: %w", err)
		}
	}
	return nil
}

// Prevailing returns which of two decisions about a link stands: its newest, or the newest
// that a person made, whose Sequence is 0 when there is none.
func Prevailing(newest, person Entry) Entry {
	if newest.Actor == ActorPolicy && person.Safety > newest.Safety {
		return person
	}
	return newest
}

// Filter chooses entries; zero fields choose all.
type Filter struct {
	Entity Entity
	Actor  string
	Since  time.Time // entries of this millisecond and later
}

// ActiveBans returns the bans that stand after entries that are in order: of each
// entity the newest ActionBan, where no ActionLift came later. Other entries are passed
// over.
func ActiveBans(entries []Entry) []Entry {
	newest := map[Entity]uint64{}
	for i := range entries {
		if e := &entries[i]; e.Action == ActionBan || e.Action == ActionLift {
			newest[e.Entity] = e.Sequence
		}
	}
	var bans []Entry
	for i := range entries {
		if e := &entries[i]; e.Action == ActionBan && newest[e.Entity] == e.Sequence {
			bans = append(bans, *e)
		}
	}
	return bans
}

// The errors of this package, tested with errors.Is; a store that cannot be asked is
// link.ErrUnavailable.
var (
	// ErrInvalid: an entry that no journal may hold; a retry cannot help.
	ErrInvalid = errors.New("invalid journal entry")
	// ErrNotFound: the journal was asked and has no such entry.
	ErrNotFound = errors.New("journal entry not found")
	// ErrBroken: the journal does not say what was appended.
	ErrBroken = errors.New("the hash chain of the journal is broken")
)
