package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/auth"
	"curt/internal/httpapi/health"
	"curt/internal/ratelimit"
	"curt/internal/shorten/create"
)

const selfPath = keysPath + "/self"

// wellness is the condition of the services of tests.
func wellness(now time.Time) health.Health {
	return health.Health{
		Status: "ok", Concerns: []health.Concern{{Name: "reviews-overdue", Text: "1 reviews are overdue."}},
		Version: "v1.0.0", StartedAt: now.Add(-time.Hour), At: now,
		Disk: health.DiskHealth{FreeBytes: new(uint64(50 << 30)), Files: []health.DataFile{
			{Name: "curt.db", Bytes: 9_437_184}, {Name: "clicks.db", Bytes: 2_097_152}, {Name: "search.db", Bytes: 4_194_304}, {Name: "clicks", Bytes: 67_108_864},
		}},
		Clicks: health.ClickHealth{Captured: 42, Counted: 42, UpdatedAt: new(now), CompleteUntil: new(now.Add(-2 * time.Second))},
		Search: health.SearchHealth{Complete: true, Indexed: 3}, Cache: health.CacheHealth{Links: 3, Bytes: 900},
		Reviews: health.ReviewHealth{Open: 2, Overdue: 1},
		Lists:   []health.ListHealth{{Name: "blocklists", Entries: 12, OldestAt: new(now.Add(-time.Minute))}},
	}
}

func TestCallersLearnWhatTheyMayDo(t *testing.T) {
	s := newService(t)
	for key, want := range map[string]map[string]any{
		"": {
			"key_id": nil, "name": nil, "workspace_id": "anonymous", "plan": "anonymous", "scopes": []any{"links:write"}, "expires_at": nil,
			"limits": []any{map[string]any{"links": 10.0, "seconds": 60.0}}, "domains": []any{"curt.test", "go.example"}, "places_built_at": nil, "places_attribution": nil,
		},
		"reader": {
			"key_id": "reader", "name": nil, "workspace_id": "acme", "plan": "default", "scopes": []any{"links:read"}, "expires_at": nil,
			"limits": []any{}, "domains": []any{"curt.test", "go.example"}, "places_built_at": nil, "places_attribution": nil,
		},
		"none": {
			"key_id": "none", "name": nil, "workspace_id": "acme", "plan": "default", "scopes": []any{}, "expires_at": nil,
			"limits": []any{}, "domains": []any{"curt.test", "go.example"}, "places_built_at": nil, "places_attribution": nil,
		},
	} {
		if diff := cmp.Diff(want, s.do(t, key, http.MethodGet, selfPath, "").want(t, http.StatusOK).json(t)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", key, diff)
		}
	}
	s.do(t, "wrong", http.MethodGet, selfPath, "").want(t, http.StatusUnauthorized).problem(t)
	s.do(t, "reader", http.MethodGet, selfPath+"?x=1", "").want(t, http.StatusBadRequest).problem(t)
	s.do(t, "admin", http.MethodDelete, selfPath, "").want(t, http.StatusNotFound).problem(t) // the key with that id
	s.do(t, "", http.MethodGet, selfPath, "", "Host: evil.example").want(t, http.StatusMisdirectedRequest).problem(t)
}

// A key that is stored tells its name and its end, and those of its plan what they are
// limited to.
func TestAStoredKeyLearnsItsLimits(t *testing.T) {
	s := newService(t, func(p *parts) {
		p.plans = create.Plans{auth.PlanFree: {ratelimit.Per(10, time.Minute), ratelimit.Per(100, time.Hour)}}
		p.callers["ci"] = auth.Principal{}
	})
	id, _ := s.makeKey(t, `{"name":"CI <b>","scopes":["links:write"],"workspace_id":"web","plan":"free","expires_at":"2027-01-01T00:00:00Z"}`)
	s.callers["ci"] = auth.Principal{KeyID: id, Workspace: "web", Plan: auth.PlanFree, Scopes: []auth.Scope{auth.LinksWrite}}
	got := s.do(t, "ci", http.MethodGet, selfPath, "").want(t, http.StatusOK).json(t)
	want := map[string]any{
		"key_id": id, "name": "CI <b>", "workspace_id": "web", "plan": "free", "scopes": []any{"links:write"}, "expires_at": "2027-01-01T00:00:00Z",
		"limits":  []any{map[string]any{"links": 10.0, "seconds": 60.0}, map[string]any{"links": 100.0, "seconds": 3600.0}},
		"domains": []any{"curt.test", "go.example"}, "places_built_at": nil, "places_attribution": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.do(t, "admin", http.MethodDelete, keysPath+"/"+id, "").want(t, http.StatusNoContent)
	if got := s.do(t, "ci", http.MethodGet, selfPath, "").want(t, http.StatusOK).json(t); got["name"] != nil {
		t.Errorf("a key that was revoked has the name %v", got["name"])
	}
}

func TestOnlyAdminsSeeHowTheServerDoes(t *testing.T) {
	s := newService(t)
	got := s.do(t, "admin", http.MethodGet, "/api/v1/health", "").want(t, http.StatusOK).json(t)
	if got["version"] != "v1.0.0" || got["status"] != "ok" || got["at"] != "2026-06-01T12:00:00Z" {
		t.Errorf("got %v", got)
	}
	s.do(t, "acme", http.MethodGet, "/api/v1/health", "").want(t, http.StatusForbidden).problem(t)
	s.do(t, "", http.MethodGet, "/api/v1/health", "").want(t, http.StatusUnauthorized).problem(t)
}

func TestCallersLearnHowOldPlacesAre(t *testing.T) {
	built := time.Date(2026, 9, 15, 0, 0, 0, 0, time.UTC)
	s := newService(t, func(p *parts) {
		p.Places = func() (time.Time, string) { return built, "This product includes data." }
	})
	got := s.do(t, "reader", http.MethodGet, selfPath, "").want(t, http.StatusOK).json(t)
	if got["places_built_at"] != "2026-09-15T00:00:00Z" || got["places_attribution"] != "This product includes data." {
		t.Errorf("%v", got)
	}
}
