package httpapi_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/abuse"
	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/auth/authtest"
	"curt/internal/clicks"
	"curt/internal/clicks/history"
	"curt/internal/codegen"
	"curt/internal/hosts/hoststest"
	"curt/internal/httpapi"
	"curt/internal/idempotency/idempotencytest"
	"curt/internal/job"
	"curt/internal/job/jobtest"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/moderation/lists"
	"curt/internal/moderation/moderationtest"
	"curt/internal/moderation/moderator"
	"curt/internal/ratelimit"
	"curt/internal/review"
	"curt/internal/search"
	"curt/internal/search/searchtest"
	"curt/internal/shorten/create"
	"curt/internal/shorten/linkservice"
)

func noon() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

func key(code string) link.Key { return link.Key{Code: link.Code(code)} }

// service is the API over a memory store, in process.
type service struct {
	http.Handler

	store *linktest.Memory
	keys  *authtest.Memory
	stats *stats
	past  *fakeHistory
	log   *bytes.Buffer

	jobs    *jobtest.Memory
	journal *moderationtest.Memory
	desk    *review.Service
	callers authtest.Callers
}

// parts is what a test may change before the API is put together.
type parts struct {
	httpapi.Config

	store   link.Store
	index   search.Index // nil = there is none
	callers authtest.Callers
	limit   *ratelimit.Limit // of reports and of appeals; nil = none
	plans   create.Plans
	limits  ratelimit.Store // of creates; nil = ten of each

	authenticator auth.Authenticator // nil = the callers
}

func newService(tb testing.TB, change ...func(*parts)) service {
	tb.Helper()
	memory := linktest.NewMemory()
	memory.Now = noon
	jobs := jobtest.NewMemory(job.DefaultBounds())
	jobs.Now = noon
	s := service{jobs: jobs, store: memory, keys: authtest.NewMemory(), stats: &stats{}, past: &fakeHistory{}, log: &bytes.Buffer{}, journal: moderationtest.NewMemory()}
	every := []auth.Scope{auth.LinksRead, auth.LinksWrite, auth.StatsRead}
	p := parts{store: memory, callers: authtest.Callers{
		"":       {Scopes: []auth.Scope{auth.LinksWrite}},
		"admin":  {KeyID: "admin", Workspace: link.WorkspaceDefault, Scopes: []auth.Scope{auth.Admin}},
		"acme":   {KeyID: "acme-key", Workspace: "acme", Scopes: every},
		"reader": {KeyID: "reader", Workspace: "acme", Scopes: []auth.Scope{auth.LinksRead}},
		"none":   {KeyID: "none", Workspace: "acme"},
	}, Config: httpapi.Config{
		Jobs: jobs, Stats: s.stats, Clicks: s.past, Hosts: hoststest.New(tb, "https://curt.test", "go.example"), CursorKey: []byte("sixteen bytes key"),
		Health:     wellness,
		ClientAddr: func(*http.Request) netip.Addr { return netip.MustParseAddr("192.0.2.1") },
		Log:        slog.New(slog.NewTextHandler(&syncWriter{w: s.log}, nil)), Now: noon,
	}}
	p.Shares = auth.NewShares(authtest.NewMemoryShares(), s.keys, zeros{}) // examples show a share
	for _, f := range change {
		f(&p)
	}
	var err error
	p.Auth, s.callers = p.callers, p.callers
	if p.authenticator != nil {
		p.Auth = p.authenticator
	}
	if p.Live == nil {
		p.Live = analytics.NewLive(p.Stats)
	}
	if p.Keys, err = auth.NewKeys(auth.KeysConfig{AdminKey: "curt_" + strings.Repeat("a", 32), Store: s.keys}); err != nil {
		tb.Fatal(err)
	}
	if p.Lists, err = lists.Open(tb.Context(), lists.Config{Store: s.journal, Random: zeros{}}); err != nil {
		tb.Fatal(err)
	}
	p.Moderator, err = moderator.Open(tb.Context(), moderator.Config{Lists: p.Lists, Journal: s.journal, Progress: s.journal, Links: p.store, Random: zeros{}, Now: noon})
	if err != nil {
		tb.Fatal(err)
	}
	if p.limits == nil {
		p.limits = &tenEach{}
	}
	cases := moderationtest.NewMemoryCases()
	s.desk, err = review.New(review.Config{
		Cases: cases, Appeals: cases, Destinations: cases, Journal: s.journal, Moderator: p.Moderator, Links: p.store, DayKeys: dayKeys{},
		Limits: ratelimit.NewMemory(), ReportLimit: p.limit, AppealLimit: p.limit, Random: zeros{}, // examples show a token
	})
	if err != nil {
		tb.Fatal(err)
	}
	p.Links = linkservice.New(linkservice.Config{
		Moderator: p.Moderator, Journal: s.journal, Lists: p.Lists, Judge: suspicious, Cases: s.desk,
		Store: p.store, Index: p.index, Ranking: searchtest.NewRanks(), Codes: &counter{}, Limits: p.limits, Plans: p.plans, Hosts: p.Hosts, Once: idempotencytest.NewMemory(), Random: rand.Reader,
	})
	p.Review = s.desk
	if s.Handler, err = httpapi.New(p.Config); err != nil {
		tb.Fatal(err)
	}
	return s
}

