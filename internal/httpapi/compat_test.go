package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/analytics"
	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/hosts/hoststest"
	"curt/internal/httpapi"
)

// tops says of which values clicks came, too.
type tops struct {
	*stats

	rows map[clicks.Dimension][]analytics.Row
}

func (t tops) Top(_ context.Context, _ analytics.Scope, n int, _ time.Time, dimensions ...clicks.Dimension) ([][]analytics.Row, error) {
	var all [][]analytics.Row
	for _, d := range dimensions {
		all = append(all, t.rows[d][:min(n, len(t.rows[d]))])
	}
	return all, t.err
}

// newCompat is a service whose link has been clicked; it makes its links at
// https://tny.li.
func newCompat(tb testing.TB) service {
	tb.Helper()
	var said tops
	s := newService(tb, func(p *parts) {
		p.Hosts = hoststest.New(tb, "https://tny.li", "go.example")
		said.stats, _ = p.Stats.(*stats)
		said.rows = map[clicks.Dimension][]analytics.Row{
			clicks.ReferrerHost: {{Value: clicks.Direct, Clicks: 9}, {Value: "twitter.com", Clicks: 5}, {Value: clicks.Other, Clicks: 4}, {Value: "linkedin.com", Clicks: 3}},
			clicks.Country:      {{Value: "US", Clicks: 30}, {Value: "IN", Clicks: 20}, {Value: "DE", Clicks: 10}, {Value: clicks.Other, Clicks: 2}},
		}
		p.Stats = said
	})
	s.stats.totals = analytics.Totals{Counts: rollup.Counts{Clicks: 42318}, Clicks24h: 870, LastUpdated: noon()}
	s.stats.series = []analytics.Point{{Start: noon().Add(-36 * time.Hour).Truncate(24 * time.Hour), Clicks: 7}, {Start: noon().Truncate(24 * time.Hour)}}
	return s
}

// printed is a design's own interface: what it sends and what it is answered. The
// present is 2026-06-01, noon; an answer repeats a date in RFC 3339.
type printed struct {
	name, path   string
	sent         string
	answered     map[string]any
	code         string
	stats        map[string]any
	withoutAlias string // the same without the members that may be left out
}

func designs() []printed {
	const long = "https://example.com/very/long/path?q=1"
	days := []any{map[string]any{"day": "2026-05-31", "clicks": 7.0}, map[string]any{"day": "2026-06-01", "clicks": 0.0}}
	countries := map[string]any{"US": 30.0, "IN": 20.0, "DE": 10.0}
	return []printed{
		{
			name: "snake_case, dates without seconds", path: "/api/v1/urls",
			sent: `{"long_url":"https://example.com/very/long/path?q=1","custom_alias":"my-link","expires_at":"2027-01-01T00:00Z"}`,
			answered: map[string]any{
				"short_url": "https://tny.li/my-link", "long_url": long, "expires_at": "2027-01-01T00:00:00Z", "created_at": "2026-06-01T12:00:00Z",
			},
			code: "my-link",
			stats: map[string]any{
				"total_clicks": 42318.0, "clicks_24h": 870.0,
				"top_referrers": []any{"twitter.com", "linkedin.com"}, "top_countries": []any{"US", "IN", "DE"},
			},
			withoutAlias: `{"long_url":"https://example.com/very/long/path?q=1"}`,
		},
		{
			name: "camelCase at the same path", path: "/api/v1/urls",
			sent: `{"longUrl":"https://example.com/very/long/path?q=1","customAlias":"abc123","expiresAt":"2027-01-01T00:00:00Z"}`,
			answered: map[string]any{
				"shortCode": "abc123", "shortUrl": "https://tny.li/abc123", "longUrl": long,
				"createdAt": "2026-06-01T12:00:00Z", "expiresAt": "2027-01-01T00:00:00Z",
			},
			code: "abc123",
			stats: map[string]any{
				"total_clicks": 42318.0, "clicks_24h": 870.0,
				"top_referrers": []any{"twitter.com", "linkedin.com"}, "top_countries": []any{"US", "IN", "DE"},
			},
			withoutAlias: `{"longUrl":"https://example.com/very/long/path?q=1"}`,
		},
		{
			name: "the shortest path", path: "/shorten",
			sent: `{"long_url":"https://example.com/very/long/path?q=1","custom_alias":"slug","expires_at":"2027-01-01T00:00:00Z"}`,
			answered: map[string]any{
				"short_code": "slug", "short_url": "https://tny.li/slug", "long_url": long,
				"expires_at": "2027-01-01T00:00:00Z", "created_at": "2026-06-01T12:00:00Z",
			},
			code:         "slug",
			stats:        map[string]any{"clicks": 42318.0, "by_country": countries, "by_day": days},
			withoutAlias: `{"long_url":"https://example.com/very/long/path?q=1"}`,
		},
		{
			name: "a version in front", path: "/v1/urls",
			sent:         `{"long_url":"https://example.com/very/long/path?q=1","custom_alias":"my-brand","expires_at":"2027-01-01T00:00:00Z"}`,
			answered:     map[string]any{"short_code": "my-brand", "short_url": "https://tny.li/my-brand", "created_at": "2026-06-01T12:00:00Z"},
			code:         "my-brand",
			stats:        map[string]any{"clicks": 42318.0, "by_country": countries, "by_day": days},
			withoutAlias: `{"long_url":"https://example.com/very/long/path?q=1"}`,
		},
		{
			name: "camelCase with a version in front", path: "/v1/links",
			sent:         `{"longUrl":"https://example.com/very/long/path?q=1","customAlias":"promo2024","expiresAt":"2027-01-01T00:00:00Z"}`,
			answered:     map[string]any{"shortCode": "promo2024", "shortUrl": "https://tny.li/promo2024"},
			code:         "promo2024",
			stats:        map[string]any{"totalClicks": 42318.0, "lastUpdatedAt": "2026-06-01T12:00:00Z"},
			withoutAlias: `{"longUrl":"https://example.com/very/long/path?q=1"}`,
		},
	}
}

