package link

import (
	"context"
	"time"
)

// Store keeps links. All methods may be called by many goroutines at once, end
// within a bound when ctx does (and then wrap context.Cause(ctx)), and after
// Close return ErrUnavailable.
//
// A write that returned nil is durable: it survives the death of the process and,
// unless the driver's documentation says otherwise, of the machine's power. A
// write that returned ErrUncertain, or an error that is no sentinel, "may have happened":
// retrying Create with the same ID is safe, and [Update] re-reads.
//
// There is no Delete: removal is a Replace by [Link.Tombstone], and the key stays
// taken for ever.
type Store interface {
	// Lookup returns what a redirect needs. It may lag behind by the bound that
	// the driver declares, but ErrNotFound is only ever the primary's answer.
	Lookup(ctx context.Context, k Key) (Target, error)

	// Get returns the whole link as the last acknowledged write left it, also
	// when another process made that write.
	Get(ctx context.Context, k Key) (Link, error)

	// Create stores a new link; l.Version is ignored and the result has version 1.
	// Exactly one caller wins a key, the rest get ErrExists, for ever. The same ID
	// and key again returns the link as it stands now, in whichever workspace. A link that
	// fails Validate is ErrInvalid. Of a Deleted link only what Tombstone keeps is stored, by
	// Replace too.
	//
	// An ID is one link's. A store that sees it come with another key may say ErrConflict; no
	// caller counts on that, as a store of several shards sees only one of them.
	Create(ctx context.Context, l Link) (Link, error)

	// Replace stores l over the version l.Version and returns it with the next
	// version. It is a compare-and-swap: ErrConflict when the stored version is
	// another, ErrNotFound when there is no such key. ID, Key, CodeKind, Created,
	// MaxClicks' counter Spent and a tombstone never change (a tombstone is
	// ErrConflict); the workspace may, and who counted on the old one hears of it as of any
	// change. Each Replace, and each Create of a Chosen code,
	// appends to the change log in the same transaction, with what e says of it.
	Replace(ctx context.Context, l Link, e Edit) (Link, error)

	// List returns a page of links in the order of f, without tombstones. A page
	// may be short, even empty, before the end: a driver bounds what one call reads
	// when the filter matches few links. Only an empty Next is the end.
	// A walk from the empty cursor to the empty cursor sees every link that
	// existed throughout exactly once, whatever is inserted meanwhile. A cursor
	// that List did not make, or made for another filter, is ErrInvalid.
	List(ctx context.Context, f Filter, p Page) (Slice, error)

	// Expired returns up to n keys of active links whose expiry lies at or before
	// the given time, by (expiry, domain, code) and after the cursor. The cursor
	// after the last is returned, after itself when there is none; it stays good for
	// ever.
	Expired(ctx context.Context, after Cursor, before time.Time, n int) ([]Key, Cursor, error)

	// Changes returns up to n changes with a sequence above after, in order. A
	// sequence is visible only once all lower ones are, so a reader that polls
	// with the last sequence seen misses nothing. A reader whose position was
	// trimmed away gets ErrConflict and starts again from Head.
	Changes(ctx context.Context, after Sequence, n int) ([]Change, error)

	// Head returns the sequence of the newest visible change; 0 = none yet.
	Head(ctx context.Context) (Sequence, error)

	// Chosen walks the keys of links with Chosen codes, tombstones
	// included: what the filter of "never issued" codes is filled from.
	Chosen(ctx context.Context, after Cursor, n int) ([]Key, Cursor, error)

	// Close ends the handle; what was acknowledged stays.
	Close() error
}

// Batcher is a Store that creates many links in one durable write.
type Batcher interface {
	// CreateMany is, for each entry in turn, Create, or FindOrCreate at now where it
	// says Dedupe; later entries meet what earlier ones made. There is a result for
	// each in order. The error is for the whole call: then any of them may have
	// happened, and the same call may be made again.
	CreateMany(ctx context.Context, now time.Time, entries []Creation) ([]Result, error)
}

// Creation asks for one link of a batch.
type Creation struct {
	Link   Link
	Dedupe bool // only of a store that is a Deduper, else ErrInvalid
}

// Result is the outcome of one Creation.
type Result struct {
	Link  Link
	Found bool // Link is an existing one that stands in
	Err   error
}

