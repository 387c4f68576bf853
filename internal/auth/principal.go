package auth

import (
	"errors"
	"net/http"
	"net/netip"
	"time"

	"curt/internal/link"
)

// Scope is a right that a key may carry.
type Scope string

// The scopes.
const (
	LinksRead  Scope = "links:read"
	LinksWrite Scope = "links:write"
	StatsRead  Scope = "stats:read"
	Admin      Scope = "admin" // everything, in every workspace
)

// The errors of this package, tested with errors.Is.
var (
	// ErrUnauthenticated: no key, or not one that we know.
	ErrUnauthenticated = errors.New("a valid API key is required")
	// ErrForbidden: a known caller without the right.
	ErrForbidden = errors.New("permission denied")
)

// Principal is who asks: by which key, of which workspace. May says what it may do; the zero
// Principal may do nothing that takes a scope.
type Principal struct {
	KeyID     string // "" = anonymous
	Workspace link.WorkspaceID
	Plan      Plan // whose limits hold; "" = PlanDefault
	Scopes    []Scope
	Addr      netip.Addr // the client's address; never stored
}

// Anonymous returns the caller of a request without a key; what it may do depends
// on the scopes that the server grants.
func Anonymous(addr netip.Addr, scopes ...Scope) Principal {
	return Principal{Workspace: link.WorkspaceAnonymous, Plan: PlanAnonymous, Scopes: scopes, Addr: addr}
}

// IsAnonymous reports whether the caller showed no key.
func (p Principal) IsAnonymous() bool { return p.KeyID == "" }

// Authenticator finds the caller of a request at now. The error wraps
// ErrUnauthenticated for a key that is wrong, and is another when nobody can say; a
// request without a key is the anonymous caller.
type Authenticator interface {
	Authenticate(r *http.Request, addr netip.Addr, now time.Time) (Principal, error)
}