func TestPublishedDesignsWorkAsPrinted(t *testing.T) {
	for _, p := range designs() {
		t.Run(p.name, func(t *testing.T) {
			s := newCompat(t)
			d := describedBy(t, s)
			made := s.do(t, "acme", http.MethodPost, p.path, p.sent).want(t, http.StatusCreated)
			if diff := cmp.Diff(p.answered, made.json(t)); diff != "" {
				t.Errorf("create (-printed +answered):\n%s", diff)
			}
			if made.Header.Get("Location") != collection+"/"+p.code || made.Header.Get("Etag") != `"1"` {
				t.Errorf("headers %v", made.Header)
			}
			if got := s.do(t, "acme", http.MethodGet, collection+"/"+p.code, "").want(t, http.StatusOK).json(t); got["expires_at"] != "2027-01-01T00:00:00Z" {
				t.Errorf("stored as %v", got)
			}
			stats := s.do(t, "acme", http.MethodGet, p.path+"/"+p.code+"/stats", "").want(t, http.StatusOK).json(t)
			if diff := cmp.Diff(p.stats, stats); diff != "" {
				t.Errorf("statistics (-printed +answered):\n%s", diff)
			}
			described := d.Paths[p.path+"/{code}/stats"]["get"].Responses["200"].Content["application/json"].Schema
			if _, ok := stats["by_country"]; !ok { // whose members nobody can list
				d.check(t, p.path, described, stats)
			}
			s.do(t, "acme", http.MethodPost, p.path, p.sent).want(t, http.StatusConflict).problem(t)
			s.do(t, "acme", http.MethodDelete, p.path+"/"+p.code, "").want(t, http.StatusNoContent)
			s.do(t, "acme", http.MethodDelete, p.path+"/"+p.code, "").want(t, http.StatusNotFound).problem(t)
			s.do(t, "acme", http.MethodPost, p.path, p.withoutAlias).want(t, http.StatusCreated)
		})
	}
}

// What the designs print of refusals: 400 for other schemes, 409 for an alias that is taken or
// reserved, 429 with the seconds to wait.
func TestPublishedDesignsRefuseAsPrinted(t *testing.T) {
	for _, p := range designs() {
		t.Run(p.name, func(t *testing.T) {
			s := newCompat(t)
			for _, scheme := range []string{"javascript:", "data:", "ftp:"} {
				s.do(t, "acme", http.MethodPost, p.path, strings.Replace(p.sent, "https:", scheme, 1)).want(t, http.StatusBadRequest).problem(t)
			}
			s.do(t, "acme", http.MethodPost, p.path, p.sent).want(t, http.StatusCreated)
			if got := s.do(t, "acme", http.MethodPost, p.path, p.sent).want(t, http.StatusConflict).problem(t); got["type"] != "/problems/slug-taken" {
				t.Errorf("the alias is taken: %v", got)
			}
			reserved := strings.Replace(p.sent, `"`+p.code+`"`, `"admin"`, 1)
			if got := s.do(t, "acme", http.MethodPost, p.path, reserved).want(t, http.StatusConflict).problem(t); got["detail"] != "this slug is reserved" {
				t.Errorf("the alias is reserved: %v", got)
			}
			for range 10 { // the anonymous limit of the test's service
				s.do(t, "", http.MethodPost, p.path, p.withoutAlias).want(t, http.StatusCreated)
			}
			refused := s.do(t, "", http.MethodPost, p.path, p.withoutAlias).want(t, http.StatusTooManyRequests)
			if wait, err := strconv.Atoi(refused.Header.Get("Retry-After")); err != nil || wait < 1 {
				t.Errorf("Retry-After is %q", refused.Header.Get("Retry-After"))
			}
		})
	}
}

