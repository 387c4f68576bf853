package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/testkit"
)

const keysPath = "/api/v1/keys"

func (s service) makeKey(tb testing.TB, body string) (id, secret string) {
	tb.Helper()
	k := s.do(tb, "admin", http.MethodPost, keysPath, body).want(tb, http.StatusCreated).json(tb)
	id, _ = k["id"].(string)
	secret, _ = k["key"].(string)
	return id, secret
}

func TestAKeyIsShownOnce(t *testing.T) {
	s := newService(t)
	made := s.do(t, "admin", http.MethodPost, keysPath,
		`{"name":"CI","scopes":["links:write","stats:read"],"expires_at":"2027-01-01T00:00:00Z","workspace_id":"acme","plan":"verified"}`).want(t, http.StatusCreated)
	k := made.json(t)
	id, _ := k["id"].(string)
	secret, _ := k["key"].(string)
	if err := auth.CheckKey(secret); err != nil {
		t.Error(err)
	}
	if made.Header.Get("Location") != keysPath+"/"+id || made.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", made.Header)
	}
	for name, want := range map[string]any{
		"workspace_id": "acme", "plan": "verified", "name": "CI", "created_at": "2026-06-01T12:00:00Z", "created_by": "admin",
		"expires_at": "2027-01-01T00:00:00Z", "last_used_at": nil,
	} {
		if k[name] != want {
			t.Errorf("%s: %v, want %v", name, k[name], want)
		}
	}
	for _, target := range []string{keysPath + "/" + id, keysPath} {
		got := s.do(t, "admin", http.MethodGet, target, "").want(t, http.StatusOK)
		if strings.Contains(string(got.body), secret) || !strings.Contains(string(got.body), id) {
			t.Errorf("GET %s: %s", target, got.body)
		}
	}
	if strings.Contains(s.log.String(), secret) {
		t.Error("the log holds the key")
	}
}

func TestKeysAreRotatedAndRevoked(t *testing.T) {
	s := newService(t)
	id, first := s.makeKey(t, `{"name":"CI","scopes":["links:read"]}`)
	k := s.do(t, "admin", http.MethodPost, keysPath+"/"+id+"/rotate", `{"overlap":60}`).want(t, http.StatusOK).json(t)
	if k["id"] != id || k["key"] == first || k["name"] != "CI" {
		t.Errorf("rotated: %v", k)
	}
	for sum, until := range map[string]time.Time{first: noon().Add(time.Minute), k["key"].(string): {}} {
		if f, err := s.keys.Find(t.Context(), auth.SumOf(sum)); err != nil || !f.Until.Equal(until) {
			t.Errorf("until %v, %v; want %v", f.Until, err, until)
		}
	}
	if got := s.do(t, "admin", http.MethodDelete, keysPath+"/"+id, "").want(t, http.StatusNoContent); len(got.body) > 0 {
		t.Errorf("a body: %s", got.body)
	}
	for _, target := range []string{id, "00000000-0000-7000-8000-000000000000", "x", "%00", strings.Repeat("a", 36)} {
		s.do(t, "admin", http.MethodGet, keysPath+"/"+target, "").want(t, http.StatusNotFound).problem(t)
		s.do(t, "admin", http.MethodDelete, keysPath+"/"+target, "").want(t, http.StatusNotFound).problem(t)
		s.do(t, "admin", http.MethodPost, keysPath+"/"+target+"/rotate", `{}`).want(t, http.StatusNotFound).problem(t)
	}
}

func TestKeysAreListedInPages(t *testing.T) {
	s := newService(t)
	for i := range 7 {
		s.makeKey(t, fmt.Sprintf(`{"name":"key %d","scopes":["links:read"],"workspace_id":%q}`, i, []string{"acme", "other"}[i%2]))
	}
	for workspace, want := range map[string]int{"": 7, "acme": 4, "other": 3, "nobody": 0} {
		target := keysPath + "?limit=2"
		if workspace != "" {
			target += "&workspace_id=" + workspace
		}
		seen := map[any]bool{}
		for cursor := ""; ; {
			page := s.do(t, "admin", http.MethodGet, target+cursor, "").want(t, http.StatusOK).json(t)
			for _, k := range page["keys"].([]any) {
				seen[k.(map[string]any)["id"]] = true
			}
			next, more := page["next_cursor"].(string)
			if !more {
				break
			}
			cursor = "&cursor=" + next
			for _, wrong := range []string{keysPath + "?workspace_id=else" + cursor, collection + "?" + cursor[1:], target + cursor + "A"} {
				s.do(t, "admin", http.MethodGet, wrong, "").want(t, http.StatusBadRequest).problem(t)
			}
		}
		if len(seen) != want {
			t.Errorf("workspace %q: %d keys, want %d", workspace, len(seen), want)
		}
	}
}

