package auth_test

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"curt/internal/auth"
	"curt/internal/auth/authtest"
	"curt/internal/link"
)

func noon() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

const key = "curt_abcdefghijklmnopqrstuv"

func request(t *testing.T, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://curt.test/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		r.Header.Add("Authorization", h)
	}
	return r
}

func newKeys(t *testing.T, cfg auth.KeysConfig) *auth.Keys {
	t.Helper()
	if cfg.Store == nil {
		cfg.Store = authtest.NewMemory()
	}
	keys, err := auth.NewKeys(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestAdminKeyIsTheAdmin(t *testing.T) {
	keys := newKeys(t, auth.KeysConfig{AdminKey: key})
	addr := netip.MustParseAddr("192.0.2.1")
	want := auth.Principal{
		KeyID: auth.AdminKeyID, Workspace: link.WorkspaceDefault,
		Plan: auth.PlanDefault, Scopes: []auth.Scope{auth.Admin}, Addr: addr,
	}
	for _, header := range []string{"Bearer " + key, "bearer " + key, "BEARER   " + key} {
		got, err := keys.Authenticate(request(t, header), addr, noon())
		if err != nil {
			t.Fatalf("%q: %v", header, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%q: caller (-want +got):\n%s", header, diff)
		}
	}
}

func TestWhoShowsSomethingElseIsNobody(t *testing.T) {
	// Anonymous callers are allowed here, so that a wrong key that fell back to
	// anonymous would show.
	keys := newKeys(t, auth.KeysConfig{AdminKey: key, Anonymous: []auth.Scope{auth.LinksWrite}})
	tests := map[string][]string{
		"empty":             {""},
		"scheme alone":      {"Bearer"},
		"scheme and space":  {"Bearer "},
		"no scheme":         {key},
		"basic":             {"Basic " + key},
		"other key":         {"Bearer curt_abcdefghijklmnopqrstuw"},
		"prefix of the key": {"Bearer " + key[:len(key)-1]},
		"key and more":      {"Bearer " + key + "x"},
		"trailing space":    {"Bearer " + key + " "},
		"comma list":        {"Bearer " + key + ", Bearer " + key},
		"twice":             {"Bearer " + key, "Bearer " + key},
		"first one wrong":   {"Basic x", "Bearer " + key},
		"other case":        {"Bearer " + strings.ToUpper(key)},
		"tab":               {"Bearer\t" + key},
		"huge":              {"Bearer curt_" + strings.Repeat("a", 1<<16)},
		"not ASCII":         {"Bearer curt_äbcdefghijklmnopqrstuv"},
		"NUL":               {"Bearer " + key + "\x00"},
	}
	for name, headers := range tests {
		caller, err := keys.Authenticate(request(t, headers...), netip.Addr{}, noon())
		if !errors.Is(err, auth.ErrUnauthenticated) {
			t.Errorf("%s: got %v, want ErrUnauthenticated", name, err)
		}
		if may(caller, auth.ChangeLink) || may(caller, auth.ReadLink) {
			t.Errorf("%s: the caller carries scopes", name)
		}
		if err != nil && strings.Contains(err.Error(), "abcdefghij") {
			t.Errorf("%s: the error repeats the key", name)
		}
	}
}

func TestWithoutKeyOnlyWhatIsConfigured(t *testing.T) {
	closed := newKeys(t, auth.KeysConfig{AdminKey: key})
	open := newKeys(t, auth.KeysConfig{AdminKey: key, Anonymous: []auth.Scope{auth.LinksWrite}})
	for _, tt := range []struct {
		keys *auth.Keys
		want bool
	}{{closed, false}, {open, true}} {
		caller, err := tt.keys.Authenticate(request(t), netip.Addr{}, noon())
		if err != nil {
			t.Fatal(err)
		}
		if !caller.IsAnonymous() || caller.Workspace != link.WorkspaceAnonymous {
			t.Errorf("got %+v, want the anonymous caller", caller)
		}
		if got := may(caller, auth.ChangeLink); got != tt.want {
			t.Errorf("may create: got %v, want %v", got, tt.want)
		}
		if may(caller, auth.ReadLink) || sees(caller, link.WorkspaceAnonymous) {
			t.Error("an anonymous caller sees links")
		}
	}
}

func TestWeakAdminKeyIsRefused(t *testing.T) {
	for _, weak := range []string{
		"", "curt_", "secret", "curt_short", "curt_abcdefghijklmnopqrstu",
		"CURT_abcdefghijklmnopqrstuv", "curt_abcdefghij klmnopqrstuv", "curt_" + strings.Repeat("a", 300),
	} {
		if _, err := auth.NewKeys(auth.KeysConfig{AdminKey: weak, Store: authtest.NewMemory()}); err == nil {
			t.Errorf("%q was taken", weak)
		} else if weak != "" && weak != auth.Prefix && strings.Contains(err.Error(), weak) {
			t.Errorf("the error repeats the key: %v", err)
		}
	}
}
