package moderation

import (
	"context"
	"errors"

	"curt/internal/link"
)

// Journal is append-only. It is safe for many goroutines and, where the store is shared,
// processes; its errors are ErrInvalid, ErrNotFound, and link.ErrUnavailable when it
// cannot be asked. Any other error of a write means "may have happened".
type Journal interface {
	// Append stores the entries, all or none, in one durable write, and returns them with
	// Sequence and Hash, which are set here: the chain has one order. An At before that of
	// the last entry is moved up to it.
	Append(ctx context.Context, entries ...Entry) ([]Entry, error)

	// Read returns up to n entries behind a sequence, in order.
	Read(ctx context.Context, after uint64, n int) ([]Entry, error)

	// Of returns up to n entries about one entity, the newest first, that lie before a
	// sequence; 0 = from the end.
	Of(ctx context.Context, e Entity, before uint64, n int) ([]Entry, error)

	// Standing returns the newest ActionDecide or ActionAnswer of a link: what was decided
	// about it, bans aside. ErrNotFound when nothing ever was. It goes by the id, because
	// a key is more than one link's: an entry is written before its link is stored, and a
	// link whose key turns out to be taken never is. Such an entry says nothing about the
	// link that has the key, and whoever reads by keys compares Link first.
	Standing(ctx context.Context, id link.ID) (Entry, error)

	// Bans returns the bans that stand: each entity whose newest ActionBan has no later
	// ActionLift.
	Bans(ctx context.Context) ([]Entry, error)

	// Erase takes the texts of one entry away, for good, and appends the ActionErase that
	// says so, in one durable write. The chain verifies as before.
	Erase(ctx context.Context, sequence uint64, by Entry) (Entry, error)
}

// ErrNotFound: the journal was asked and has no such entry.
var ErrNotFound = errors.New("journal entry not found")

