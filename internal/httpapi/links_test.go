package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
	"curt/internal/link/linktest"
)

func TestCreateAnswersTheWholeResource(t *testing.T) {
	s := newService(t)
	got := s.do(t, "acme", http.MethodPost, collection, `{
		"long_url": "HTTPS://Example.com:443/a?b=c#d", "custom_alias": "Sale-2027", "domain": "GO.EXAMPLE",
		"starts_at": "2026-12-31T23:30+01:00", "expires_at": "2027-01-01T00:00:00.25Z", "redirect_status": 307,
		"title": "Spring \"sale\"", "tags": ["a", "ü"], "max_clicks": 10, "fallback_url": "http://example.org",
		"forward_query": true, "noindex": false, "cacheable": null
	}`).want(t, http.StatusCreated)
	resource := got.json(t)
	id, _ := resource["id"].(string)
	if _, err := link.ParseID(id); err != nil {
		t.Error(err)
	}
	delete(resource, "id")
	want := map[string]any{
		"domain": "go.example", "short_code": "Sale-2027", "short_url": "https://go.example/Sale-2027",
		"long_url": "https://example.com/a?b=c#d", "display_url": "example.com/a?…", "title": `Spring "sale"`,
		"tags": []any{"a", "ü"}, "workspace_id": "acme", "created_by": "acme-key", "status": "active", "safety": "clean",
		"state": "not_yet", "redirect_status": 307.0, "starts_at": "2026-12-31T22:30:00Z", "expires_at": "2027-01-01T00:00:00.25Z",
		"max_clicks": 10.0, "clicks_left": 10.0, "fallback_url": "http://example.org/", "forward_query": true, "noindex": false,
		"cacheable": false, "clicks": 0.0, "created_at": "2026-06-01T12:00:00Z", "updated_at": "2026-06-01T12:00:00Z", "version": 1.0,
	}
	if diff := cmp.Diff(want, resource); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
	if got.Header.Get("Location") != "/api/v1/links/Sale-2027?domain=go.example" || got.Header.Get("ETag") != `"1"` ||
		got.Header.Get("Content-Type") != "application/json" || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", got.Header)
	}
	again := s.do(t, "acme", http.MethodGet, got.Header.Get("Location"), "").want(t, http.StatusOK)
	if string(again.body) != string(got.body) {
		t.Errorf("the link as shown differs from the link as created:\n%s\n%s", again.body, got.body)
	}
}

func TestWhatALinkDoesNotHaveIsNull(t *testing.T) {
	s := newService(t)
	resource := s.create(t, "", `{"long_url":"http://example.com"}`)
	for _, name := range []string{"title", "starts_at", "expires_at", "max_clicks", "clicks_left", "fallback_url", "created_by"} {
		if v, ok := resource[name]; !ok || v != nil {
			t.Errorf("%s is %v (there: %v), want null", name, v, ok)
		}
	}
	if tags, ok := resource["tags"].([]any); !ok || len(tags) != 0 {
		t.Errorf("tags are %v, want an empty array", resource["tags"])
	}
	if resource["workspace_id"] != "anonymous" || resource["domain"] != "curt.test" || resource["short_url"] != "https://curt.test/c000001" {
		t.Errorf("got %v", resource)
	}
}

func TestHeadIsGetWithoutBody(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	if got := s.do(t, "admin", http.MethodHead, collection+"/abc", "").want(t, http.StatusOK); got.Header.Get("ETag") != `"1"` {
		t.Errorf("headers %v", got.Header)
	}
}

