package moderation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"time"

	"curt/internal/link"
)

// Destination is a URL that the score kept an account from linking to, with what a moderator
// decided about it. It is the subject of a case that has no link: the Ref of the case has its ID
// and no key.
type Destination struct {
	ID        link.ID // names the case to its creator
	Workspace link.WorkspaceID
	Digest    Hash   // DigestOf the URL
	URL       string // "" once erased
	CreatedBy string // the id of the key of the first create; "" = none, or erased
	Network   uint64 // keyed digest of the network of the first create, for its day only; 0 = unknown, or erased
	Score     int    // of the first create
	Evidence  string // the findings as JSON; "" once erased

	Refused     int // creates before the decision
	First, Last time.Time

	Decided  link.Safety // 0 = not yet
	Everyone bool        // the decision is for all workspaces
	At       time.Time   // of the decision
	Sequence uint64      // of its entry in the journal

	Erased bool
}

// DestinationRetention is how long the URL of a destination is stored, from its first create or its
// decision: a URL that was refused may be private.
const DestinationRetention = 30 * 24 * time.Hour

// AllowedFor is how long servers may refuse what was allowed, as they follow the journal.
const AllowedFor = time.Minute

// DigestOf returns what remains of a URL when it is erased, by which it is recognised.
func DigestOf(url string) Hash { return sha256.Sum256([]byte("curt destination 1\x00" + url)) }

// OfDestination returns the entity of a destination: the name is the workspace that the decision
// is for, empty for all, and the digest.
func OfDestination(w link.WorkspaceID, digest Hash) Entity {
	return Entity{KindDestination, string(w) + "/" + hex.EncodeToString(digest[:])}
}

// Destination returns the parts of the entity of a destination.
func (e Entity) Destination() (w link.WorkspaceID, digest Hash, ok bool) {
	cut := strings.LastIndexByte(e.Name, '/')
	if e.Kind != KindDestination || cut < 0 || len(e.Name)-cut-1 != hex.EncodedLen(len(digest)) {
		return "", digest, false
	}
	_, err := hex.Decode(digest[:], []byte(e.Name[cut+1:]))
	return link.WorkspaceID(e.Name[:cut]), digest, err == nil
}

// Allows reports whether a decision about a destination lets links be created.
func Allows(s link.Safety) bool { return s < link.Blocked }

// BlockedCreate is a create that the score blocked.
type BlockedCreate struct {
	Workspace link.WorkspaceID
	CreatedBy string
	Network   netip.Prefix // of the caller; never stored
	URL, Host string
	Score     int
	Evidence  string
	Count     int // rows of one request
}

// Refusal is a blocked create for the store.
type Refusal struct {
	Destination // ID is that of a new one

	Host string // of the URL
	Due  time.Time
}

// Bounds are how many destinations may wait for a decision: of an account, and first refused to one
// network on one day.
type Bounds struct{ Account, Network int }

// MaxRefusals bounds the refusals of one call.
const MaxRefusals = 100

// ErrNoDestination means that there is no such case, or that it was erased before a decision.
var ErrNoDestination = errors.New("no such case")

// Destinations are kept beside the cases. Closing decides about them.
type Destinations interface {
	// Refuse counts refusals, all of one workspace and one network, and opens a case for each
	// destination that the workspace was not refused before, or that was allowed more than
	// AllowedFor ago: what allowed it holds no longer. It returns the ids of the
	// destinations; zero where a bound is reached, and then nothing is stored. Of two processes
	// at once each may open as many as are left.
	Refuse(ctx context.Context, all []Refusal, b Bounds) ([]link.ID, error)

	// EraseDestination erases one at once, as Expire does; else ErrNoDestination.
	EraseDestination(ctx context.Context, id link.ID) error

	// Destination returns one; else ErrNoDestination.
	Destination(ctx context.Context, id link.ID) (Destination, error)

	// Expire erases up to n destinations that were refused, or decided about, before an instant,
	// and returns how many: of those without a decision nothing remains, of the others the digest
	// and the decision.
	Expire(ctx context.Context, before time.Time, n int) (int, error)
}