// suspicious finds what leads to refused.example too bad, and nothing else.
func suspicious(_ context.Context, _ time.Time, f *abuse.Facts) abuse.Decision {
	if f.URL.Host() != "refused.example" {
		return abuse.Decision{Safety: link.Clean, Floor: link.Clean}
	}
	return abuse.Decision{Safety: link.Blocked, Score: 95, Floor: link.Clean, Findings: []abuse.Finding{
		{Signal: abuse.LookAlike, Points: 65, Evidence: "refused.example"}, {Signal: abuse.YoungDomain, Points: 30},
	}}
}

// refused returns the case of a create that is refused because of its score.
func (s service) refused(tb testing.TB, key, url string) string {
	tb.Helper()
	p := s.do(tb, key, http.MethodPost, collection, `{"long_url":"`+url+`"}`).want(tb, http.StatusUnprocessableEntity).problem(tb)
	id, _ := p["case"].(string)
	if p["type"] != "/problems/destination-harmful" || id == "" || p["appeal_url"] != "https://curt.test/appeal?case="+id {
		tb.Errorf("%v", p)
	}
	return id
}

// zeros is a source of bits that are the same each time.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// dayKeys has the same key for every day.
type dayKeys struct{}

func (dayKeys) DayKey(context.Context, time.Time) (key [16]byte, err error) { return key, nil }

// syncWriter lets handlers log in parallel.
type syncWriter struct {
	mu sync.Mutex
	w  io.Writer // guarded by mu
}