// RFC 9110, section 13.1.2: a caller who has this version gets no other copy of it.
func TestALinkThatIsTheSameIsNotSentAgain(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	path := collection + "/abc"
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for _, same := range []string{`"1"`, `W/"1"`, `"7", "1"`, "*"} {
			got := s.do(t, "acme", method, path, "", "If-None-Match: "+same).want(t, http.StatusNotModified)
			if got.Header.Get("ETag") != `"1"` || got.Header.Get("Cache-Control") != "no-store" || len(got.body) != 0 {
				t.Errorf("%s %s: %v %q", method, same, got.Header, got.body)
			}
		}
		for _, other := range []string{`"2"`, "1", ""} {
			s.do(t, "acme", method, path, "", "If-None-Match: "+other).want(t, http.StatusOK)
		}
	}
	s.do(t, "none", http.MethodGet, path, "", `If-None-Match: "1"`).want(t, http.StatusForbidden)
	s.do(t, "acme", http.MethodPatch, path, `{"title":"x"}`).want(t, http.StatusOK)
	s.do(t, "acme", http.MethodGet, path, "", `If-None-Match: "1"`).want(t, http.StatusOK)
	s.do(t, "acme", http.MethodGet, collection+"/none", "", "If-None-Match: *").want(t, http.StatusNotFound)
}

