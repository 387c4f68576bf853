package link

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Version counts the changes of a link: 1 when created, +1 on every Replace.
// Zero was never stored.
type Version uint64

// WorkspaceID names who owns a link. Every link has one from its first write.
type WorkspaceID string

// The workspaces that exist from the first start.
const (
	WorkspaceDefault   WorkspaceID = "default"
	WorkspaceAnonymous WorkspaceID = "anonymous" // links made without a key; admins only
)

// Status is the will of the owner and the operator. Its numbers are stored.
type Status uint8

// The statuses of a link.
const (
	Active   Status = 1
	Disabled Status = 2
	Deleted  Status = 3 // a tombstone: the content is gone, the key stays taken for ever
)

// Safety is the will of moderation, written by nobody else. Its numbers are stored.
type Safety uint8

// What moderation may have decided about a link.
const (
	Clean       Safety = 1
	Warn        Safety = 2
	Quarantined Safety = 3
	Blocked     Safety = 4
	Legal       Safety = 5
)

// String returns the name of s in the API.
func (s Safety) String() string {
	switch s {
	case Clean:
		return "clean"
	case Warn:
		return "warn"
	case Quarantined:
		return "quarantined"
	case Blocked:
		return "blocked"
	case Legal:
		return "legal"
	}
	return "unknown"
}

