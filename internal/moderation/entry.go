package moderation

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"curt/internal/link"
)

// Kind says what an entity is.
type Kind string

// The kinds of entities. A link is decided about or banned, the last three are lines of lists, all
// others and destination are banned only.
const (
	KindLink      Kind = "link"      // Name is link.Key.String: "domain/code", "/code" in the default domain
	KindWorkspace Kind = "workspace" // Name is a link.WorkspaceID
	KindKey       Kind = "key"       // Name is the id of a key: the links that it made, and its further creates
	KindHost      Kind = "host"      // Name is a canonical host: destinations at exactly this one
	KindDomain    Kind = "domain"    // Name is a canonical host: destinations there and at all below it
	KindNetwork   Kind = "network"   // Name is a prefix (RFC 4632): further creates from there

	KindDestination Kind = "destination" // as OfDestination names it; decided about, never banned

	KindRefusedWord        Kind = "refused_word"        // Name is a line of a list of words: aliases
	KindLookAlike          Kind = "look_alike"          // Name is a name that aliases may not look like
	KindAllowedDestination Kind = "allowed_destination" // Name is a canonical host: destinations there and at all below it
)

// Entity is what an entry is about.
type Entity struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

// String returns "kind:name".
func (e Entity) String() string { return string(e.Kind) + ":" + e.Name }

// OfLink returns the entity of a link.
func OfLink(k link.Key) Entity { return Entity{KindLink, k.String()} }

// Key returns the key of a link's entity.
func (e Entity) Key() (k link.Key, ok bool) {
	domain, code, cut := strings.Cut(e.Name, "/")
	k = link.Key{Domain: link.Domain(domain), Code: link.Code(code)}
	return k, e.Kind == KindLink && cut && k.Validate() == nil
}

// Action says what an entry does.
type Action string

// The actions of the journal.
const (
	ActionDecide Action = "decide" // from now on the own decision of the link or destination is Safety
	ActionBan    Action = "ban"    // from now on what the entity means is at least Safety
	ActionLift   Action = "lift"   // the ban of the entity has ended
	ActionAnswer Action = "answer" // an appeal of the link was answered; Safety is what stands
	ActionErase  Action = "erase"  // the texts of another entry were erased, or the case of a destination: Reason says of which
	ActionList   Action = "list"   // the line is in its list
	ActionUnlist Action = "unlist" // the line was removed from its list
)

// Entry is one line of the journal.
type Entry struct {
	Sequence uint64    // from 1, without a gap
	At       time.Time // UTC, whole milliseconds; never before the entry before
	Entity   Entity
	Link     link.ID // of an entity that is a link, or the case of a destination; else zero
	Action   Action
	Safety   link.Safety // Clean, unless Action brings one
	Score    int         // 0 to 100, of ActionDecide by signals; else 0
	Actor    string      // id of the moderator's key, or ActorPolicy; at most 64 bytes
	Reason   Text        // in a moderator's words
	Evidence Text        // the findings as JSON, or what was reported

	Hash Hash // of everything above and of the entry before
}

// ActorPolicy is the actor of decisions that no person made. ActorOwner closes the case of
// a link that was deleted, ActorRetention that of one whose content was removed after its expiry: no
// journal has them, and the latter decides nothing.
const (
	ActorPolicy = "policy"
	ActorOwner  = "owner"

	ActorRetention = "retention"

	// ActorModeration is who changed a link in its store's log of changes; the journal says who
	// decided that.
	ActorModeration = "moderation"
)

// Bounds of texts, in bytes, and of what one Append takes.
const (
	MaxReason   = 1 << 10
	MaxEvidence = 8 << 10
	MaxAppend   = 1000 // entries
)

// Hash is a SHA-256.
type Hash [sha256.Size]byte

// Text is something that may have to be forgotten (a person's name, an address that was
// reported) in a journal that may not be changed: the chain of hashes holds its
// commitment only, SHA-256 of salt and body, and the text stands beside it and can be
// erased with its salt. Without the salt a short text cannot be guessed from it.
type Text struct {
	Body       string
	Salt       [16]byte
	Erased     bool // Body and Salt are gone
	Commitment Hash
}

// NewText returns body with a salt read from random, normally crypto/rand.Reader.
func NewText(body string, random io.Reader) (Text, error) {
	var salt [16]byte
	if _, err := io.ReadFull(random, salt[:]); err != nil {
		return Text{}, fmt.Errorf("read the salt of a text: %w", err)
	}
	return Commit(body, salt), nil
}

// Erase returns what remains of t when its body is forgotten.
func (t Text) Erase() Text {
	if t == (Text{}) {
		return t
	}
	return Text{Erased: true, Commitment: t.Commitment}
}

// Commit returns body with its commitment. The zero Text is the empty one: it commits to
// nothing, and has nothing to erase.
func Commit(body string, salt [16]byte) Text {
	if body == "" {
		return Text{}
	}
	h := sha256.New()
	h.Write(salt[:])
	h.Write([]byte(body))
	return Text{Body: body, Salt: salt, Commitment: Hash(h.Sum(nil))}
}

// Validate returns ErrInvalid, wrapped with the reason, for what Append must refuse.
func (e Entry) Validate() error {
	fail := func(what string) error { return fmt.Errorf("%w: %s of %s", ErrInvalid, what, e.Entity) }
	switch {
	case e.Entity.Name == "" || len(e.Entity.Name) > 400 || !utf8.ValidString(e.Entity.Name):
		return fail("name")
	case e.At.IsZero() || e.At.Nanosecond()%int(time.Millisecond) != 0 || e.At.Location() != time.UTC:
		return fail("time that is not UTC milliseconds")
	case e.Safety < link.Clean || e.Safety > link.Legal:
		return fail("safety")
	case e.Score < 0 || e.Score > 100:
		return fail("score")
	case e.Actor == "" || len(e.Actor) > link.MaxName || !utf8.ValidString(e.Actor):
		return fail("actor")
	case !e.Reason.storable(MaxReason) || !e.Evidence.storable(MaxEvidence):
		return fail("text")
	}
	if _, isLink := e.Entity.Key(); e.Entity.Kind == KindLink && !isLink {
		return fail("link")
	}
	switch e.Action {
	case ActionDecide, ActionAnswer:
		if _, _, destination := e.Entity.Destination(); e.Entity.Kind != KindLink && !destination || e.Link.IsZero() {
			return fail("link")
		}
	case ActionList, ActionUnlist:
		if !e.Entity.Kind.Listed() {
			return fail("kind")
		}
	case ActionBan, ActionLift:
		if e.Entity.Kind == KindDestination || e.Entity.Kind.Listed() {
			return fail("kind")
		}
	case ActionErase:
	default:
		return fail("action")
	}
	switch e.Entity.Kind {
	case KindDestination, KindLink, KindWorkspace, KindKey, KindHost, KindDomain, KindNetwork, KindRefusedWord, KindLookAlike, KindAllowedDestination:
		return nil
	}
	return fail("kind")
}

// Listed reports whether entities of a kind are lines of a list, which cannot be banned.
func (k Kind) Listed() bool {
	return k == KindRefusedWord || k == KindLookAlike || k == KindAllowedDestination
}

// storable reports whether a journal may take t as a new text.
func (t Text) storable(most int) bool {
	return len(t.Body) <= most && utf8.ValidString(t.Body) && t == Commit(t.Body, t.Salt)
}
