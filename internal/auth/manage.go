package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/link"
)

// NewKeyRequest asks for a key.
type NewKeyRequest struct {
	Workspace link.WorkspaceID // "" = that of who asks; one that is new is made
	Plan      Plan             // of the workspace; "" = as it is, PlanRegistered when new
	Name      string
	Scopes    []Scope
	Expires   time.Time // zero = never
}

// Keys are managed by admins alone: a key that could create keys would let whoever steals it
// stay, with more rights than it has, after it is revoked.

// Create makes a key and returns it with its secret, which is told this once. Errors:
// InvalidError, those of rights, link.ErrUnavailable.
func (k *Keys) Create(ctx context.Context, now time.Time, who Principal, req NewKeyRequest) (made Key, secret string, err error) {
	if err := May(who, ManageKeys, Resource{}); err != nil {
		return Key{}, "", err
	}
	now = now.UTC().Truncate(time.Millisecond)
	key := Key{
		Workspace: req.Workspace, Name: req.Name, Scopes: req.Scopes,
		Created: now, CreatedBy: who.KeyID, Expires: req.Expires,
	}
	if key.Workspace == "" {
		key.Workspace = who.Workspace
	}
	if err := key.Validate(); err != nil {
		return Key{}, "", err
	}
	if req.Plan != "" && !req.Plan.Valid() {
		return Key{}, "", invalid("plan", "expected one of %v", Plans()[1:])
	}
	if !key.alive(now) {
		return Key{}, "", invalid("expires_at", "must be in the future")
	}
	if key.ID, err = link.NewID(now, k.random); err != nil {
		return Key{}, "", err
	}
	if secret, err = NewKey(k.random); err != nil {
		return Key{}, "", err
	}
	defer k.finder.forget() // the plan of other keys may have changed
	if made, err = k.finder.store.Create(ctx, key, req.Plan, SumOf(secret)); err != nil {
		return Key{}, "", err
	}
	return made, secret, nil
}

// Get returns a key.
func (k *Keys) Get(ctx context.Context, who Principal, id link.ID) (Key, error) {
	if err := May(who, ManageKeys, Resource{}); err != nil {
		return Key{}, err
	}
	return k.finder.store.Get(ctx, id)
}

// Own returns the key that a caller showed. The admin key, which is not stored, and
// callers without a key are ErrNoKey.
func (k *Keys) Own(ctx context.Context, who Principal) (Key, error) {
	id, err := link.ParseID(who.KeyID)
	if err != nil {
		return Key{}, ErrNoKey
	}
	return k.finder.store.Get(ctx, id)
}

// Holder returns the caller of a key by its ID, for work that goes on without the key itself. A key
// that was revoked or has expired is ErrUnauthenticated.
func (k *Keys) Holder(ctx context.Context, keyID string, now time.Time) (Principal, error) {
	if keyID == AdminKeyID {
		return adminCaller(), nil
	}
	id, err := link.ParseID(keyID)
	if err != nil {
		return Principal{}, ErrUnauthenticated
	}
	key, err := k.finder.store.Get(ctx, id)
	switch {
	case errors.Is(err, ErrNoKey) || err == nil && !key.alive(now):
		return Principal{}, fmt.Errorf("%w: the key was revoked or has expired", ErrUnauthenticated)
	case err != nil:
		return Principal{}, err
	}
	return key.caller(), nil
}

// List returns a page of keys, newest first; more says whether others follow.
func (k *Keys) List(ctx context.Context, who Principal, f KeyFilter, p KeyPage) (keys []Key, more bool, err error) {
	if err := May(who, ManageKeys, Resource{}); err != nil {
		return nil, false, err
	}
	limit := min(max(p.Limit, 1), MaxKeyPage)
	p.Limit = limit + 1
	if keys, err = k.finder.store.List(ctx, f, p); err != nil {
		return nil, false, err
	}
	more = len(keys) > limit
	return keys[:min(len(keys), limit)], more, nil
}

// Revoke ends a key for good: no request that this process answers afterwards is
// its, and none of another process a second later. The shares that it made end with it,
// everywhere at once, unless keepShares asks for them to go on. A key may revoke itself.
func (k *Keys) Revoke(ctx context.Context, who Principal, id link.ID, keepShares bool) error {
	if err := May(who, ManageKeys, Resource{}); err != nil {
		return err
	}
	defer k.finder.forget()
	return k.finder.store.Revoke(ctx, id, keepShares)
}

// Rotate gives a key another secret and returns it, this once. The one before works
// until overlap has passed, at most MaxOverlap; secrets before that stop now.
func (k *Keys) Rotate(ctx context.Context, now time.Time, who Principal, id link.ID, overlap time.Duration) (key Key, secret string, err error) {
	if err := May(who, ManageKeys, Resource{}); err != nil {
		return Key{}, "", err
	}
	if overlap < 0 || overlap > MaxOverlap {
		return Key{}, "", invalid("overlap", "expected 0 to %d seconds", int(MaxOverlap.Seconds()))
	}
	if key, err = k.finder.store.Get(ctx, id); err != nil {
		return Key{}, "", err
	}
	if !key.alive(now) {
		return Key{}, "", ErrKeyExpired
	}
	if secret, err = NewKey(k.random); err != nil {
		return Key{}, "", err
	}
	var until time.Time
	if overlap > 0 {
		until = now.UTC().Truncate(time.Millisecond).Add(overlap)
	}
	defer k.finder.forget()
	if key, err = k.finder.store.Rotate(ctx, id, SumOf(secret), until); err != nil {
		return Key{}, "", err
	}
	return key, secret, nil
}