func TestHostileKeyRequests(t *testing.T) {
	testkit.Unraced(t)
	s := newService(t)
	id, _ := s.makeKey(t, `{"name":"CI","scopes":["links:read"]}`)
	with := func(member string) string { return `{"name":"x","scopes":["links:read"],` + member + `}` }
	rotate := keysPath + "/" + id + "/rotate"
	for _, tt := range []struct{ path, body, field string }{
		{keysPath, `null`, ""},
		{keysPath, `[]`, ""},
		{keysPath, `{}`, "name"},
		{keysPath, `{"name":"x"}`, "scopes"},
		{keysPath, `{"name":"x","scopes":null}`, "scopes"},
		{keysPath, `{"name":"x","scopes":[]}`, "scopes"},
		{keysPath, `{"name":"x","scopes":"links:read"}`, "scopes"},
		{keysPath, `{"name":"x","scopes":["root"]}`, "scopes"},
		{keysPath, `{"name":"x","scopes":[1]}`, "scopes"},
		{keysPath, `{"name":"x","scopes":["links:read","links:read"]}`, "scopes"},
		{keysPath, `{"name":"x","scopes":["links:read links:write"]}`, "scopes"},
		{keysPath, `{"name":7,"scopes":["links:read"]}`, "name"},
		{keysPath, `{"name":"","scopes":["links:read"]}`, "name"},
		{keysPath, `{"name":"a\r\nb","scopes":["links:read"]}`, "name"},
		{keysPath, `{"name":"a\u0000","scopes":["links:read"]}`, "name"},
		{keysPath, `{"name":"` + strings.Repeat("x", 101) + `","scopes":["links:read"]}`, "name"},
		{keysPath, with(`"workspace_id":""`), "workspace_id"},
		{keysPath, with(`"workspace_id":"anonymous"`), "workspace_id"},
		{keysPath, with(`"workspace_id":"A"`), "workspace_id"},
		{keysPath, with(`"workspace_id":"a/b"`), "workspace_id"},
		{keysPath, with(`"workspace_id":1`), "workspace_id"},
		{keysPath, with(`"plan":"gold"`), "plan"},
		{keysPath, with(`"plan":""`), "plan"},
		{keysPath, with(`"plan":"anonymous"`), "plan"},
		{keysPath, with(`"expires_at":"2026-06-01T12:00:00Z"`), "expires_at"},
		{keysPath, with(`"expires_at":"tomorrow"`), "expires_at"},
		{keysPath, with(`"expires_at":1}`), "expires_at"},
		{keysPath, with(`"id":"x"`), "id"},
		{keysPath, with(`"key":"curt_mine"`), "key"},
		{keysPath, with(`"name":"y"`), "name"},
		{keysPath, `{"name":"x","scopes":["admin"],"workspace_id":"acme"}`, "scopes"},
		{rotate, `{"overlap":-1}`, "overlap"},
		{rotate, `{"overlap":604801}`, "overlap"},
		{rotate, `{"overlap":1.5}`, "overlap"},
		{rotate, `{"overlap":9223372036854775807}`, "overlap"},
		{rotate, `{"overlap":"1"}`, "overlap"},
		{rotate, `{"key":"x"}`, "key"},
	} {
		p := s.do(t, "admin", http.MethodPost, tt.path, tt.body).want(t, http.StatusBadRequest).problem(t)
		if field, _ := p["field"].(string); field != tt.field {
			t.Errorf("%s: blames %q, want %q", tt.body, field, tt.field)
		}
	}
	s.do(t, "admin", http.MethodPost, keysPath, with(`"plan":"`+strings.Repeat("x", 5000)+`"`)).want(t, http.StatusRequestEntityTooLarge)
	for _, query := range []string{"?limit=0", "?limit=101", "?cursor=x", "?status=active", "?workspace_id="} {
		s.do(t, "admin", http.MethodGet, keysPath+query, "").want(t, http.StatusBadRequest).problem(t)
	}
	page := s.do(t, "admin", http.MethodGet, keysPath, "").json(t)
	if n := len(page["keys"].([]any)); n != 1 {
		t.Errorf("%d keys are there, want the first only", n)
	}
}
