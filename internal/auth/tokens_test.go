package auth_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/auth/authtest"
	"curt/internal/link"
)

// A token of a known secret: those that were given away go on after an upgrade.
func TestTokensOfSharesStay(t *testing.T) {
	s, k := auth.NewShares(authtest.NewMemoryShares(), authtest.NewMemory(), bytes.NewReader(bytes.Repeat([]byte{7}, 32))), link.Key{Domain: "go.example", Code: "abc"}
	token, _, err := s.Issue(t.Context(), noon(), theAdmin(), k, "acme", time.Hour)
	if err != nil || token != knownToken {
		t.Errorf("token %s, %v", token, err)
	}
	for _, known := range []string{knownToken, olderToken} {
		if who, err := s.Open(t.Context(), noon(), k, known); err != nil || who.Workspace != "acme" {
			t.Errorf("%s: %+v, %v", known, who, err)
		}
	}
}

const (
	knownToken = "AAAAAGodglAAAAAAAAAAAAAAAAAAAAAAtBmK9lJSbJsGfWczsJjf7A"
	olderToken = "AAAAAGodglD3fPPzM69eHYB55NVw56DW" // of releases that did not write down who made it
)

func TestAnAdminSeesEveryWorkspace(t *testing.T) {
	own := auth.Principal{KeyID: "x", Workspace: "acme", Scopes: []auth.Scope{auth.LinksRead}}
	for _, c := range []struct {
		who  auth.Principal
		of   link.WorkspaceID
		want bool
	}{
		{theAdmin(), "acme", true},
		{theAdmin(), link.WorkspaceAnonymous, true},
		{own, "acme", true},
		{own, "other", false},
		{own, link.WorkspaceAnonymous, false},
		{auth.Principal{Workspace: "acme"}, "acme", false},
	} {
		if got := sees(c.who, c.of); got != c.want {
			t.Errorf("%+v sees %s: %t", c.who, c.of, got)
		}
	}
}

// failingOnce has no random bits the first time.
type failingOnce struct{ asked int }

func (f *failingOnce) Read(b []byte) (int, error) {
	if f.asked++; f.asked == 1 {
		return 0, io.ErrUnexpectedEOF
	}
	return len(b), nil
}

func TestAKeyWithoutAnIDIsNotMade(t *testing.T) {
	store := authtest.NewMemory()
	keys := newKeys(t, auth.KeysConfig{AdminKey: key, Store: store, Random: new(failingOnce)})
	_, secret, err := keys.Create(t.Context(), noon(), theAdmin(), auth.NewKeyRequest{Workspace: "acme", Name: "x", Scopes: []auth.Scope{auth.LinksRead}})
	if !errors.Is(err, io.ErrUnexpectedEOF) || secret != "" {
		t.Errorf("%q, %v", secret, err)
	}
	if all, _, err := keys.List(t.Context(), theAdmin(), auth.KeyFilter{}, auth.KeyPage{Limit: 9}); err != nil || len(all) > 0 {
		t.Errorf("%d keys are there, %v", len(all), err)
	}
}
