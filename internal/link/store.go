package link

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
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
	// ErrConflict, also one of WithoutContent, so that of a change that revives an expired link and
	// the removal of its content one wins); the workspace may, and who counted on the old one hears of it as of any
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
	// ever. A link that is created, changed or becomes visible behind the cursor is not
	// returned any more: [EventLog] and [CreateLog] have it.
	Expired(ctx context.Context, after Cursor, before time.Time, n int) ([]Key, Cursor, error)

	// Changes returns up to n changes after a position, and the position behind them; fewer
	// are the end. Those of one partition come in order and without a hole, and a change is
	// visible only once all before it in its partition are, so that a reader who goes on
	// from there misses nothing. Partitions come in any order: where a key moved between
	// them, its changes are in order by their versions. ErrConflict: what followed the
	// position was trimmed, or the log ends before it; the reader starts again from Head.
	// Another error may come with the changes before it, and the position behind them.
	Changes(ctx context.Context, after Position, n int) ([]Change, Position, error)

	// Head returns the position behind the newest visible changes.
	Head(ctx context.Context) (Position, error)

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
	// [Link.Equivalent]), among the MaxTwins oldest that may. ErrNotFound when there
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

// Sequence numbers a partition of the change log from 1.
type Sequence uint64

// Change is what a cache needs of an entry of the change log: from now on nothing below Version
// may be served for Key. An entry without a Key is no write of a link; [Event] says what it is.
type Change struct {
	Partition uint16 // below MaxPartitions; 0 where there is one
	Sequence  Sequence
	Key       Key
	Version   Version
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

// GetMany reads any number of links, in as few questions as the store can be asked in. The
// zero Link stands for one that is not there, and for one that is damaged.
func GetMany(ctx context.Context, s Store, keys []Key) ([]Link, error) {
	links := make([]Link, 0, len(keys))
	many, ok := s.(ManyGetter)
	if !ok {
		for _, k := range keys {
			l, err := s.Get(ctx, k)
			if err != nil && !Absent(err) {
				return nil, err
			}
			links = append(links, l)
		}
		return links, nil
	}
	for chunk := range slices.Chunk(keys, MaxPage) {
		some, err := many.GetMany(ctx, chunk)
		if err != nil {
			return nil, err
		}
		links = append(links, some...)
	}
	return links, nil
}

// Absent reports whether an error of Get means this one link alone: it is not there, or it is
// damaged.
func Absent(err error) bool {
	_, damaged := errors.AsType[*DamagedError](err)
	return damaged || errors.Is(err, ErrNotFound)
}

// Tag stands for the filter in cursors, so that one cannot be used with another filter.
func (f Filter) Tag() string {
	domain := "*"
	if f.Domain != nil {
		domain = "=" + string(*f.Domain)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %x %t", f.Workspace, domain, f.Status, f.Since, f.Oldest))
	return hex.EncodeToString(sum[:8])
}

// BadCursor is the error of a cursor that no store gave, or not for this walk.
func BadCursor(c Cursor) error { return fmt.Errorf("cursor %q: %w", c, ErrInvalid) }

// NumberedKey is a position of a walk in the order of a number, such as a time, and of keys.
type NumberedKey struct {
	N   int64
	Key Key
}

// Cursor returns the position as a cursor.
func (p NumberedKey) Cursor() Cursor {
	return Cursor(strconv.FormatInt(p.N, 10) + "/" + p.Key.String())
}

// ParseNumberedKey returns the position of a cursor; that of "" is before every key.
func ParseNumberedKey(c Cursor) (NumberedKey, error) {
	if c == "" {
		return NumberedKey{N: math.MinInt64}, nil
	}
	number, rest, _ := strings.Cut(string(c), "/")
	domain, code, ok := strings.Cut(rest, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	p := NumberedKey{n, Key{Domain(domain), Code(code)}}
	if err != nil || !ok || p.Key.Validate() != nil {
		return NumberedKey{}, BadCursor(c)
	}
	return p, nil
}
