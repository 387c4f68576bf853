package auth

import (
	"context"
	"time"

	"curt/internal/link"
)

// KeyFilter says which keys a walk shows.
type KeyFilter struct {
	Workspace link.WorkspaceID // "" = all
}

// KeyPage is a place in a walk, newest key first.
type KeyPage struct {
	Before link.ID // the last key of the page before; zero = from the newest
	Limit  int     // 1 to MaxKeyPage
}

// MaxKeyPage bounds a page of keys.
const MaxKeyPage = 100

// Found is what a store knows of a secret.
type Found struct {
	Key   Key
	Sum   Sum       // as stored: the caller compares it in constant time
	Until time.Time // the secret was rotated away and works until then; zero = it is current
}

// Store keeps keys and the workspaces that they belong to. It is safe for many
// goroutines and processes; a write is durable when it returns nil, and is seen by
// every read that begins afterwards. Times are kept to the millisecond.
//
// Errors are ErrNoKey, and link.ErrUnavailable when the store cannot be asked. A write
// that returned link.ErrUncertain, or any other error, may have happened. A Store does not judge
// scopes, names or times: it keeps them.
type Store interface {
	// Create stores a key with the digest of its secret. A workspace that is new is
	// made, with the plan or with PlanRegistered; of one that is there a plan that is
	// not "" replaces the old. It returns the key as stored. An ID or a Sum that is
	// there already is link.ErrExists, and nothing changes.
	Create(ctx context.Context, k Key, plan Plan, sum Sum) (Key, error)

	// Find returns the key of a secret, expired ones too; ErrNoKey for a secret that
	// was revoked, rotated away before the last rotation, or never there. Whether
	// Until has passed is the caller's to see.
	Find(ctx context.Context, sum Sum) (Found, error)

	// Get returns a key.
	Get(ctx context.Context, id link.ID) (Key, error)

	// List returns a page of keys, newest first, without gaps or repeats while others
	// are made or revoked. Fewer than the limit = the end.
	List(ctx context.Context, f KeyFilter, p KeyPage) ([]Key, error)

	// Revoke forgets the key and all of its secrets, for good. With keepShares what it
	// shared stands; that is as durable as the rest, and in the same step.
	Revoke(ctx context.Context, id link.ID, keepShares bool) error

	// Vouches reports whether what a key shared stands: the key is there, be it expired,
	// or was revoked with keepShares. Of an ID that never was a key's it is false.
	Vouches(ctx context.Context, id link.ID) (bool, error)

	// Rotate gives the key another secret. The one that was current works until the
	// given time, and no more when that is zero; all before it stop at once.
	Rotate(ctx context.Context, id link.ID, sum Sum, until time.Time) (Key, error)

	// Touch notes when keys were used. A time that is older than the one stored, or of
	// a key that is gone, changes nothing.
	Touch(ctx context.Context, used map[link.ID]time.Time) error
}
