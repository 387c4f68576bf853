package httpapi_test

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/auth/authtest"
	"curt/internal/link"
)

const shared = "/api/v1/links/abc/share"

// shareService has a link abc, and lets a test open what is shared.
func shareService(t *testing.T) (service, *auth.Shares) {
	t.Helper()
	keys := authtest.NewMemory()
	shares := auth.NewShares(authtest.NewMemoryShares(), keys, rand.Reader)
	s := newService(t, func(p *parts) {
		p.Shares = shares
		p.callers["writer"] = auth.Principal{KeyID: "writer", Workspace: "acme", Scopes: []auth.Scope{auth.LinksWrite}}
		p.callers["counter"] = auth.Principal{KeyID: "counter", Workspace: "acme", Scopes: []auth.Scope{auth.StatsRead}}
		p.callers["other"] = auth.Principal{KeyID: "other", Workspace: "other", Scopes: []auth.Scope{auth.LinksWrite, auth.StatsRead}}
	})
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"abc"}`)
	return s, shares
}

func TestStatisticsAreSharedUntilTheyEnd(t *testing.T) {
	s, shares := shareService(t)
	made := s.do(t, "acme", http.MethodPost, shared, `{"expires_in":60}`).want(t, http.StatusCreated).json(t)
	address, err := url.Parse(made["url"].(string))
	if err != nil || address.Host != "curt.test" || address.Path != "/abc/stats" || made["expires_at"] != "2026-06-01T12:01:00Z" {
		t.Fatalf("%v, %v", made, err)
	}
	open := func() error {
		_, err := shares.Open(t.Context(), noon(), link.Key{Code: "abc"}, address.Query().Get("share"))
		return err
	}
	if err := open(); err != nil {
		t.Error(err)
	}
	made = s.do(t, "admin", http.MethodPost, shared, `{}`).want(t, http.StatusCreated).json(t)
	if ends := noon().Add(30 * 24 * time.Hour).Format(time.RFC3339); made["expires_at"] != ends {
		t.Errorf("without an end: %v, want %s", made["expires_at"], ends)
	}
	s.do(t, "acme", http.MethodDelete, shared, "").want(t, http.StatusNoContent)
	if err := open(); !errors.Is(err, auth.ErrUnauthenticated) {
		t.Errorf("after the end of all: %v", err)
	}
	s.do(t, "acme", http.MethodDelete, shared, "").want(t, http.StatusNoContent)
}

func TestWhoMayReadSharesAndWhoMayReadOrChangeEndsIt(t *testing.T) {
	s, _ := shareService(t)
	for key, want := range map[string]struct{ post, end int }{
		"": {401, 401}, "wrong": {401, 401}, "reader": {403, 403}, "writer": {403, 204}, "counter": {201, 204},
		"other": {404, 404}, "acme": {201, 204}, "admin": {201, 204},
	} {
		s.do(t, key, http.MethodPost, shared, `{}`).want(t, want.post)
		s.do(t, key, http.MethodDelete, shared, "").want(t, want.end)
	}
	s.do(t, "acme", http.MethodPost, "/api/v1/links/none/share", `{}`).want(t, http.StatusNotFound)
	for _, body := range []string{`{"expires_in":0}`, `{"expires_in":-1}`, `{"expires_in":31622401}`, `{"expires_in":"1"}`, `{"expires_in":1.5}`, `{"x":1}`, `[]`, strings.Repeat(" ", 10)} {
		s.do(t, "acme", http.MethodPost, shared, body).want(t, http.StatusBadRequest)
	}
	s.do(t, "acme", http.MethodPost, shared, `{"expires_in":null}`).want(t, http.StatusCreated)
}

// Revoking a key ends what it shared, unless keep_shares says otherwise.
func TestRevokingAKeyEndsItsShares(t *testing.T) {
	for query, want := range map[string]bool{"": false, "?keep_shares=false": false, "?keep_shares=true": true} {
		s := newService(t)
		shares := auth.NewShares(authtest.NewMemoryShares(), s.keys, rand.Reader)
		id, _ := s.makeKey(t, `{"name":"counter","scopes":["stats:read"],"workspace_id":"acme"}`)
		k := link.Key{Code: "abc"}
		token, _, err := shares.Issue(t.Context(), noon(), auth.Principal{KeyID: id}, k, "acme", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []string{"?keep_shares=1", "?keep_shares=", "?keep_shares=true&keep_shares=true", "?keep=true"} {
			s.do(t, "admin", http.MethodDelete, keysPath+"/"+id+wrong, "").want(t, http.StatusBadRequest)
		}
		s.do(t, "admin", http.MethodDelete, keysPath+"/"+id+query, "").want(t, http.StatusNoContent)
		if _, err := shares.Open(t.Context(), noon(), k, token); (err == nil) != want {
			t.Errorf("%q: %v", query, err)
		}
	}
}
