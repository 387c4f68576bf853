package redirect_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"curt/internal/cache/cachetest"
	"curt/internal/clicks"
	"curt/internal/clientaddr"
	"curt/internal/link"
	"curt/internal/redirect"
)

func passes(t testing.TB, key string) *redirect.Passes {
	t.Helper()
	p, err := redirect.NewPasses([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// passing is a resolver whose warning pages lead on.
func passing(t testing.TB, s *cachetest.Source) *redirect.Resolver {
	t.Helper()
	r, err := redirect.NewResolver(redirect.ResolverConfig{Source: s, Spender: s, Passes: passes(t, "a key of 16 bytes")})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// person is a browser's request from an address.
func person(query string) redirect.Request {
	return redirect.Request{Method: "GET", Query: query, Accept: []string{browser}, Client: netip.MustParseAddr("192.0.2.7")}
}

// warnedOf returns the query by which the page of a link leads on.
func warnedOf(t testing.TB, r *redirect.Resolver, code string, q redirect.Request, at time.Time) string {
	t.Helper()
	out, err := r.Resolve(t.Context(), key(code), q, at)
	path, query, ok := strings.Cut(out.Onward, "?")
	if err != nil || out.Problem != redirect.Warning || out.Status != http.StatusOK || !ok || path != "/"+code {
		t.Fatalf("the page of %s: %+v, %v", code, out, err)
	}
	return query
}

func TestAPassLeadsOnOnceAndIsACopyOfNothing(t *testing.T) {
	const far = "https://far.example/?x=1#part"
	past := now().Add(-time.Hour).UnixMilli()
	for name, c := range map[string]struct {
		target link.Target
		query  string
		to     string
		click  clicks.Outcome
	}{
		"warn":             {link.Target{}, "", far, clicks.Redirected},
		"quarantined":      {link.Target{Safety: link.Quarantined}, "", far, clicks.Redirected},
		"permanent":        {link.Target{Redirect: 301}, "", far, clicks.Redirected},
		"any method":       {link.Target{Redirect: 308, Cacheable: true}, "", far, clicks.Redirected},
		"the query stays":  {link.Target{}, "a=b", far, clicks.Redirected},
		"the query goes":   {link.Target{ForwardQuery: true}, "a=b&qr=1&<c>", "https://far.example/?x=1&a=b&%3Cc%3E#part", clicks.Redirected},
		"a second warning": {link.Target{ForwardQuery: true}, "curt_pass=old&a=b&curt_pass=x", "https://far.example/?x=1&a=b#part", clicks.Redirected},
		"its fallback":     {link.Target{Expires: past, Fallback: back}, "", back, clicks.FellBack},
	} {
		t.Run(name, func(t *testing.T) {
			s := cachetest.NewSource()
			if c.target.Safety == 0 {
				c.target.Safety = link.Warn
			}
			c.target.Destination = far
			s.Put(key("abc"), c.target)
			r := passing(t, s)
			query := warnedOf(t, r, "abc", person(c.query), now())
			for _, method := range []string{"GET", "HEAD"} {
				q := person(query)
				q.Method, q.Preview = method, method == "HEAD"
				out, err := r.Resolve(t.Context(), key("abc"), q, now())
				if err != nil || out.Status != http.StatusFound || out.Location != c.to || out.Problem != redirect.NoProblem ||
					out.CacheControl != "no-store" || out.Click != c.click || !out.Warned || !out.NoIndex {
					t.Errorf("%s: %+v, %v", method, out, err)
				}
			}
			if redirect.ViaQR(c.query) != redirect.ViaQR(query) {
				t.Errorf("the trigger of %q became %q", c.query, query)
			}
		})
	}
}

// Whatever a pass was not made for shows the page again, with a new pass; programs get
// the problem.
func TestAPassForAnythingElseShowsThePageAgain(t *testing.T) {
	warned := link.Target{Destination: dest, Safety: link.Warn, Redirect: 307, Fallback: back}
	s, later, moved := cachetest.NewSource(), cachetest.NewSource(), cachetest.NewSource()
	for _, code := range []string{"abc", "other"} {
		s.Put(key(code), warned)
	}
	later.Put(key("abc"), warned)
	later.Put(key("abc"), warned)
	elsewhere := warned
	elsewhere.Destination = "https://other.example/"
	moved.Put(key("abc"), elsewhere)
	r := passing(t, s)
	query := warnedOf(t, r, "abc", person(""), now())
	_, token, _ := strings.Cut(query, "curt_pass=")
	stranger, err := redirect.NewResolver(redirect.ResolverConfig{Source: s, Spender: s, Passes: passes(t, "another of 16 bytes")})
	if err != nil {
		t.Fatal(err)
	}
	forged := warnedOf(t, stranger, "abc", person(""), now())
	for name, c := range map[string]struct {
		code, query string
		source      *cachetest.Source
		after       time.Duration
		change      func(*redirect.Request)
	}{
		"another key":            {query: forged},
		"another link":           {code: "other"},
		"another version":        {source: later},
		"another destination":    {source: moved},
		"another network":        {change: func(q *redirect.Request) { q.Client = netip.MustParseAddr("192.0.3.7") }},
		"another family":         {change: func(q *redirect.Request) { q.Client = netip.MustParseAddr("2001:db8::1") }},
		"nobody knows where":     {change: func(q *redirect.Request) { q.Client = netip.Addr{} }},
		"five minutes later":     {after: 5 * time.Minute},
		"a day later":            {after: 24 * time.Hour},
		"before all time":        {after: -now().Sub(time.UnixMilli(-1))},
		"a browser reads ahead":  {change: func(q *redirect.Request) { q.Preview = true }},
		"not the last":           {query: query + "&a=b"},
		"padded":                 {query: query + "="},
		"in other letters":       {query: "CURT_PASS=" + token},
		"empty":                  {query: "curt_pass="},
		"cut":                    {query: query[:len(query)-1]},
		"longer":                 {query: query + "AAAA"},
		"with bits behind":       {query: "curt_pass=" + token[:len(token)-1] + "!"},
		"a hundred thousand":     {query: "curt_pass=" + strings.Repeat("A", 100_000)},
		"without the end's bits": {query: "curt_pass=AAAAAAAAAAA" + token[11:]},
	} {
		t.Run(name, func(t *testing.T) {
			q, code := person(query), "abc"
			if c.query != "" {
				q.Query = c.query
			}
			if c.code != "" {
				code = c.code
			}
			if c.change != nil {
				c.change(&q)
			}
			r := r
			if c.source != nil {
				r = passing(t, c.source)
			}
			out, err := r.Resolve(t.Context(), key(code), q, now().Add(c.after))
			if err != nil || out.Status != http.StatusOK || out.Problem != redirect.Warning || out.Location != "" || out.Click != clicks.Refused ||
				!strings.HasPrefix(out.Onward, "/"+code+"?curt_pass=") {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
	for name, change := range map[string]func(*redirect.Request){
		"a program": func(q *redirect.Request) { q.Accept = []string{program} },
		"a form":    func(q *redirect.Request) { q.Method, q.Accept = "POST", []string{program} },
	} {
		q := person(query)
		change(&q)
		if out, err := r.Resolve(t.Context(), key("abc"), q, now()); err != nil || out.Status != http.StatusForbidden || out.Onward != "" {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
	q := person(query)
	q.Method = "POST"
	if out, err := r.Resolve(t.Context(), key("abc"), q, now()); err != nil || out.Status != http.StatusOK || out.Problem != redirect.Warning {
		t.Errorf("a form of a page: %+v, %v", out, err)
	}
	near := person(query)
	near.Client = netip.MustParseAddr("::ffff:192.0.2.200")
	if out, err := r.Resolve(t.Context(), key("abc"), near, now().Add(5*time.Minute-time.Millisecond)); err != nil || out.Location != dest {
		t.Errorf("a neighbouring address, in time: %+v, %v", out, err)
	}
}

// What is graver than a warning is not opened by the pass of one, and what is clean by
// then needs none and forwards none.
func TestAPassOpensNothingButAWarning(t *testing.T) {
	past := now().Add(-time.Hour).UnixMilli()
	for name, c := range map[string]struct {
		target link.Target
		want   want
	}{
		"blocked":                {link.Target{Safety: link.Blocked}, want{403, "", redirect.Blocked, clicks.Refused}},
		"legal":                  {link.Target{Safety: link.Legal}, want{451, "", redirect.Legal, clicks.Refused}},
		"disabled":               {link.Target{Safety: link.Warn, Status: link.Disabled}, want{410, "", redirect.Disabled, clicks.Refused}},
		"deleted":                {link.Target{Safety: link.Warn, Status: link.Deleted}, want{410, "", redirect.Deleted, clicks.Refused}},
		"expired":                {link.Target{Safety: link.Warn, Expires: past}, want{410, "", redirect.Expired, clicks.Refused}},
		"to its fallback by now": {link.Target{Safety: link.Warn, Expires: past, Fallback: back}, want{200, "", redirect.Warning, clicks.Refused}},
		"clean":                  {link.Target{Safety: link.Clean, ForwardQuery: true}, want{302, dest, redirect.NoProblem, clicks.Redirected}},
		"circular":               {link.Target{Safety: link.Warn, Loops: true}, want{508, "", redirect.Loop, clicks.Refused}},
	} {
		s := cachetest.NewSource()
		s.Put(key("abc"), link.Target{Destination: dest, Safety: link.Warn})
		r := passing(t, s)
		query := warnedOf(t, r, "abc", person(""), now())
		meanwhile := cachetest.NewSource()
		c.target.Destination = dest
		meanwhile.Put(key("abc"), c.target)
		if out, _ := passing(t, meanwhile).Resolve(t.Context(), key("abc"), person(query), now()); short(out) != c.want || out.Warned {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// A bounded link is spent by those who go on, and by nobody who is shown the page.
func TestOnlyWhoGoesOnSpends(t *testing.T) {
	s := cachetest.NewSource()
	s.Put(key("abc"), link.Target{Destination: dest, Safety: link.Warn, Limited: true})
	s.SetLeft(key("abc"), 2)
	r := passing(t, s)
	query := warnedOf(t, r, "abc", person(""), now())
	for range 10 {
		query = warnedOf(t, r, "abc", person(""), now())
	}
	for i, status := range []int{302, 302, 410} {
		if out, err := r.Resolve(t.Context(), key("abc"), person(query), now()); err != nil || out.Status != status {
			t.Errorf("%d: %+v, %v", i, out, err)
		}
	}
}

func TestPassesWantAKey(t *testing.T) {
	if _, err := redirect.NewPasses([]byte("fifteen bytes..")); err == nil {
		t.Error("a key that is too short was taken")
	}
}

// Over HTTP, from the page to the click.
func TestTheWayPastAWarning(t *testing.T) {
	s, rec := cachetest.NewSource(), &recorder{}
	s.Put(key("warn"), link.Target{Destination: "https://phish.example/", Safety: link.Warn, ForwardQuery: true})
	h := newHandler(t, redirect.HandlerConfig{
		Resolver: passing(t, s), Clients: clientaddr.New(netip.MustParsePrefix("192.0.2.0/24")),
	}, s, rec)
	from := func(addr string) map[string]string {
		return map[string]string{"Accept": browser, "X-Forwarded-For": addr}
	}
	page := serve(h, "GET", "http://x/warn?a=b", from("203.0.113.7"))
	on := regexp.MustCompile(`<a href="(/warn\?a=b&amp;curt_pass=[\w-]{32})">`).FindStringSubmatch(page.Body.String())
	if page.Code != 200 || on == nil || page.Header().Get("Referrer-Policy") != "no-referrer" || page.Header().Get("Refresh") != "" {
		t.Fatalf("%d %v %s", page.Code, page.Header(), page.Body)
	}
	onward := "http://x" + strings.ReplaceAll(on[1], "&amp;", "&")
	if w := serve(h, "GET", onward, from("198.51.100.7")); w.Code != 200 || w.Header().Get("Location") != "" {
		t.Errorf("passed on to another network: %d %v", w.Code, w.Header())
	}
	w := serve(h, "GET", onward, from("203.0.113.7"))
	if w.Code != 302 || w.Header().Get("Location") != "https://phish.example/?a=b" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	var counted []clicks.Flags
	for _, c := range rec.all() {
		if c.Outcome == clicks.Redirected {
			counted = append(counted, c.Flags)
		}
	}
	if len(counted) != 1 || counted[0] != clicks.Warned {
		t.Errorf("the clicks are %v", counted)
	}
	// A look at the link leads on to the link, not to its preview.
	r := httptest.NewRequest("GET", "http://x/warn+", nil)
	r.Header.Set("Accept", browser)
	if _, out := h.Peek(r, "warn"); !strings.HasPrefix(out.Onward, "/warn?curt_pass=") {
		t.Errorf("%+v", out)
	}
}