func (s *syncWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// counter is a Generator that counts.
type counter struct{ n atomic.Int64 }

func (c *counter) Next(context.Context, codegen.Need) (link.Code, error) {
	return link.Code(fmt.Sprintf("c%06d", c.n.Add(1))), nil
}
func (c *counter) Guarantee() codegen.Guarantee { return codegen.Unique }
func (c *counter) Kind() link.CodeKind          { return link.Counted }
func (c *counter) Burned(link.Code)             {}

// tenEach allows ten of everything and never refills.
type tenEach struct {
	mu    sync.Mutex
	spent map[string]int // guarded by mu
}

func (l *tenEach) Spend(_ context.Context, _ time.Time, charges []ratelimit.Charge) ([]ratelimit.Verdict, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spent == nil {
		l.spent = map[string]int{}
	}
	last := &charges[len(charges)-1]
	peek := last.Cost > last.Limit.Burst // never allowed: nothing is spent
	verdicts := make([]ratelimit.Verdict, len(charges))
	if l.spent[charges[0].Bucket] >= 10 {
		verdicts[0] = ratelimit.Verdict{Limit: 10, RetryAfter: 5500 * time.Millisecond, ResetAfter: time.Minute}
		return verdicts, nil
	}
	if !peek {
		l.spent[charges[0].Bucket]++
	}
	verdicts[0].Allowed = true
	return verdicts, nil
}

// stats is an analytics.Reader that says what it is told.
type stats struct {
	analytics.Reader // panics where the API asks for what it does not show

	counts map[link.Key]uint64
	totals analytics.Totals
	series []analytics.Point
	top    map[clicks.Dimension][]analytics.Row
	most   int
	asked  analytics.Scope
	step   analytics.Step
	err    error

	rangeErr error // of Series
}

func (s *stats) Clicks(_ context.Context, keys []link.Key) ([]uint64, error) {
	counts := make([]uint64, len(keys))
	for i, k := range keys {
		counts[i] = s.counts[k]
	}
	return counts, s.err
}

func (s *stats) Totals(context.Context, analytics.Scope, time.Time) (analytics.Totals, error) {
	return s.totals, s.err
}

func (s *stats) Series(_ context.Context, scope analytics.Scope, step analytics.Step, _ time.Time) ([]analytics.Point, error) {
	s.asked, s.step = scope, step
	return s.series, errors.Join(s.err, s.rangeErr)
}

func (s *stats) Top(_ context.Context, _ analytics.Scope, n int, _ time.Time, dimensions ...clicks.Dimension) (top [][]analytics.Row, err error) {
	s.most = n
	for _, d := range dimensions {
		top = append(top, s.top[d])
	}
	return top, s.err
}

// fakeHistory is an analytics.History that says what it is told.
type fakeHistory struct {
	page  history.Page
	since time.Time
	asked history.Query
	calls int
	err   error
}

func (h *fakeHistory) Page(_ context.Context, q history.Query) (history.Page, error) {
	h.asked = q
	h.calls++
	return h.page, h.err
}

func (h *fakeHistory) Since() time.Time { return h.since }

// answer is a response that was read.
type answer struct {
	*http.Response

	body []byte
}

// do sends a request as the caller with the given key ("" = none); headers are
// "Name: value".
func (s service) do(tb testing.TB, key, method, target, body string, headers ...string) answer {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), method, target, strings.NewReader(body))
	r.Host = "localhost"
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w := watcher{httptest.NewRecorder(), cancel}
	s.ServeHTTP(w, r.WithContext(ctx))
	return answer{w.Result(), w.Body.Bytes()}
}

// watcher goes as soon as it was told something: streams have no other end.
type watcher struct {
	*httptest.ResponseRecorder

	leave func()
}

func (w watcher) Flush() {
	w.ResponseRecorder.Flush()
	w.leave()
}

// want fails the test unless the answer has the status.
func (a answer) want(tb testing.TB, status int) answer {
	tb.Helper()
	if a.StatusCode != status {
		tb.Fatalf("got %d, want %d: %s", a.StatusCode, status, a.body)
	}
	return a
}

// json reads the answer's object.
func (a answer) json(tb testing.TB) map[string]any {
	tb.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		tb.Fatalf("%v: %s", err, a.body)
	}
	return v
}

// problem reads the answer's problem and checks what all problems share.
func (a answer) problem(tb testing.TB) map[string]any {
	tb.Helper()
	p := a.json(tb)
	kind, _ := p["type"].(string)
	if a.Header.Get("Content-Type") != "application/problem+json" || !strings.HasPrefix(kind, "/problems/") ||
		p["status"] != float64(a.StatusCode) || p["title"] == "" || p["detail"] == nil {
		tb.Errorf("not a problem (%s): %s", a.Header.Get("Content-Type"), a.body)
	}
	if a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("X-Content-Type-Options") != "nosniff" {
		tb.Errorf("headers %v", a.Header)
	}
	return p
}

// create makes a link from a body and returns its resource.
func (s service) create(tb testing.TB, key, body string) map[string]any {
	tb.Helper()
	return s.do(tb, key, http.MethodPost, "/api/v1/links", body).want(tb, http.StatusCreated).json(tb)
}

// stored returns how many links the store holds.
func (s service) stored(tb testing.TB) int {
	tb.Helper()
	return len(s.links(tb))
}

// links returns what the store holds.
func (s service) links(tb testing.TB) []link.Link {
	tb.Helper()
	slice, err := s.store.List(tb.Context(), link.Filter{}, link.Page{Limit: link.MaxPage})
	if err != nil {
		tb.Fatal(err)
	}
	return slice.Links
}
