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
	s, k := auth.NewShares(authtest.NewMemoryShares(), rand.Reader), link.Key{Domain: "go.example", Code: "abc"}
	token, ends, err := s.Make(ctx, now, k, "acme", time.Hour)
	if err != nil || !ends.Equal(now.Truncate(time.Second).Add(time.Hour)) {
		t.Fatalf("ends %v, %v", ends, err)
	}
	who, err := s.Open(ctx, now, k, token)
	if err != nil || !who.Has(auth.StatsRead) || who.Has(auth.LinksRead) || who.Has(auth.LinksWrite) || who.IsAdmin() || who.IsAnonymous() ||
		!who.Sees("acme") || who.Sees("other") {
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

	again, _, err := s.Make(ctx, now, k, "acme", time.Minute)
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
	if _, _, err := s.Make(ctx, now, k, "acme", time.Minute); err != nil {
		t.Fatal(err)
	}
	refuse("after a new beginning", now, k, token)
}

func TestAShareLastsWithinBounds(t *testing.T) {
	s := auth.NewShares(authtest.NewMemoryShares(), rand.Reader)
	for _, lasts := range []time.Duration{0, -time.Second, time.Second - 1, auth.MaxShare + 1} {
		_, _, err := s.Make(t.Context(), time.Now(), link.Key{Code: "abc"}, "acme", lasts)
		if wrong, ok := errors.AsType[*auth.InvalidError](err); !ok || wrong.Field != "expires_in" {
			t.Errorf("%v: %v", lasts, err)
		}
	}
}
