package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"curt/internal/link"
)

// MaxShare bounds how long a share lasts: who needs it longer makes another.
const MaxShare = 366 * 24 * time.Hour

// shareMAC is how many bytes of the HMAC a token carries: 128 bits are not guessed.
const shareMAC = 16

// A token before base64 is the seconds of its end, the id of the key that made it, which
// is zero for the admin key, and the MAC of both. Tokens of releases that did not know who
// made them lack the id, and go on to their end.
const (
	shareEnd       = 8
	shareSaid      = shareEnd + len(link.ID{})
	shareSize      = shareSaid + shareMAC
	shareOldestLen = shareEnd + shareMAC
)

// shareID is the KeyID of who shows a share.
const shareID = "share"

// ErrNoShare means that nothing of the link is shared.
var ErrNoShare = errors.New("this link is not shared")

// ShareSecret is what the shares of one link are signed with.
type ShareSecret struct {
	Workspace link.WorkspaceID // the link's
	Secret    [32]byte
}

// ShareStore keeps the secrets of shares. It is safe for many goroutines and
// processes; a write is durable when it returns nil, and is seen by every read that
// begins afterwards. Errors are ErrNoShare, and link.ErrUnavailable when the store
// cannot be asked.
type ShareStore interface {
	// Secret returns the secret of a link; ErrNoShare when it has none.
	Secret(ctx context.Context, k link.Key) (ShareSecret, error)

	// StoreOnce stores a secret unless the link has one, and returns the one that it has.
	StoreOnce(ctx context.Context, k link.Key, s ShareSecret) (ShareSecret, error)

	// Drop forgets the secret. A link that has none stays as it is.
	Drop(ctx context.Context, k link.Key) error
}

// Shares makes and reads tokens that let whoever holds one read the statistics of one
// link, until an instant. Each link has a secret of its own, so that all its tokens end
// with it and no other link's do. A token also ends with the key that made it, unless that
// was revoked so that its shares go on. It is safe for many goroutines.
type Shares struct {
	store  ShareStore
	keys   Store // of those who made them
	random io.Reader
}

// NewShares returns Shares over a store, made by the keys of another; random is normally
// crypto/rand.Reader.
func NewShares(store ShareStore, keys Store, random io.Reader) *Shares {
	return &Shares{store, keys, random}
}

// Issue returns a token for k that ends with the second of its end, or before it with who
// asks. The caller has made sure that who asks may share the link, which belongs to the
// workspace.
func (s *Shares) Issue(ctx context.Context, now time.Time, who Principal, k link.Key, w link.WorkspaceID, lasts time.Duration) (token string, ends time.Time, err error) {
	if lasts < time.Second || lasts > MaxShare {
		return "", ends, invalid("expires_in", "expected 1 to %d seconds", int(MaxShare.Seconds()))
	}
	secret := ShareSecret{Workspace: w}
	if _, err := io.ReadFull(s.random, secret.Secret[:]); err != nil {
		return "", ends, fmt.Errorf("read random bits of a share: %w", err)
	}
	stands, err := s.store.StoreOnce(ctx, k, secret)
	if err == nil && stands.Workspace != w { // what its workspace of before has shared ends with the move
		if err = s.store.Drop(ctx, k); err == nil {
			stands, err = s.store.StoreOnce(ctx, k, secret)
		}
	}
	if err != nil {
		return "", ends, fmt.Errorf("share %s: %w", k, err)
	}
	secret = stands
	ends = now.Add(lasts).UTC().Truncate(time.Second)
	var b [shareSize]byte
	binary.BigEndian.PutUint64(b[:shareEnd], uint64(ends.Unix()))
	if id, err := link.ParseID(who.KeyID); err == nil { // the admin key has no id, and is not revoked
		copy(b[shareEnd:], id[:])
	}
	secret.sign(b[shareSaid:], k, b[:shareSaid])
	return base64.RawURLEncoding.EncodeToString(b[:]), ends, nil
}

// sign writes the MAC of a link and of what its token says. Neither a domain nor a code
// can hold a NUL.
func (s *ShareSecret) sign(mac []byte, k link.Key, said []byte) {
	h := hmac.New(sha256.New, s.Secret[:])
	for _, part := range [][]byte{[]byte("curt share"), []byte(k.Domain), []byte(k.Code), said} {
		h.Write(part)
		h.Write([]byte{0})
	}
	copy(mac, h.Sum(nil))
}

// Open returns who shows a token for k: a caller who may read statistics, of which the
// one asking shows those of k only. What is no token of k, or is one no more, is
// ErrUnauthenticated.
func (s *Shares) Open(ctx context.Context, now time.Time, k link.Key, token string) (Principal, error) {
	refused := fmt.Errorf("%w: no share of this link", ErrUnauthenticated)
	said := shareSaid
	switch len(token) { // the decoder would skip line ends
	case base64.RawURLEncoding.EncodedLen(shareSize):
	case base64.RawURLEncoding.EncodedLen(shareOldestLen):
		said = shareEnd
	default:
		return Principal{}, refused
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) != said+shareMAC {
		return Principal{}, refused
	}
	ends := binary.BigEndian.Uint64(b[:shareEnd])
	if now.Unix() < 0 || uint64(now.Unix()) >= ends {
		return Principal{}, refused
	}
	secret, err := s.store.Secret(ctx, k)
	switch {
	case errors.Is(err, ErrNoShare):
		return Principal{}, refused
	case err != nil:
		return Principal{}, fmt.Errorf("read the share of %s: %w", k, err)
	}
	var mac [shareMAC]byte
	secret.sign(mac[:], k, b[:said])
	if !hmac.Equal(mac[:], b[said:]) {
		return Principal{}, refused
	}
	var maker link.ID
	if copy(maker[:], b[shareEnd:said]); !maker.IsZero() {
		switch stands, err := s.keys.Vouches(ctx, maker); {
		case err != nil:
			return Principal{}, fmt.Errorf("find the key that shared %s: %w", k, err)
		case !stands:
			return Principal{}, refused
		}
	}
	return Principal{KeyID: shareID, Workspace: secret.Workspace, Scopes: []Scope{StatsRead}}, nil
}

// End ends every token of k, at once and for good.
func (s *Shares) End(ctx context.Context, k link.Key) error {
	if err := s.store.Drop(ctx, k); err != nil {
		return fmt.Errorf("end the shares of %s: %w", k, err)
	}
	return nil
}
