package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"curt/internal/link"
)

// AdminKeyID is the [Caller.KeyID] of the one admin key, and thereby the
// created_by of its links.
const AdminKeyID = "admin"

// Challenge is the WWW-Authenticate header of every 401 (RFC 6750, section 3).
const Challenge = `Bearer realm="curt"`

// Prefix begins every key, so that scanners of leaked secrets can find them.
const Prefix = "curt_"

// minSecret is the fewest characters after the prefix: 22 of base62 carry
// 131 bits, the first length that holds the 128 which rule out guessing.
const minSecret = 22

// maxKey bounds a key in bytes, so that hashing a header stays cheap.
const maxKey = 256

// KeysConfig is what [NewKeys] needs.
type KeysConfig struct {
	// AdminKey is the one key that may do everything; see [CheckKey].
	AdminKey string

	// Anonymous are the scopes of requests without a key; empty = such callers
	// may do nothing.
	Anonymous []Scope
}

// Keys is the [Authenticator] of API keys. It is immutable, so many goroutines
// may use it.
type Keys struct {
	keys      []hashedKey
	anonymous []Scope
}

type hashedKey struct {
	sum    [sha256.Size]byte
	caller Caller
}

// NewKeys returns an Authenticator that knows the admin key. It keeps only the
// key's hash.
func NewKeys(cfg KeysConfig) (*Keys, error) {
	if err := CheckKey(cfg.AdminKey); err != nil {
		return nil, fmt.Errorf("admin key: %w", err)
	}
	admin := Caller{KeyID: AdminKeyID, Workspace: link.WorkspaceDefault, Scopes: []Scope{Admin}}
	return &Keys{
		keys:      []hashedKey{{sum: sha256.Sum256([]byte(cfg.AdminKey)), caller: admin}},
		anonymous: slices.Clone(cfg.Anonymous),
	}, nil
}

// Authenticate returns the caller whose key the request carries as
// "Authorization: Bearer KEY". Without that header it is the anonymous caller.
// Anything else in its place (another scheme, two headers, an unknown key) is
// ErrUnauthenticated and never anonymous: who shows a key wants to be known.
func (k *Keys) Authenticate(r *http.Request, addr netip.Addr) (Caller, error) {
	headers := r.Header["Authorization"]
	switch len(headers) {
	case 0:
		return Anonymous(addr, k.anonymous...), nil
	case 1:
	default:
		return Caller{}, fmt.Errorf("%w: more than one Authorization header", ErrUnauthenticated)
	}
	key, ok := bearer(headers[0])
	if !ok {
		return Caller{}, fmt.Errorf("%w: the Authorization header must be 'Bearer' and one key", ErrUnauthenticated)
	}
	sum := sha256.Sum256([]byte(key))
	// Every key is compared, and each in constant time, so that the time taken
	// says nothing about which hash came close.
	found := -1
	for i := range k.keys {
		if subtle.ConstantTimeCompare(sum[:], k.keys[i].sum[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return Caller{}, fmt.Errorf("%w: unknown key", ErrUnauthenticated)
	}
	caller := k.keys[found].caller
	caller.Addr = addr
	return caller, nil
}

// bearer returns the token of a Bearer header value. RFC 9110, section 11.1:
// the scheme is case-insensitive, the token is not.
func bearer(header string) (token string, ok bool) {
	const scheme = "bearer "
	if len(header) <= len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return "", false
	}
	token = strings.TrimLeft(header[len(scheme):], " ")
	return token, CheckKey(token) == nil
}

// CheckKey returns an error, whose text does not repeat the key, unless key is
// "curt_" and 22 to 251 characters of A-Z a-z 0-9 - _.
func CheckKey(key string) error {
	secret, ok := strings.CutPrefix(key, Prefix)
	switch {
	case !ok:
		return fmt.Errorf("a key begins with %q", Prefix)
	case len(secret) < minSecret:
		return fmt.Errorf("a key has at least %d characters after %q", minSecret, Prefix)
	case len(key) > maxKey:
		return fmt.Errorf("a key has at most %d characters", maxKey)
	}
	for i := range len(secret) {
		switch c := secret[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("a key holds only A-Z a-z 0-9 - _ after %q", Prefix)
		}
	}
	return nil
}