// ParseSafety is the inverse of String.
func ParseSafety(name string) (s Safety, ok bool) {
	for s := Clean; s <= Legal; s++ {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}

// CodeKind says whose code a link has. Its numbers are stored.
type CodeKind uint8

// The kinds of codes.
const (
	Chosen  CodeKind = 0 // somebody's choice, a hash or a random number: nothing follows from it
	Counted CodeKind = 1 // of codegen.Range: the permutation of a counter
)

// Redirect is the HTTP status of a link's answer (RFC 9110, section 15.4): one of
// 301, 302, 307, 308.
type Redirect uint16

// Valid reports whether r is one of the four redirects that curt answers.
func (r Redirect) Valid() bool { return r == 301 || r == 302 || r == 307 || r == 308 }

// Bounds of a link's fields, in bytes unless said otherwise. Stores may rely on them.
const (
	MaxDestination = 8192
	MaxTitle       = 512
	MaxTags        = 32 // tags
	MaxTag         = 64
	MaxName        = 64       // of Workspace and CreatedBy
	MaxExtra       = 16 << 10 // fields of a later release, as JSON
)

// Link is the whole resource; [Fields] is the table of its fields. Times are UTC with whole
// milliseconds; the zero time means none.
type Link struct {
	ID          ID
	Key         Key
	Destination string // an absolute http or https URL in WHATWG normal form
	Workspace   WorkspaceID
	Status      Status
	Safety      Safety
	Redirect    Redirect

	// CodeKind says whose code it is. The write path sets it; it never changes. Stores use it
	// for their layout, and put the Create of a Chosen code into the change log.
	CodeKind CodeKind

	Starts  time.Time // before it the link is unknown to visitors
	Expires time.Time // from this millisecond on the link is expired
	Created time.Time
	Updated time.Time

	MaxClicks uint64 // 0 = no bound
	Spent     uint64 // clicks granted by Spender; Create stores 0, Replace keeps the stored value
	Fallback  string // where expired and exhausted links lead; "" = nowhere

	ForwardQuery bool
	NoIndex      bool
	Cacheable    bool

	CreatedBy string // id of the key that made it; "" = anonymous
	Title     string
	Tags      []string // in the order given; nil when none
	Version   Version

	Later Later // of a later release
}

// Validate returns ErrInvalid, wrapped with the reason, for a link that no store
// may hold: a bad key, enum or bound, or a live link without destination. The
// rules of URLs are the write path's business, not the store's.
func (l Link) Validate() error {
	if err := l.Key.Validate(); err != nil {
		return err
	}
	fail := func(what string) error { return fmt.Errorf("%w: %s of %s", ErrInvalid, what, l.Key) }
	switch {
	case l.ID.IsZero():
		return fail("zero id")
	case l.Status < Active || l.Status > Deleted:
		return fail("status")
	case l.Safety < Clean || l.Safety > Legal:
		return fail("safety")
	case l.Workspace == "" || len(l.Workspace) > MaxName || len(l.CreatedBy) > MaxName:
		return fail("workspace or creator")
	case slices.ContainsFunc([]time.Time{l.Starts, l.Expires, l.Created, l.Updated}, badTime):
		return fail("time that is not UTC milliseconds")
	case l.Status == Deleted:
		return nil // a tombstone has no content: stores keep what Tombstone keeps
	case !l.Redirect.Valid():
		return fail("redirect status")
	case l.Destination == "" || len(l.Destination) > MaxDestination || len(l.Fallback) > MaxDestination:
		return fail("destination")
	case len(l.Tags) > MaxTags:
		return fail("tags")
	case len(l.Later.Members) > MaxExtra || Unknown(l.Later.Needs) != l.Later.Needs || l.Later.Members != "" && !json.Valid([]byte(l.Later.Members)):
		return fail("fields of a later release")
	case slices.ContainsFunc(l.Tags, func(t string) bool { return t == "" || len(t) > MaxTag }):
		return fail("tag")
	}
	for i := range fields {
		if text, is := fields[i].Of(&l).(*string); is && fields[i].Max > 0 && len(*text) > fields[i].Max {
			return fail(fields[i].Name)
		}
	}
	return nil
}

// Equivalent reports whether l may be given at now to a caller who wants wanted and
// takes an existing link for it: same workspace and domain, and the same answer to
// visitors in every respect but the code, now and later. So every field that changes the
// answer must be equal, and l must be Active, Clean and not expired. A link with a bound of
// clicks never stands in: its clicks are for those who got it first. Title, tags and who
// created it do not matter.
func (l Link) Equivalent(wanted Link, now time.Time) bool {
	for i := range fields {
		if f := &fields[i]; (f.Kind == Answer || f.Kind == Secret) && !f.equal(&l, &wanted) {
			return false
		}
	}
	return l.Workspace == wanted.Workspace && l.Key.Domain == wanted.Key.Domain && l.MaxClicks == 0 && l.Later.Needs == 0 &&
		l.Status == Active && l.Safety == Clean && (l.Expires.IsZero() || now.Before(l.Expires))
}

// badTime reports a time that would not survive the way to milliseconds and back;
// the epoch itself is one, because 0 means none.
func badTime(t time.Time) bool {
	return !t.IsZero() && (t.Nanosecond()%int(time.Millisecond) != 0 || t.Location() != time.UTC || t.UnixMilli() == 0)
}

// Tombstone returns what remains of l once it is deleted: domain, code, id, the
// owner (so that only they see "deleted"), and the times. The content is gone.
func (l Link) Tombstone(now time.Time) Link {
	l.Expires = time.Time{}
	return l.remains(now)
}

// WithoutContent returns what remains of l when its content is removed, long after it expired: its
// tombstone, which has the end that it had.
func (l Link) WithoutContent(now time.Time) Link { return l.remains(now) }

// ContentRemoved reports whether l is what WithoutContent returned.
func (l *Link) ContentRemoved() bool { return l.Status == Deleted && !l.Expires.IsZero() }

// Imported returns l as a store imports it: as a chosen code, because which codes the permutation of another
// store made, ours cannot say, and without content where it was deleted. ErrInvalid: it cannot be stored.
func (l Link) Imported() (Link, error) {
	l.CodeKind = Chosen
	if err := l.Validate(); err != nil {
		return Link{}, err
	}
	if l.Version == 0 {
		return Link{}, fmt.Errorf("version 0: %w", ErrInvalid)
	}
	if l.Status == Deleted && l.Destination != "" {
		l = l.Tombstone(l.Updated) // a file written by others: it was deleted, it did not lose its content to time
	}
	return l.Normal(), nil
}

// IsPending reports whether l was accepted and is not in the store yet: it has no version.
func (l *Link) IsPending() bool { return l.Version == 0 && !l.ID.IsZero() }

// Ended reports whether l is an active link that expired at or before a time: one of [Store].Expired.
func (l *Link) Ended(by time.Time) bool {
	return l.Status == Active && !l.Expires.IsZero() && !l.Expires.After(by)
}

func (l *Link) remains(now time.Time) Link {
	var t Link
	for i := range fields {
		if f := &fields[i]; f.Remains {
			f.copy(&t, l)
		}
	}
	t.Status, t.Updated = Deleted, now
	return t
}
