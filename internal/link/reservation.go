package link

import (
	"context"
	"fmt"
	"time"
)

// Reserver is a Store that holds a key for a workspace that is about to create a link there.
//
// A reservation is no link: Lookup and Get answer ErrNotFound, and no List, walk, log or count has
// it. It is kept under the key of the link that it stands for, so that whatever creates there meets it:
// Create by another workspace gets a [HeldError], which is ErrExists; a Create of a code that is not
// Chosen gets ErrExists and takes the next one, whoever holds the key. The holder's Create of a Chosen
// code ends the reservation and stores the link in one write. A create that meets no reservation
// costs what it would cost in a store without them.
//
// Reservations go by one clock, that of the store: of the database where it has one, else of the machine.
// What the clocks of callers say does not matter. A reservation that lasts for longer than its whole time and
// [MaxSetback] was made before that clock was set back, and has lapsed.
type Reserver interface {
	// Reserve holds c.Key for c.Workspace, by one conditional write that succeeds where the key is
	// free, or reserved and lapsed. Where c.Workspace holds it already that reservation is returned as it
	// is, with found: it does not begin anew. ErrExists: a link has the key, or had it once. A HeldError:
	// another workspace holds it. ErrTooManyReservations: the workspace holds c.Most keys.
	// ErrInvalid: no link could have the key. An error that is no sentinel "may have happened", and
	// the same call may be made again.
	Reserve(ctx context.Context, c Claim) (r Reservation, found bool, err error)

	// Release ends a reservation of w, or of any workspace when w is "". ErrNotFound: there is none,
	// or it has lapsed.
	Release(ctx context.Context, k Key, w WorkspaceID) error

	// Occupants says what has each of up to MaxPage keys, in order, as the last acknowledged write left
	// it. It is one read.
	Occupants(ctx context.Context, keys []Key) ([]Occupant, error)

	// RemoveLapsed removes up to n reservations that have lapsed, and returns how many. They
	// hold nothing, but take space.
	RemoveLapsed(ctx context.Context, n int) (removed int, err error)
}

// Claim asks for a reservation.
type Claim struct {
	Key       Key
	Workspace WorkspaceID
	For       time.Duration // whole milliseconds, at least one
	Most      int           // keys that the workspace may hold at once, this one included
}

// Validate returns ErrInvalid, wrapped with the reason, for a claim that no store takes.
func (c *Claim) Validate() error {
	if err := c.Key.Validate(); err != nil {
		return err
	}
	if c.Workspace == "" || c.For < time.Millisecond || c.Most < 1 {
		return fmt.Errorf("%w: a reservation of %q for %s, one of %d", ErrInvalid, c.Workspace, c.For, c.Most)
	}
	return nil
}

// Reservation is a key that a workspace holds.
type Reservation struct {
	Key       Key
	Workspace WorkspaceID
	Until     time.Time     // by the store's clock, to the millisecond
	Left      time.Duration // until then, when the store answered
}

// Occupant is what has a key. The zero Occupant: it is free.
type Occupant struct {
	Linked      bool        // a link has it, or had it once
	Reservation Reservation // zero = none, or a lapsed one
}

// Held reports whether a reservation has the key.
func (o *Occupant) Held() bool { return o.Reservation.Workspace != "" }

// MaxSetback is by how much a clock may be set back without ending reservations.
const MaxSetback = 5 * time.Minute

// Lapsed reports whether a reservation from one time until another, in Unix milliseconds, holds
// nothing any more.
func Lapsed(since, until, now int64) bool {
	return now >= until || now < since-MaxSetback.Milliseconds()
}

// HeldError says that another workspace holds a key. It wraps ErrExists: whoever knows no
// reservations takes the key for taken, as it is for now.
type HeldError struct{ Reservation Reservation }

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is reserved for %s", e.Reservation.Key, e.Reservation.Left)
}

// Unwrap returns ErrExists.
func (e *HeldError) Unwrap() error { return ErrExists }
