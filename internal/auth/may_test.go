package auth_test

import (
	"errors"
	"net/netip"
	"testing"

	"curt/internal/auth"
	"curt/internal/link"
)

// TestMay asks for every action, by every kind of principal, of every kind of resource.
func TestMay(t *testing.T) {
	key := func(w link.WorkspaceID, scopes ...auth.Scope) auth.Principal {
		return auth.Principal{KeyID: "a key", Workspace: w, Scopes: scopes}
	}
	principals := map[string]auth.Principal{
		"anonymous":           auth.Anonymous(netip.Addr{}),
		"anonymous who may":   auth.Anonymous(netip.Addr{}, auth.LinksWrite),
		"a key without scope": key("web"),
		"links:read":          key("web", auth.LinksRead),
		"links:write":         key("web", auth.LinksWrite),
		"stats:read":          key("web", auth.StatsRead),
		"admin":               key(link.WorkspaceDefault, auth.Admin),
	}
	// Who may do it, to what is not anybody's yet.
	allowed := map[auth.Action][]string{
		auth.Unrestricted: {"anonymous", "anonymous who may", "a key without scope", "links:read", "links:write", "stats:read", "admin"},
		auth.CreateLink:   {"anonymous who may", "links:write", "admin"},
		auth.ReadLink:     {"links:read", "admin"},
		auth.ChangeLink:   {"anonymous who may", "links:write", "admin"},
		auth.ReadStats:    {"stats:read", "admin"},
		auth.ShareStats:   {"stats:read", "admin"},
		auth.EndShare:     {"anonymous who may", "stats:read", "links:write", "admin"},
		auth.UseJob:       {"anonymous who may", "links:read", "links:write", "admin"},
		auth.ManageKeys:   {"admin"},
		auth.Moderate:     {"admin"},
		auth.Operate:      {"admin"},
	}
	for action, names := range allowed {
		may := map[string]bool{}
		for _, name := range names {
			may[name] = true
		}
		for name, p := range principals {
			refused := auth.ErrForbidden
			if p.IsAnonymous() {
				refused = auth.ErrUnauthenticated
			}
			check := func(of string, r auth.Resource, want error) {
				t.Helper()
				if err := auth.May(p, action, r); !errors.Is(err, want) {
					t.Errorf("action %d by %s of %s: %v, want %v", action, name, of, err, want)
				}
			}
			own, other, all := error(nil), link.ErrNotFound, refused
			if !may[name] {
				own = refused
			}
			check("nobody's yet", auth.Resource{}, own)
			switch {
			case name == "admin":
				other, all = nil, nil
			case p.IsAnonymous(): // whose links they create, they do not see
				own = link.ErrNotFound
			}
			check("its own workspace", auth.In(p.Workspace), own)
			check("another workspace", auth.In("another"), other)
			check("all workspaces", auth.Everywhere(), all)
		}
	}
	if w := auth.Within(principals["admin"], "another"); w != "another" {
		t.Errorf("an admin who asks for another workspace gets %q", w)
	}
	for _, asked := range []link.WorkspaceID{"", "another"} {
		if w := auth.Within(principals["links:read"], asked); w != "web" {
			t.Errorf("a key of web that asks for %q gets %q", asked, w)
		}
	}
}

func may(p auth.Principal, a auth.Action) bool { return auth.May(p, a, auth.Resource{}) == nil }

func sees(p auth.Principal, w link.WorkspaceID) bool {
	return auth.May(p, auth.Unrestricted, auth.In(w)) == nil
}