// Spender counts down the clicks of links with MaxClicks, exactly, across
// processes.
type Spender interface {
	// Spend takes up to n of the clicks that k has left and returns how many were
	// granted; fewer than n means that the link is exhausted. ErrNotFound when
	// there is no such link or only its tombstone; a link without a bound grants n. It does not change
	// the version. The call that takes the last click appends [WasExhausted] to the change log in
	// the same transaction; no other one appears there.
	Spend(ctx context.Context, k Key, n uint64) (granted uint64, err error)
}

// MaxTwins is how many links a Deduper looks at for one question: those of one
// workspace with one destination and one expiry. It bounds the time of a caller who
// made thousands of them that differ in something else.
const MaxTwins = 1000

// Deduper gives an existing link to those who would otherwise make the same again.
type Deduper interface {
	// FindSame returns the oldest link that stands in for wanted at now (see
	// [Link.StandsInFor]), among the MaxTwins oldest that may. ErrNotFound when there
	// is none. wanted needs no ID and no code. It writes nothing.
	FindSame(ctx context.Context, wanted Link, now time.Time) (Link, error)

	// FindOrCreate is FindSame, and Create of l where that finds nothing, in one
	// step: of many callers at once who want the same, exactly one creates it. found
	// says that another link than l is returned; a call that is repeated with the
	// same ID and key finds its own link and says false.
	FindOrCreate(ctx context.Context, l Link, now time.Time) (stored Link, found bool, err error)
}

// ManyGetter is a Store that reads many links at once, where each Get would take a round trip.
type ManyGetter interface {
	// GetMany is Get of each key in turn, MaxPage of them at most, and one may come twice. The
	// zero Link stands for one that is not there, and for one that is damaged.
	GetMany(ctx context.Context, keys []Key) ([]Link, error)
}

// Discarder is a Store that can let go of a link that is damaged.
type Discarder interface {
	// Discard leaves a tombstone in the place of a link for which Get returns a
	// DamagedError, and appends to the change log. Its version is above every one that the
	// link had, its workspace, id and time of creation are kept where they can be read. A
	// link that is not damaged is ErrConflict; a key that is not there ErrNotFound.
	Discard(ctx context.Context, k Key, now time.Time) (Link, error)
}

// Backend is all that a store of links owes a server; what else there is (ManyGetter, Discarder,
// EventLog) is taken where it is offered. Keys, leases and accounts are no business of a store of links.
type Backend interface {
	Store
	Batcher
	Spender
	Deduper

	// Healthy returns nil while the store takes writes. It does no I/O.
	Healthy() error

	// Run looks after the store until ctx ends.
	Run(ctx context.Context) error
}

// LogBounds say how much of the change log is kept for followers of a fleet that have not read it.
// Without them its newest ChangeLog entries are kept, whoever reads.
type LogBounds struct {
	Age   time.Duration // of the oldest entry
	Bytes int64         // of all entries, about
}

// DefaultLogBounds are a week and a gigabyte.
func DefaultLogBounds() LogBounds { return LogBounds{Age: 7 * 24 * time.Hour, Bytes: 1 << 30} }

// Sequence numbers the change log from 1.
type Sequence uint64

// Change is what a cache needs of an entry of the change log: from now on nothing below Version
// may be served for Key. An entry without a Key is no write of a link; [Event] says what it is.
type Change struct {
	Sequence Sequence
	Key      Key
	Version  Version
}

// Cursor is a position in a walk; the empty one is the start and, in a result, the
// end. Its bytes are the driver's own: callers pass them back untouched, and sign
// them before they give them to strangers.
type Cursor string

// Filter chooses links and their order. Zero fields do not filter.
type Filter struct {
	Workspace WorkspaceID // "" = all workspaces
	Domain    *Domain
	Status    Status
	Since     ID   // only links with this id or a later one
	Oldest    bool // by age, oldest first; default newest first
}

// Page asks for up to Limit links (1 to MaxPage) after a cursor.
type Page struct {
	After Cursor
	Limit int
}

// MaxPage is the most links one List may ask for.
const MaxPage = 1000

// Slice is one page of links; Next is empty at the end.
type Slice struct {
	Links []Link
	Next  Cursor
}
