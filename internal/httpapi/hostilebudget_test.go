package httpapi_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/auth"
	"curt/internal/bodies"
	"curt/internal/ratelimit"
	"curt/internal/redirect"
	"curt/internal/shorten/create"
	"curt/internal/testkit"
)

// unread is a body that nobody may look at.
type unread struct{ reads int }

func (u *unread) Read([]byte) (int, error) { u.reads++; return 0, errors.New("nobody may read this") }

// limitedTo lets every plan make n links, and networks send one report and one appeal.
func limitedTo(n int) func(*parts) {
	return func(p *parts) {
		p.plans = create.Plans{auth.PlanDefault: {ratelimit.Per(n, time.Minute)}, auth.PlanAnonymous: {ratelimit.Per(n, time.Minute)}}
		p.limits = ratelimit.NewMemory()
		one := ratelimit.Per(1, time.Hour)
		p.limit = &one
	}
}

// ask sends a body as JSON.
func (s service) ask(t *testing.T, caller, method, path string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "https://curt.test"+path, body)
	r.Header.Set("Content-Type", "application/json")
	if caller != "" {
		r.Header.Set("Authorization", "Bearer "+caller)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// Who may not do a thing, or has done it often enough, is told so before a byte of his body is
// read.
func TestNoBodyIsReadOfWhoMayNot(t *testing.T) {
	s := newService(t, limitedTo(1))
	s.do(t, "acme", http.MethodPost, collection, `{"long_url":"http://example.com/"}`).want(t, http.StatusCreated)
	s.do(t, "", http.MethodPost, collection, `{"long_url":"http://example.com/"}`).want(t, http.StatusCreated)
	s.do(t, "", http.MethodPost, "/api/v1/reports", `{"code":"nothing","category":"spam"}`).want(t, http.StatusAccepted)
	s.do(t, "", http.MethodPost, "/api/v1/appeals", `{"code":"nothing","reason":"x"}`).want(t, http.StatusNotFound)
	for _, c := range []struct {
		caller, path string
		status       int
	}{
		{"stranger", bulk, 401},
		{"", bulk, 401},
		{"none", bulk, 403},
		{"reader", bulk, 403},
		{"reader", collection, 403},
		{"acme", bulk, 429},
		{"acme", collection, 429},
		{"", collection, 429},
		{"acme", "/api/v1/urls", 429},
		{"", "/api/v1/reports", 429},
		{"", "/api/v1/appeals", 429},
	} {
		body := &unread{}
		w := s.ask(t, c.caller, http.MethodPost, c.path, body)
		if w.Code != c.status || body.reads != 0 {
			t.Errorf("%q at %s: %d, want %d; the body was read %d times: %s", c.caller, c.path, w.Code, c.status, body.reads, w.Body)
		}
		if c.status == 429 && w.Header().Get("Retry-After") == "" {
			t.Errorf("%q at %s: no Retry-After", c.caller, c.path)
		}
	}
}

// A limit that is spent refuses no list that was made before, under the key that it had.
func TestAReplayCostsNothingOfTheLimit(t *testing.T) {
	s := newService(t, limitedTo(2))
	const list = `{"links":[{"long_url":"http://example.com/1"},{"long_url":"http://example.com/2"}]}`
	first := outcomes(t, s.do(t, "acme", http.MethodPost, bulk, list, "Idempotency-Key: once").want(t, http.StatusMultiStatus))
	again := outcomes(t, s.do(t, "acme", http.MethodPost, bulk, list, "Idempotency-Key: once").want(t, http.StatusMultiStatus))
	if fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("%v, then %v", first, again)
	}
	s.do(t, "acme", http.MethodPost, bulk, list, "Idempotency-Key: twice").want(t, http.StatusTooManyRequests)
	s.do(t, "acme", http.MethodPost, bulk, list).want(t, http.StatusTooManyRequests)
}

