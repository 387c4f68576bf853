package auth_test

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/auth/authtest"
	"curt/internal/link"
)

func TestSharesOfTheModel(t *testing.T) {
	authtest.RunShares(t, func(*testing.T) auth.ShareStore { return authtest.NewMemoryShares() }, nil)
}

func TestAShareReadsTheStatisticsOfOneLinkUntilItEnds(t *testing.T) {
	now, ctx := time.Date(2026, 6, 1, 12, 0, 0, 999e6, time.UTC), t.Context()
	s, k := auth.NewShares(authtest.NewMemoryShares(), authtest.NewMemory(), rand.Reader), link.Key{Domain: "go.example", Code: "abc"}
	token, ends, err := s.Issue(ctx, now, theAdmin(), k, "acme", time.Hour)
	if err != nil || !ends.Equal(now.Truncate(time.Second).Add(time.Hour)) {
		t.Fatalf("ends %v, %v", ends, err)
	}
	who, err := s.Open(ctx, now, k, token)
	if err != nil || !may(who, auth.ReadStats) || may(who, auth.ReadLink) || may(who, auth.ChangeLink) || may(who, auth.Moderate) || who.IsAnonymous() ||
		!sees(who, "acme") || sees(who, "other") {
		t.Errorf("the caller is %+v, %v", who, err)
	}
	if _, err := s.Open(ctx, ends.Add(-time.Millisecond), k, token); err != nil {
		t.Errorf("a millisecond before its end: %v", err)
	}
	refuse := func(what string, at time.Time, k link.Key, token string) {
		t.Helper()
		if who, err := s.Open(ctx, at, k, token); !errors.Is(err, auth.ErrUnauthenticated) {
			t.Errorf("%s: %+v, %v", what, who, err)
		}
	}
	refuse("at its end", ends, k, token)
	refuse("before 1970", time.Unix(-1, 0), k, token)
	for _, other := range []link.Key{{Code: "abc"}, {Domain: "go.example", Code: "ABC"}, {Domain: "go.exampleabc"}, {Domain: "go.exampl", Code: "eabc"}} {
		refuse("another link", now, other, token)
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for bit := range 8 {
			raw[i] ^= 1 << bit
			refuse("a bit changed", now, k, base64.RawURLEncoding.EncodeToString(raw))
			raw[i] ^= 1 << bit
		}
	}
	for _, bad := range []string{"", "x", token + "A", token[1:], token + "=", token + "\n", "../../etc/passwd"} {
		refuse("a token of another shape", now, k, bad)
	}

	again, _, err := s.Issue(ctx, now, theAdmin(), k, "acme", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(ctx, now, k, token); err != nil {
		t.Errorf("a second share ended the first: %v", err)
	}
	if err := s.End(ctx, k); err != nil {
		t.Fatal(err)
	}
	refuse("after the end of all", now, k, token)
	refuse("after the end of all", now, k, again)
	if _, _, err := s.Issue(ctx, now, theAdmin(), k, "acme", time.Minute); err != nil {
		t.Fatal(err)
	}
	refuse("after a new beginning", now, k, token)
}

func TestAShareLastsWithinBounds(t *testing.T) {
	s := auth.NewShares(authtest.NewMemoryShares(), authtest.NewMemory(), rand.Reader)
	for _, lasts := range []time.Duration{0, -time.Second, time.Second - 1, auth.MaxShare + 1} {
		_, _, err := s.Issue(t.Context(), time.Now(), theAdmin(), link.Key{Code: "abc"}, "acme", lasts)
		if wrong, ok := errors.AsType[*auth.InvalidError](err); !ok || wrong.Field != "expires_in" {
			t.Errorf("%v: %v", lasts, err)
		}
	}
}

// A share ends with the key that made it, also where another server revoked that, unless
// it was revoked so that its shares go on; those of other keys are not touched.
func TestAShareEndsWithTheKeyThatMadeIt(t *testing.T) {
	ctx, now, store := t.Context(), noon(), authtest.NewMemory()
	ours := newKeys(t, auth.KeysConfig{AdminKey: key, Store: store})
	theirs := newKeys(t, auth.KeysConfig{AdminKey: key, Store: store})
	s, k := auth.NewShares(authtest.NewMemoryShares(), store, rand.Reader), link.Key{Code: "abc"}
	made := func(expires time.Time) (auth.Key, string) {
		t.Helper()
		made, _, err := ours.Create(ctx, now, theAdmin(), auth.NewKeyRequest{Workspace: "acme", Name: "x", Scopes: []auth.Scope{auth.StatsRead}, Expires: expires})
		if err != nil {
			t.Fatal(err)
		}
		token, _, err := s.Issue(ctx, now, auth.Principal{KeyID: made.ID.String()}, k, "acme", 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return made, token
	}
	opens := func(what, token string, at time.Time, want bool) {
		t.Helper()
		if _, err := s.Open(ctx, at, k, token); (err == nil) != want || err != nil && !errors.Is(err, auth.ErrUnauthenticated) {
			t.Errorf("%s: %v, want it to open: %v", what, err, want)
		}
	}
	ended, endedToken := made(time.Time{})
	kept, keptToken := made(time.Time{})
	rotated, rotatedToken := made(time.Time{})
	_, expiredToken := made(now.Add(time.Minute))
	byAdmin, _, err := s.Issue(ctx, now, theAdmin(), k, "acme", 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	opens("of a key", endedToken, now, true)
	if err := theirs.Revoke(ctx, theAdmin(), ended.ID, false); err != nil {
		t.Fatal(err)
	}
	if err := ours.Revoke(ctx, theAdmin(), kept.ID, true); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ours.Rotate(ctx, now, theAdmin(), rotated.ID, 0); err != nil {
		t.Fatal(err)
	}
	opens("of a revoked key", endedToken, now, false)
	opens("of a key that was revoked and its shares kept", keptToken, now, true)
	opens("of a rotated key", rotatedToken, now, true)
	opens("of an expired key", expiredToken, now.Add(time.Hour), true)
	opens("of the admin key", byAdmin, now, true)
	if err := s.End(ctx, k); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{keptToken, rotatedToken, expiredToken, byAdmin} {
		opens("after the end of all", token, now, false)
	}
}

// Nobody makes a token of before, which names no maker, out of one that does.
func TestTheMakerOfAShareCannotBeTakenOut(t *testing.T) {
	ctx, now, store := t.Context(), noon(), authtest.NewMemory()
	keys := newKeys(t, auth.KeysConfig{AdminKey: key, Store: store})
	made, _, err := keys.Create(ctx, now, theAdmin(), auth.NewKeyRequest{Workspace: "acme", Name: "x", Scopes: []auth.Scope{auth.StatsRead}})
	if err != nil {
		t.Fatal(err)
	}
	s, k := auth.NewShares(authtest.NewMemoryShares(), store, rand.Reader), link.Key{Code: "abc"}
	token, _, err := s.Issue(ctx, now, auth.Principal{KeyID: made.ID.String()}, k, "acme", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	without := append(append([]byte{}, raw[:8]...), raw[24:]...)
	zero := append(append(append([]byte{}, raw[:8]...), make([]byte, 16)...), raw[24:]...)
	for _, forged := range [][]byte{without, zero} {
		if _, err := s.Open(ctx, now, k, base64.RawURLEncoding.EncodeToString(forged)); !errors.Is(err, auth.ErrUnauthenticated) {
			t.Errorf("%x opens: %v", forged, err)
		}
	}
}

// What the workspace of before has shared ends when another one shares the link.
func TestSharesEndWhenTheirLinkMoves(t *testing.T) {
	now, ctx := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), t.Context()
	s, k := auth.NewShares(authtest.NewMemoryShares(), authtest.NewMemory(), rand.Reader), link.Key{Code: "abc"}
	before, _, err := s.Issue(ctx, now, theAdmin(), k, "from", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := s.Issue(ctx, now, theAdmin(), k, "to", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := s.Open(ctx, now, k, token); err != nil || !sees(who, "to") || sees(who, "from") {
		t.Errorf("a share of the workspace that has the link: %+v, %v", who, err)
	}
	if who, err := s.Open(ctx, now, k, before); !errors.Is(err, auth.ErrUnauthenticated) {
		t.Errorf("a share of the workspace of before: %+v, %v", who, err)
	}
}
