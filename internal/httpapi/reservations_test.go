package httpapi_test

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"curt/internal/auth"
)

const aliasesPath = "/api/v1/aliases/"

// rival adds a caller of another workspace.
func rival(p *parts) {
	p.callers["rival"] = auth.Principal{KeyID: "rival-key", Workspace: "rival", Scopes: []auth.Scope{auth.LinksRead, auth.LinksWrite}}
}

// kind is problem of a type.
func (a answer) kind(tb testing.TB, name string) map[string]any {
	tb.Helper()
	p := a.problem(tb)
	if p["type"] != "/problems/"+name {
		tb.Errorf("%v, want %s", p, name)
	}
	return p
}

func TestReservations(t *testing.T) {
	s := newService(t, rival)
	made := s.do(t, "acme", http.MethodPost, aliasesPath+"sale/reservations", "").want(t, http.StatusCreated)
	r := made.json(t)
	until, err := time.Parse(time.RFC3339, r["reserved_until"].(string))
	if left, _ := r["expires_in"].(float64); err != nil || r["alias"] != "sale" || r["domain"] != "curt.test" || r["short_url"] != "https://curt.test/sale" || left != 300 {
		t.Errorf("%v, %v", r, err)
	}
	again := s.do(t, "acme", http.MethodPost, aliasesPath+"sale/reservations", "").want(t, http.StatusOK).json(t)
	if again["reserved_until"] != r["reserved_until"] {
		t.Errorf("%v, then %v", r, again)
	}
	for _, answer := range []answer{
		s.do(t, "rival", http.MethodPost, aliasesPath+"sale/reservations", ""),
		s.do(t, "rival", http.MethodPost, collection, `{"long_url":"https://example.com/","custom_alias":"sale"}`),
		s.do(t, "", http.MethodPost, collection, `{"long_url":"https://example.com/","custom_alias":"sale"}`),
	} {
		p := answer.want(t, http.StatusConflict).kind(t, "alias-held")
		got, err := time.Parse(time.RFC3339, p["reserved_until"].(string))
		wait, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		if err != nil || !got.Equal(until) || wait != 300 {
			t.Errorf("%v, Retry-After %d", p, wait)
		}
	}
	bulk := s.do(t, "rival", http.MethodPost, collection+"/bulk", `{"links":[{"long_url":"https://example.com/","custom_alias":"sale"},{"long_url":"https://example.com/"}]}`).want(t, http.StatusMultiStatus).json(t)
	results := bulk["results"].([]any)
	first := results[0].(map[string]any)
	if p := first["problem"].(map[string]any); p["type"] != "/problems/alias-held" || p["reserved_until"] != r["reserved_until"] || results[1].(map[string]any)["status"] != 201.0 {
		t.Errorf("%v", results)
	}
	s.do(t, "acme", http.MethodGet, collection+"/sale", "").want(t, http.StatusNotFound)
	s.do(t, "acme", http.MethodPatch, collection+"/sale", `{"title":"x"}`).want(t, http.StatusNotFound)
	s.do(t, "acme", http.MethodDelete, collection+"/sale", "").want(t, http.StatusNotFound)
	if list := s.do(t, "acme", http.MethodGet, collection, "").json(t)["links"].([]any); len(list) != 0 {
		t.Errorf("the list has %v", list)
	}
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"sale"}`)
	s.do(t, "rival", http.MethodPost, aliasesPath+"sale/reservations", "").want(t, http.StatusConflict).kind(t, "slug-taken")
	s.do(t, "acme", http.MethodDelete, aliasesPath+"sale/reservations", "").want(t, http.StatusNotFound).kind(t, "no-such-reservation")
}

// No change of a link gives it another code, reserved or not.
func TestAChangeTakesNoAlias(t *testing.T) {
	s := newService(t, rival)
	s.create(t, "rival", `{"long_url":"https://example.com/","custom_alias":"theirs"}`)
	s.do(t, "acme", http.MethodPost, aliasesPath+"sale/reservations", "").want(t, http.StatusCreated)
	for _, body := range []string{`{"custom_alias":"sale"}`, `{"short_code":"sale"}`} {
		s.do(t, "rival", http.MethodPatch, collection+"/theirs", body).want(t, http.StatusBadRequest)
	}
}

func TestReservationsAreReleased(t *testing.T) {
	s := newService(t, rival)
	s.do(t, "acme", http.MethodPost, aliasesPath+"sale/reservations?domain=go.example", "").want(t, http.StatusCreated)
	s.do(t, "rival", http.MethodPost, aliasesPath+"sale/reservations", "").want(t, http.StatusCreated) // on the default domain
	s.do(t, "rival", http.MethodDelete, aliasesPath+"sale/reservations?domain=go.example", "").want(t, http.StatusNotFound)
	s.do(t, "acme", http.MethodDelete, aliasesPath+"sale/reservations?domain=go.example", "").want(t, http.StatusNoContent)
	s.do(t, "acme", http.MethodDelete, aliasesPath+"sale/reservations?domain=go.example", "").want(t, http.StatusNotFound)
	s.do(t, "admin", http.MethodDelete, aliasesPath+"sale/reservations", "").want(t, http.StatusNoContent)
	for query, field := range map[string]string{"domain=evil.example": "domain", "x=1": "x"} {
		for _, method := range []string{http.MethodPost, http.MethodDelete} {
			if got := s.do(t, "acme", method, aliasesPath+"sale/reservations?"+query, "").want(t, http.StatusBadRequest).json(t); got["field"] != field {
				t.Errorf("%s ?%s: %v", method, query, got)
			}
		}
	}
	if got := s.do(t, "acme", http.MethodPost, aliasesPath+"ab/reservations", "").want(t, http.StatusBadRequest).kind(t, "invalid-request"); got["field"] != "alias" {
		t.Errorf("an alias that is too short: %v", got)
	}
	for _, body := range []string{"{}", "junk", `{"alias":"sale"}`} {
		s.do(t, "acme", http.MethodPost, aliasesPath+"body/reservations", body).want(t, http.StatusBadRequest).kind(t, "invalid-request")
	}
	s.do(t, "acme", http.MethodPost, aliasesPath+"admin/reservations", "").want(t, http.StatusConflict).kind(t, "slug-reserved")
	s.do(t, "", http.MethodPost, aliasesPath+"sale/reservations", "").want(t, http.StatusUnauthorized)
}

// What a check says of an alias to whoever asks.
func TestChecksKnowReservations(t *testing.T) {
	s := newService(t, rival)
	check := func(who, alias string) map[string]any {
		return s.do(t, who, http.MethodGet, aliasesPath+alias, "").want(t, http.StatusOK).json(t)
	}
	s.create(t, "acme", `{"long_url":"https://example.com/","custom_alias":"taken"}`)
	r := s.do(t, "acme", http.MethodPost, aliasesPath+"sale/reservations", "").want(t, http.StatusCreated).json(t)
	for _, c := range []struct {
		who, alias, state string
		reason, until     any
		suggestions       int
	}{
		{"acme", "sale", "reserved", nil, r["reserved_until"], 0},
		{"rival", "sale", "reserved", "held", r["reserved_until"], 3},
		{"rival", "taken", "taken", "taken", nil, 3},
		{"rival", "free", "free", nil, nil, 0},
		{"rival", "api", "reserved", "reserved", nil, 3},
		{"rival", "ab", "invalid", "invalid", nil, 3},
	} {
		got := check(c.who, c.alias)
		suggestions, isList := got["suggestions"].([]any)
		if got["state"] != c.state || got["reason"] != c.reason || got["available"] != (c.reason == nil) || got["reserved_until"] != c.until || !isList || len(suggestions) != c.suggestions {
			t.Errorf("%s to %s: %v", c.alias, c.who, got)
		}
		for _, other := range suggestions {
			if got := check(c.who, other.(string)); got["state"] != "free" {
				t.Errorf("suggested: %v", got)
			}
		}
	}
}

// Of many who create and reserve one alias at once, through the API, one gets it.
func TestOneOfManyGetsTheAlias(t *testing.T) {
	s := newService(t, rival)
	const callers = 16
	statuses := make([]int, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			who := []string{"acme", "rival", "admin"}[i%3]
			if i%2 == 0 {
				statuses[i] = s.do(t, who, http.MethodPost, aliasesPath+"the-one/reservations", "").StatusCode
			} else {
				statuses[i] = s.do(t, who, http.MethodPost, collection, `{"long_url":"https://example.com/","custom_alias":"the-one"}`).StatusCode
			}
		})
	}
	wg.Wait()
	created := 0
	for i, status := range statuses {
		if !slices.Contains([]int{200, 201, 409}, status) {
			t.Errorf("caller %d was answered %d", i, status)
		}
		if i%2 == 1 && status == http.StatusCreated {
			created++
		}
	}
	if created > 1 {
		t.Errorf("%d links were created: %v", created, statuses)
	}
}