// bigBulk has 1,000 links with two URLs of some n bytes each.
func bigBulk(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"links":[`)
	long := strings.Repeat("x", n)
	for i := range 1000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"long_url":"https://example.com/%d/%s","fallback_url":"https://example.com/%s"}`, i, long, long)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// Forty lists that lack their last byte take no more than the budget has; then a list that is
// whole gets its room from those that send nothing, and a link its own meanwhile.
func TestUnfinishedListsTakeABudget(t *testing.T) {
	testkit.Unraced(t)
	synctest.Test(t, func(t *testing.T) {
		budget := bodies.New(bodies.Config{})
		s := newService(t, func(p *parts) { p.Bodies = budget })
		list := bigBulk(8000)
		type held struct {
			w     *io.PipeWriter
			ended chan *httptest.ResponseRecorder
		}
		var all []held
		for range 40 {
			r, w := io.Pipe()
			h := held{w, make(chan *httptest.ResponseRecorder, 1)}
			go func() {
				answer := s.ask(t, "acme", http.MethodPost, bulk, r)
				_ = r.CloseWithError(errors.New("answered"))
				h.ended <- answer
			}()
			go func() { _, _ = w.Write(list[:len(list)-1]) }()
			all = append(all, h)
			synctest.Wait()
			if small, large := budget.Taken(); small > bodies.DefaultFirstShare || large > bodies.DefaultLargeShare {
				t.Fatalf("%d and %d bytes are taken", small, large)
			}
		}
		if _, large := budget.Taken(); large < bodies.DefaultLarge/2 || budget.Waiting() < 30 {
			t.Errorf("%d bytes are taken, %d wait", large, budget.Waiting())
		}
		began := time.Now()
		s.do(t, "acme", http.MethodPost, collection, `{"long_url":"http://example.com/"}`).want(t, http.StatusCreated)
		if time.Since(began) != 0 {
			t.Errorf("a link waited for %s", time.Since(began))
		}
		// In the tests of net/http's own writer those that hold the room are stopped; here they
		// are not, so the others are told to come again.
		time.Sleep(bodies.DefaultPatience)
		synctest.Wait()
		busy := 0
		for _, h := range all {
			select {
			case w := <-h.ended:
				busy++
				if w.Code != 503 || w.Header().Get("Retry-After") != "5" || !strings.Contains(w.Body.String(), "/problems/server-busy") {
					t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
				}
			default:
			}
		}
		if busy == 0 { // others were given the room of those that left
			t.Errorf("%d are told to come again", busy)
		}
		for _, h := range all {
			_ = h.w.Close() // without the last byte
		}
		synctest.Wait()
		if small, large := budget.Taken(); small != 0 || large != 0 {
			t.Errorf("%d and %d bytes are taken by nobody", small, large)
		}
		s.do(t, "acme", http.MethodPost, bulk, string(list)).want(t, http.StatusMultiStatus)
	})
}

// A connection that holds room and sends nothing is stopped when others wait for it, over a
// real connection: 408, and the list that waited is made.
func TestAnUnfinishedListIsStopped(t *testing.T) {
	testkit.Unraced(t)
	budget := bodies.New(bodies.Config{LargeShare: bodies.DefaultLarge})
	s := newService(t, func(p *parts) { p.Bodies = budget })
	server := httptest.NewServer(s)
	defer server.Close()
	list := bigBulk(8000)
	send := func(body io.Reader) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+bulk, body)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		r.Host = "curt.test"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer acme")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer answer.Body.Close() //nolint:errcheck // only read
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	pr, pw := io.Pipe()
	stopped := make(chan int, 1)
	go func() {
		status, _ := send(pr)
		stopped <- status
	}()
	if _, err := pw.Write(list[:len(list)-1]); err != nil {
		t.Fatal(err)
	}
	status, text := send(bytes.NewReader(list))
	for status == http.StatusServiceUnavailable { // the one that holds was not stopped in time: this machine stood still
		status, text = send(bytes.NewReader(list))
	}
	if status != http.StatusMultiStatus || strings.Count(text, `"status":201`) != 1000 {
		t.Errorf("the list that waited: %d %.200s", status, text)
	}
	if got := <-stopped; got != http.StatusRequestTimeout {
		t.Errorf("the one that holds: %d", got)
	}
	_ = pw.Close()
}

// Aliases that no link has are metered like the codes that visitors guess, and so are those that
// one has once the budget is spent.
func TestAliasesAreMeteredLikeUnknownCodes(t *testing.T) {
	s := newService(t, func(p *parts) {
		p.Unknown = redirect.NewBudget(ratelimit.NewMemory(), ratelimit.Per(5, time.Minute))
	})
	s.create(t, "acme", `{"long_url":"http://example.com/","custom_alias":"taken"}`)
	const path = "/api/v1/aliases/"
	for range 20 { // what tells nothing about unknown codes is free
		s.do(t, "acme", http.MethodGet, path+"taken", "").want(t, http.StatusOK)
		s.do(t, "acme", http.MethodGet, path+"api", "").want(t, http.StatusOK)
	}
	for i := range 5 {
		s.do(t, "acme", http.MethodGet, fmt.Sprint(path, "free-", i), "").want(t, http.StatusOK)
	}
	for _, alias := range []string{"free-5", "taken", "free-0"} {
		for _, caller := range []string{"acme", "admin"} {
			got := s.do(t, caller, http.MethodGet, path+alias, "").want(t, http.StatusTooManyRequests)
			if got.Header.Get("Retry-After") != "12" {
				t.Errorf("%s: %v", alias, got.Header)
			}
		}
	}
	s.do(t, "acme", http.MethodGet, path+"api", "").want(t, http.StatusOK)
}