func TestPatchChangesAndDeleteErases(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"http://example.com","custom_alias":"abc","title":"t","expires_in":60}`)
	path := collection + "/abc"
	got := s.do(t, "acme", http.MethodPatch, path, `{"long_url":"http://example.org","title":null,"expires_in":3600,"status":"disabled"}`,
		`If-Match: "7", "1"`, "Content-Type: application/merge-patch+json; charset=UTF-8").want(t, http.StatusOK)
	resource := got.json(t)
	if resource["long_url"] != "http://example.org/" || resource["title"] != nil || resource["status"] != "disabled" ||
		resource["state"] != "disabled" || resource["expires_at"] != "2026-06-01T13:00:00Z" || resource["version"] != 2.0 {
		t.Errorf("changed: %s", got.body)
	}
	if got.Header.Get("ETag") != `"2"` {
		t.Errorf("ETag %s, want that of version 2", got.Header.Get("ETag"))
	}
	s.do(t, "acme", http.MethodPatch, path, `{"title":"x"}`, `If-Match: "1"`).want(t, http.StatusPreconditionFailed).problem(t)
	unchanged := s.do(t, "acme", http.MethodPatch, path, `{}`, "If-Match: *").want(t, http.StatusOK)
	if string(unchanged.body) != string(got.body) {
		t.Errorf("an empty change changed something: %s", unchanged.body)
	}

	if deleted := s.do(t, "acme", http.MethodDelete, path, "", `If-Match: "2"`).want(t, http.StatusNoContent); len(deleted.body) != 0 {
		t.Errorf("a body with 204: %s", deleted.body)
	}
	s.do(t, "acme", http.MethodGet, path, "").want(t, http.StatusNotFound).problem(t)
	s.do(t, "acme", http.MethodDelete, path, "").want(t, http.StatusNotFound)
	s.do(t, "acme", http.MethodPatch, path, "{}").want(t, http.StatusNotFound)
	s.do(t, "acme", http.MethodGet, path+"/stats", "").want(t, http.StatusNotFound)
	taken := s.do(t, "acme", http.MethodPost, collection, `{"long_url":"http://example.com","custom_alias":"abc"}`).want(t, http.StatusConflict)
	if p := taken.problem(t); p["type"] != "/problems/slug-taken" {
		t.Errorf("problem %v", p)
	}
}

func TestPatchComesTooLate(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"http://example.com","custom_alias":"abc","expires_in":60}`)
	l, err := s.store.Get(t.Context(), link.Key{Code: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Replace(t.Context(), l.WithoutContent(l.Expires), link.Edit{}); err != nil {
		t.Fatal(err)
	}
	p := s.do(t, "acme", http.MethodPatch, collection+"/abc", `{"expires_in":3600}`).want(t, http.StatusGone).problem(t)
	if p["type"] != "/problems/content-removed" || p["title"] != "Content removed" {
		t.Errorf("problem %v", p)
	}
	stranger := s.callers["acme"]
	stranger.Workspace = "other"
	s.callers["other"] = stranger
	s.do(t, "other", http.MethodPatch, collection+"/abc", `{"expires_in":3600}`).want(t, http.StatusNotFound)
	s.do(t, "acme", http.MethodGet, collection+"/abc", "").want(t, http.StatusNotFound)
}

func TestReservedSlugSaysSo(t *testing.T) {
	p := newService(t).do(t, "admin", http.MethodPost, collection, `{"long_url":"http://example.com","custom_alias":"Admin"}`).
		want(t, http.StatusConflict).problem(t)
	if p["type"] != "/problems/slug-reserved" || p["detail"] != "this slug is reserved" {
		t.Errorf("problem %v", p)
	}
}

func TestThousandCallersOneAlias(t *testing.T) {
	s := newService(t)
	var won, taken atomic.Int32
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			body := fmt.Sprintf(`{"long_url":"http://example.com/%d","custom_alias":"the-one"}`, i)
			switch got := s.do(t, "admin", http.MethodPost, collection, body); got.StatusCode {
			case http.StatusCreated:
				won.Add(1)
			case http.StatusConflict:
				taken.Add(1)
			default:
				t.Errorf("%d: %s", got.StatusCode, got.body)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || taken.Load() != 999 || s.stored(t) != 1 {
		t.Errorf("%d won, %d taken, %d stored; want 1, 999, 1", won.Load(), taken.Load(), s.stored(t))
	}
}

// walk follows a list to its end and returns the codes.
func (s service) walk(t *testing.T, key, query string) (codes []string) {
	t.Helper()
	cursor := ""
	for range 1000 {
		page := s.do(t, key, http.MethodGet, collection+"?"+query+cursor, "").want(t, http.StatusOK).json(t)
		links, ok := page["links"].([]any)
		if !ok {
			t.Fatalf("links are %v", page["links"])
		}
		for _, l := range links {
			code, _ := l.(map[string]any)["short_code"].(string)
			codes = append(codes, code)
		}
		next, ok := page["next_cursor"].(string)
		if !ok {
			return codes
		}
		cursor = "&cursor=" + next
	}
	t.Fatal("the list does not end")
	return nil
}

func TestListWalksNewestFirst(t *testing.T) {
	var ticks atomic.Int64 // links of one millisecond have no order
	s := newService(t, func(p *parts) {
		p.Now = func() time.Time { return noon().Add(time.Duration(ticks.Add(1)) * time.Millisecond) }
	})
	var mine []string
	for i := range 25 {
		domain := []string{"curt.test", "go.example"}[i%2]
		resource := s.create(t, "acme", fmt.Sprintf(`{"long_url":"http://example.com/%d","domain":%q}`, i, domain))
		code, _ := resource["short_code"].(string)
		mine = append(mine, code)
		s.create(t, "admin", `{"long_url":"http://example.net"}`)
	}
	slices.Reverse(mine)
	if diff := cmp.Diff(mine, s.walk(t, "acme", "limit=7")); diff != "" {
		t.Errorf("own links (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(mine, s.walk(t, "acme", "limit=100")); diff != "" {
		t.Errorf("own links in one page (-want +got):\n%s", diff)
	}
	if n := len(s.walk(t, "admin", "limit=7")); n != 50 {
		t.Errorf("the admin sees %d links, want 50", n)
	}
	if n := len(s.walk(t, "acme", "domain=go.example&limit=5")); n != 12 {
		t.Errorf("%d links on one domain, want 12", n)
	}
	s.do(t, "acme", http.MethodPatch, collection+"/"+mine[24], `{"status":"disabled"}`).want(t, http.StatusOK)
	s.do(t, "acme", http.MethodDelete, collection+"/"+mine[23]+"?domain=go.example", "").want(t, http.StatusNoContent)
	if diff := cmp.Diff([]string{mine[24]}, s.walk(t, "acme", "status=disabled&limit=1")); diff != "" {
		t.Errorf("disabled links (-want +got):\n%s", diff)
	}
	if n := len(s.walk(t, "acme", "status=active&limit=9")); n != 23 {
		t.Errorf("%d active links, want 23", n)
	}
}

func TestCursorBelongsToItsWalk(t *testing.T) {
	s := newService(t)
	for range 3 {
		s.create(t, "acme", `{"long_url":"http://example.com"}`)
	}
	page := s.do(t, "acme", http.MethodGet, collection+"?limit=1", "").want(t, http.StatusOK).json(t)
	cursor, _ := page["next_cursor"].(string)
	use := func(key, query string) int {
		return s.do(t, key, http.MethodGet, collection+"?"+query, "").StatusCode
	}
	if got := use("acme", "limit=2&cursor="+cursor); got != http.StatusOK {
		t.Errorf("another limit: %d", got)
	}
	for name, got := range map[string]int{
		"another filter":    use("acme", "status=active&cursor="+cursor),
		"another domain":    use("acme", "domain=curt.test&cursor="+cursor),
		"another workspace": use("admin", "cursor="+cursor),
		"shortened":         use("acme", "cursor="+cursor[:len(cursor)-1]),
		"extended":          use("acme", "cursor="+cursor+"AAAA"),
		"padded":            use("acme", "cursor="+cursor+"%3D"),
	} {
		if got != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", name, got)
		}
	}
	for i := range len(cursor) { // every flipped bit that survives base64
		forged := []byte(cursor)
		forged[i] ^= 1
		if got := use("acme", "cursor="+string(forged)); got != http.StatusBadRequest {
			t.Errorf("byte %d forged: got %d, want 400", i, got)
		}
	}
	other := newService(t, func(p *parts) { p.CursorKey = []byte("another key of bytes"); p.store = s.store })
	if got := other.do(t, "acme", http.MethodGet, collection+"?cursor="+cursor, ""); got.StatusCode != http.StatusBadRequest {
		t.Errorf("another key: got %d, want 400", got.StatusCode)
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	s := newService(t)
	s.create(t, "acme", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"theirs"}`)
	// The columns are the callers; the rows are every operation of the API.
	callers := []string{"", "none", "reader", "acme", "admin"}
	for _, tt := range []struct {
		method, path, body string
		want               []int
	}{
		{http.MethodPost, collection, `{"long_url":"http://example.com"}`, []int{201, 403, 403, 201, 201}},
		{http.MethodGet, collection, "", []int{401, 403, 200, 200, 200}},
		{http.MethodGet, collection + "/abc", "", []int{401, 403, 200, 200, 200}},
		{http.MethodGet, collection + "/theirs", "", []int{401, 403, 404, 404, 200}},
		{http.MethodGet, collection + "/abc/stats", "", []int{401, 403, 403, 200, 200}},
		{http.MethodGet, collection + "/theirs/stats", "", []int{401, 403, 403, 404, 200}},
		{http.MethodPatch, collection + "/abc", `{}`, []int{401, 403, 403, 200, 200}},
		{http.MethodPatch, collection + "/theirs", `{"title":"x"}`, []int{401, 403, 403, 404, 200}},
		{http.MethodDelete, collection + "/abc", "", []int{401, 403, 403, 204, 404}},
		{http.MethodDelete, collection + "/theirs", "", []int{401, 403, 403, 404, 204}},
		{http.MethodGet, "/api/openapi.json", "", []int{200, 200, 200, 200, 200}},
	} {
		for i, key := range callers {
			got := s.do(t, key, tt.method, tt.path, tt.body)
			if got.StatusCode != tt.want[i] {
				t.Errorf("%s %s as %q: got %d, want %d", tt.method, tt.path, key, got.StatusCode, tt.want[i])
			}
			if challenged := got.Header.Get("WWW-Authenticate") != ""; challenged != (got.StatusCode == http.StatusUnauthorized) {
				t.Errorf("%s %s as %q: %d with challenge %v", tt.method, tt.path, key, got.StatusCode, challenged)
			}
		}
	}
	closed := newService(t, func(p *parts) { delete(p.callers, "") })
	closed.do(t, "", http.MethodPost, collection, `{"long_url":"http://example.com"}`).want(t, http.StatusUnauthorized).problem(t)
}

func TestAnonymousCreatesAreLimited(t *testing.T) {
	s := newService(t)
	for range 10 {
		s.create(t, "", `{"long_url":"http://example.com"}`)
	}
	got := s.do(t, "", http.MethodPost, collection, `{"long_url":"http://example.com"}`).want(t, http.StatusTooManyRequests)
	if p := got.problem(t); p["type"] != "/problems/rate-limited" || p["detail"] != "create limit reached; retry after as many seconds as the Retry-After header says" {
		t.Errorf("problem %v", p)
	}
	want := map[string]string{"Retry-After": "6", "X-Ratelimit-Limit": "10", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "60"}
	for name, value := range want {
		if got.Header.Get(name) != value {
			t.Errorf("%s: %q, want %q", name, got.Header.Get(name), value)
		}
	}
	s.create(t, "admin", `{"long_url":"http://example.com"}`)
}

func TestStoreFailuresHaveTheirAnswers(t *testing.T) {
	for _, tt := range []struct {
		fault  error
		status int
		retry  string
		logged bool
	}{
		{fmt.Errorf("wrapped: %w", link.ErrUnavailable), http.StatusServiceUnavailable, "1", true},
		{fmt.Errorf("wrapped: %w", link.ErrFull), http.StatusInsufficientStorage, "", true},
		{fmt.Errorf("wrapped: %w", link.ErrUncertain), http.StatusServiceUnavailable, "1", true},
		{fmt.Errorf("secret of the driver"), http.StatusInternalServerError, "", true},
	} {
		s := newService(t, func(p *parts) {
			p.store = linktest.WithFaults(p.store, func(linktest.Op, link.Key) (bool, error) { return false, tt.fault })
		})
		got := s.do(t, "admin", http.MethodGet, collection+"/abc", "").want(t, tt.status)
		p := got.problem(t)
		if got.Header.Get("Retry-After") != tt.retry {
			t.Errorf("%v: Retry-After %q, want %q", tt.fault, got.Header.Get("Retry-After"), tt.retry)
		}
		if strings.Contains(string(got.body), "secret") || strings.Contains(string(got.body), "wrapped") {
			t.Errorf("the answer shows the inside: %s", got.body)
		}
		log := s.log.String()
		if lines := strings.Count(log, "\n"); lines != 1 || !strings.Contains(log, tt.fault.Error()) {
			t.Errorf("%v: logged %d times: %s", tt.fault, lines, log)
		}
		if id, _ := p["request_id"].(string); tt.status == http.StatusInternalServerError && (id == "" || !strings.Contains(log, id)) {
			t.Errorf("request id %q is not in the log: %s", id, log)
		}
	}
	s := newService(t, func(p *parts) {
		p.store = linktest.WithFaults(p.store, func(linktest.Op, link.Key) (bool, error) { return false, link.ErrFull })
	})
	s.do(t, "admin", http.MethodPost, collection, `{"long_url":"http://example.com"}`).want(t, http.StatusInsufficientStorage).problem(t)
}

func TestPanicIsOneLoggedFailure(t *testing.T) {
	s := newService(t, func(p *parts) {
		p.store = linktest.WithFaults(p.store, func(linktest.Op, link.Key) (bool, error) { panic("broken invariant") })
	})
	s.do(t, "admin", http.MethodGet, collection+"/abc", "").want(t, http.StatusInternalServerError).problem(t)
	if !strings.Contains(s.log.String(), "broken invariant") || !strings.Contains(s.log.String(), "links_test.go") {
		t.Errorf("log: %s", s.log)
	}
}

func TestClicksAreShownOrNull(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"def"}`)
	s.stats.counts = map[link.Key]uint64{{Code: "abc"}: 7}
	shown := func() map[string]any {
		page := s.do(t, "admin", http.MethodGet, collection, "").want(t, http.StatusOK).json(t)
		clicks := map[string]any{}
		for _, l := range page["links"].([]any) {
			l := l.(map[string]any)
			clicks[l["short_code"].(string)] = l["clicks"]
		}
		clicks["one"] = s.do(t, "admin", http.MethodGet, collection+"/abc", "").want(t, http.StatusOK).json(t)["clicks"]
		return clicks
	}
	if got := shown(); !maps.Equal(got, map[string]any{"abc": 7.0, "def": 0.0, "one": 7.0}) {
		t.Errorf("clicks %v", got)
	}
	s.stats.err = link.ErrUnavailable
	if got := shown(); !maps.Equal(got, map[string]any{"abc": nil, "def": nil, "one": nil}) {
		t.Errorf("statistics away: clicks %v, want null", got)
	}
}
