package auth

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"curt/internal/link"
)

// Key is an API key without its secret, which nobody keeps. Times are UTC and have
// milliseconds.
type Key struct {
	ID        link.ID // for good; created_by of the links that it makes
	Workspace link.WorkspaceID
	Plan      Plan // the workspace's; read with the key, not written with it
	Name      string
	Scopes    []Scope
	Created   time.Time
	CreatedBy string    // the KeyID of who made it
	Expires   time.Time // from then on it is nobody's; zero = never
	Used      time.Time // up to a minute and a few seconds behind; zero = never
}

// Sum is the SHA-256 of a whole key, prefix included: all that is stored of it. A
// slow hash would add nothing, because a key has 128 bits at least and is not
// guessed.
type Sum [sha256.Size]byte

// SumOf returns the digest of a key.
func SumOf(key string) Sum { return sha256.Sum256([]byte(key)) }

// Bounds of a key.
const (
	maxName = 100 // bytes of a name

	// MaxOverlap bounds how long a rotated secret goes on: a week reaches those who
	// deploy weekly, and a secret that must go sooner is rotated without.
	MaxOverlap = 7 * 24 * time.Hour
)

// The errors of keys, tested with errors.Is.
var (
	// ErrNoKey: there is no such key, or not any more.
	ErrNoKey = errors.New("no such key")
	// ErrKeyExpired: the key has expired, and a new secret would not work either.
	ErrKeyExpired = errors.New("the key has expired")
)

// InvalidError says which field of a request about keys is wrong, and how.
type InvalidError struct {
	Field  string // the name in the API, as "scopes"
	Reason string // for the caller to read
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// PublicMessage returns the reason in words for the caller.
func (e *InvalidError) PublicMessage() string { return e.Reason }

func invalid(field, reason string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(reason, args...)}
}

// Scopes lists every scope, in the order in which keys show theirs.
func Scopes() []Scope { return []Scope{LinksRead, LinksWrite, StatsRead, Admin} }

// Validate returns an InvalidError for a key that may not be stored.
func (k Key) Validate() error {
	switch {
	case strings.TrimSpace(k.Name) == "":
		return invalid("name", "is required")
	case len(k.Name) > maxName:
		return invalid("name", "must not exceed %d bytes", maxName)
	case !utf8.ValidString(k.Name) || strings.ContainsFunc(k.Name, func(r rune) bool { return r < ' ' || 0x7f <= r && r < 0xa0 }):
		return invalid("name", "must not contain control characters")
	case len(k.Scopes) == 0:
		return invalid("scopes", "expected at least one of %v", Scopes())
	}
	for i, s := range k.Scopes {
		switch {
		case !slices.Contains(Scopes(), s):
			return invalid("scopes", "expected some of %v", Scopes())
		case slices.Contains(k.Scopes[:i], s):
			return invalid("scopes", "%s is set twice", s)
		}
	}
	if err := checkWorkspace(k.Workspace); err != nil {
		return err
	}
	// An admin is one of the whole instance. A key that says so belongs to the
	// operator's workspace, so that nobody takes it for the admin of a customer's.
	if slices.Contains(k.Scopes, Admin) && k.Workspace != link.WorkspaceDefault {
		return invalid("scopes", "admin is only for keys of the workspace %s", link.WorkspaceDefault)
	}
	return nil
}

// checkWorkspace wants what is safe in a path, a log and a file's name.
func checkWorkspace(w link.WorkspaceID) error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' }
	switch {
	case w == "" || len(w) > link.MaxName || strings.ContainsFunc(string(w), bad):
		return invalid("workspace_id", "expected 1 to %d characters of a-z 0-9 - _", link.MaxName)
	case w == link.WorkspaceAnonymous:
		return invalid("workspace_id", "is the workspace of links created without a key and cannot have keys")
	}
	return nil
}

// alive reports whether the key is anybody's at now.
func (k Key) alive(now time.Time) bool { return k.Expires.IsZero() || now.Before(k.Expires) }

// caller returns who shows the key.
func (k Key) caller() Principal {
	return Principal{KeyID: k.ID.String(), Workspace: k.Workspace, Plan: k.Plan, Scopes: k.Scopes}
}
