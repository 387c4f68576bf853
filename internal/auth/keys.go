package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"curt/internal/link"
	"curt/internal/repeatlog"
)

// AdminKeyID is the [Principal.KeyID] of the one admin key, and thereby the
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
	// AdminKey is the one key that is not stored and may do everything; see
	// [CheckKey].
	AdminKey string

	// Anonymous are the scopes of requests without a key; empty = such callers
	// may do nothing.
	Anonymous []Scope

	Store  Store     // of all other keys
	Random io.Reader // of ids and secrets; nil = crypto/rand.Reader
	Log    *slog.Logger
}

// Keys finds the caller of a request by the key that it shows, and manages keys. It
// is safe for many goroutines; Run must be running, or nobody learns when keys were
// used.
type Keys struct {
	// Set once in NewKeys.
	admin     Sum
	anonymous []Scope
	finder    *finder
	random    io.Reader
	log       *slog.Logger

	uses     uses
	unstored repeatlog.Condition
}

// NewKeys returns an Authenticator that knows the admin key, of which it keeps only
// the digest, and the keys of the store.
func NewKeys(cfg KeysConfig) (*Keys, error) {
	if err := CheckKey(cfg.AdminKey); err != nil {
		return nil, fmt.Errorf("admin key: %w", err)
	}
	if cfg.Store == nil {
		return nil, errors.New("keys: missing a store")
	}
	k := &Keys{
		admin: SumOf(cfg.AdminKey), anonymous: slices.Clone(cfg.Anonymous),
		finder: newFinder(cfg.Store), random: cfg.Random, log: cfg.Log,
	}
	if k.random == nil {
		k.random = rand.Reader
	}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	return k, nil
}

// Authenticate returns the caller whose key the request carries as
// "Authorization: Bearer KEY". Without that header it is the anonymous caller.
// Anything else in its place (another scheme, two headers, a key that is unknown,
// expired or revoked) is ErrUnauthenticated and never anonymous: who shows a key
// wants to be known. link.ErrUnavailable: nobody can say whose key it is.
func (k *Keys) Authenticate(r *http.Request, addr netip.Addr, now time.Time) (Principal, error) {
	headers := r.Header["Authorization"]
	switch len(headers) {
	case 0:
		return Anonymous(addr, k.anonymous...), nil
	case 1:
	default:
		return Principal{}, fmt.Errorf("%w: more than one Authorization header", ErrUnauthenticated)
	}
	key, ok := bearer(headers[0])
	if !ok {
		return Principal{}, fmt.Errorf("%w: the Authorization header must be 'Bearer' and one key", ErrUnauthenticated)
	}
	caller, err := k.identify(r.Context(), SumOf(key), now)
	caller.Addr = addr
	return caller, err
}

// Identify returns whose key it is, as Authenticate does for a header that carries it.
func (k *Keys) Identify(ctx context.Context, key string, now time.Time) (Principal, error) {
	if err := CheckKey(key); err != nil {
		return Principal{}, fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
	return k.identify(ctx, SumOf(key), now)
}

// Recall returns whose key has the digest, for those who keep it in the key's place: a
// key that ended since is ErrUnauthenticated.
func (k *Keys) Recall(ctx context.Context, sum Sum, now time.Time) (Principal, error) {
	return k.identify(ctx, sum, now)
}

// identify returns whose key has the digest. Digests are compared in constant time,
// so that the time taken says nothing about how close one came.
func (k *Keys) identify(ctx context.Context, sum Sum, now time.Time) (Principal, error) {
	if subtle.ConstantTimeCompare(sum[:], k.admin[:]) == 1 {
		return adminCaller(), nil
	}
	found, fresh, err := k.finder.find(ctx, sum, now)
	switch {
	case errors.Is(err, ErrNoKey):
		return Principal{}, fmt.Errorf("%w: unknown key", ErrUnauthenticated)
	case err != nil:
		return Principal{}, err
	case subtle.ConstantTimeCompare(sum[:], found.Sum[:]) != 1:
		return Principal{}, fmt.Errorf("%w: unknown key", ErrUnauthenticated)
	case !found.Key.alive(now):
		return Principal{}, fmt.Errorf("%w: the key has expired", ErrUnauthenticated)
	case !found.Until.IsZero() && !now.Before(found.Until):
		return Principal{}, fmt.Errorf("%w: the key was rotated", ErrUnauthenticated)
	}
	if fresh { // at most once a second for each key: more is not worth a lock
		k.uses.note(&found.Key, now)
	}
	return found.Key.caller(), nil
}

// adminCaller is who shows the admin key.
func adminCaller() Principal {
	return Principal{KeyID: AdminKeyID, Workspace: link.WorkspaceDefault, Plan: PlanDefault, Scopes: []Scope{Admin}}
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