// One design prints its Idempotency-Key as a bare UUID: a retry gets the same link.
func TestPublishedDesignsRepeatAsPrinted(t *testing.T) {
	const key = "Idempotency-Key: 6f1e3a52-5c2e-4c1e-9b6e-0d4f5a1c2b3d"
	for _, p := range designs() {
		s := newCompat(t)
		first := s.do(t, "acme", http.MethodPost, p.path, p.withoutAlias, key).want(t, http.StatusCreated).json(t)
		second := s.do(t, "acme", http.MethodPost, p.path, p.withoutAlias, key).want(t, http.StatusCreated).json(t)
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("%s: the retry (-first +second):\n%s", p.name, diff)
		}
		if n := s.stored(t); n != 1 {
			t.Errorf("%s: %d links stored", p.name, n)
		}
	}
}

func TestSpellingsHaveTheRulesOfTheAPI(t *testing.T) {
	for _, p := range designs() {
		s := newCompat(t)
		for i := range 11 { // the anonymous limit of the test's service is ten
			want := http.StatusCreated
			if i == 10 {
				want = http.StatusTooManyRequests
			}
			s.do(t, "", http.MethodPost, p.path, p.withoutAlias).want(t, want)
		}
		s.do(t, "acme", http.MethodPost, p.path, p.sent).want(t, http.StatusCreated)
		s.do(t, "", http.MethodDelete, p.path+"/"+p.code, "").want(t, http.StatusUnauthorized).problem(t)
		s.do(t, "reader", http.MethodPost, p.path, p.sent).want(t, http.StatusForbidden).problem(t)
		s.do(t, "reader", http.MethodGet, p.path+"/"+p.code+"/stats", "").want(t, http.StatusForbidden).problem(t)
		s.do(t, "acme", http.MethodDelete, p.path+"/"+p.code, "", `If-Match: "7"`).want(t, http.StatusPreconditionFailed).problem(t)
		s.stats.err = analytics.ErrUnavailable
		s.do(t, "acme", http.MethodGet, p.path+"/"+p.code+"/stats", "").want(t, http.StatusServiceUnavailable).problem(t)
	}
}

// A field is blamed by the name that the caller sent.
func TestSpellingsBlameTheirOwnNames(t *testing.T) {
	s := newCompat(t)
	for _, tt := range []struct{ path, body, field string }{
		{"/api/v1/urls", `{"longUrl":"ftp://example.com"}`, "longUrl"},
		{"/api/v1/urls", `{"long_url":"ftp://example.com"}`, "long_url"},
		{"/api/v1/urls", `{"longUrl":"http://example.com","expires_at":"2027-01-01T00:00Z"}`, "expires_at"},
		{"/api/v1/urls", `{"long_url":"http://example.com","expiresAt":"2027-01-01T00:00Z"}`, "long_url"},
		{"/api/v1/urls", `{"customAlias":"abc"}`, "longUrl"},
		{"/api/v1/urls", `{"longUrl":"http://example.com","longUrl":"http://example.com"}`, "longUrl"},
		{"/api/v1/urls", `{}`, "long_url"},
		{"/v1/links", `{"longUrl":"http://example.com","customAlias":"a"}`, "customAlias"},
		{"/v1/links", `{"longUrl":"http://example.com","expiresAt":"2026-05-31T00:00Z"}`, "expiresAt"},
		{"/v1/links", `{"long_url":"http://example.com"}`, "long_url"},
		{"/v1/links", `{"longUrl":"http://example.com","title":"x"}`, "title"},
		{"/v1/urls", `{"longUrl":"http://example.com"}`, "longUrl"},
		{"/v1/urls", `{"long_url":"http://example.com","expires_at":"2026-06-01T12:00Z"}`, "expires_at"},
		{"/shorten", `{"longUrl":"http://example.com"}`, "longUrl"},
		{"/shorten", `{"long_url":"https://tny.li/x"}`, "long_url"},
	} {
		got := s.do(t, "acme", http.MethodPost, tt.path, tt.body).want(t, http.StatusBadRequest).problem(t)
		if got["field"] != tt.field {
			t.Errorf("%s %s: blames %v, want %s", tt.path, tt.body, got["field"], tt.field)
		}
	}
	if n := s.stored(t); n != 0 {
		t.Errorf("%d links stored", n)
	}
}

func TestWhichRequestsAreTheAPIs(t *testing.T) {
	for request, want := range map[string]bool{
		"POST /api/v1/links": true, "GET /api/": true, "GET /api/openapi.json": true, "GET /v1/urls/abc/stats": true, "POST /v1/links": true,
		"POST /shorten": true, "OPTIONS /shorten": true, "DELETE /shorten/abc": true, "GET /shorten/abc/stats": true,
		"GET /shorten": false, "HEAD /shorten": false, "GET /v1": false, "GET /abc": false, "POST /abc": false, "GET /shortener": false,
		"POST /Shorten": false, "GET /v1x/urls": false, "GET /": false, "GET //v1/urls": false,
	} {
		var method, target string
		for i := range request {
			if request[i] == ' ' {
				method, target = request[:i], request[i+1:]
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), method, "http://curt.test"+target, http.NoBody)
		if got := httpapi.Serves(r); got != want {
			t.Errorf("%s: %v", request, got)
		}
	}
}
