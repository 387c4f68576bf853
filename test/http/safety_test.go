package http_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// decide gives a link a safety, as a moderator does.
func decide(t *testing.T, s *curttest.Server, code, safety string) {
	t.Helper()
	a := asAdmin(t, s, "PUT", "/api/v1/links/"+code+"/safety", fmt.Sprintf(`{"safety":%q,"reason":"a test"}`, safety))
	if a.Status != 200 {
		t.Fatalf("decide %s of %s: %d %s", safety, code, a.Status, a.Body)
	}
}

// ask is one kind of question about a link.
type ask struct{ method, path, accept string }

// effect is what an answer shows of a decision.
type effect struct {
	Status                                  int
	Location, Cache, Robots, Referrer, Type string
	Problem                                 string // of problem+json
	Onward                                  bool   // a page leads on
}

func effectOf(a curttest.Answer) effect {
	e := effect{Status: a.Status}
	for _, f := range []struct {
		to   *string
		name string
	}{{&e.Location, "Location"}, {&e.Cache, "Cache-Control"}, {&e.Robots, "X-Robots-Tag"}, {&e.Referrer, "Referrer-Policy"}, {&e.Type, "Content-Type"}} {
		*f.to, _ = a.Get(f.name)
	}
	if m := regexp.MustCompile(`"type":"(/problems/[a-z-]+)"`).FindSubmatch(a.Body); m != nil {
		e.Problem = string(m[1])
	}
	e.Onward = strings.Contains(string(a.Body), "curt_pass=")
	return e
}

// linkKinds are links that differ in how they answer, by alias.
func linkKinds() map[string]string {
	return map[string]string{
		"r301":     `"redirect_status":301,"cacheable":true`,
		"r302":     `"redirect_status":302`,
		"r307":     `"redirect_status":307`,
		"r308":     `"redirect_status":308,"noindex":false`,
		"query":    `"forward_query":true`,
		"bounded":  `"max_clicks":1000`,
		"fallback": `"expires_in":1,"fallback_url":"https://fallback.example/"`,
	}
}

// wanted is what the table of package redirect says of a link with a decision.
func wanted(kind, safety string, a ask) effect {
	html := strings.Contains(a.accept, "text/html")
	keeps := kind == "r307" || kind == "r308"
	read := a.method == "GET" || a.method == "HEAD"
	visit := !strings.HasSuffix(a.path, "+") && !strings.HasSuffix(a.path, "/qr")
	problem, status := safety, 403
	switch safety {
	case "legal":
		status = 451
	case "warn", "quarantined":
		problem = "warning"
		if html && !strings.HasSuffix(a.path, "/qr") {
			status = 200
		}
	}
	if !read && (!visit || !keeps && problem == "warning") {
		problem, status = "method-not-allowed", 405
	}
	e := effect{Status: status, Cache: "no-store", Robots: "noindex"}
	switch {
	case html:
		e.Type, e.Referrer = "text/html; charset=utf-8", "no-referrer"
		e.Onward = status == 200 && a.method != "HEAD"
	default:
		e.Type = "application/problem+json"
		if a.method != "HEAD" {
			e.Problem = "/problems/" + problem
		}
	}
	return e
}

// TestDecisionsOnEveryPath asks for links in every way, before and after each decision,
// on connections that were served before, with the lane and without.
func TestDecisionsOnEveryPath(t *testing.T) {
	t.Parallel()
	for _, lane := range []string{"on", "off"} {
		t.Run("lane "+lane, func(t *testing.T) {
			t.Parallel()
			s := curttest.Start(t, curttest.Options{Env: []string{"CURT_LANE=" + lane}})
			c := s.MustDial(t)
			do := func(a ask) curttest.Answer {
				t.Helper()
				lines := []string{"Accept: " + a.accept}
				if a.method != "GET" && a.method != "HEAD" {
					lines = append(lines, "Content-Length: 0")
				}
				got, err := c.Do(a.method, a.path, lines, "")
				if err != nil {
					c = s.MustDial(t)
					if got, err = c.Do(a.method, a.path, lines, ""); err != nil {
						t.Fatal(err)
					}
				}
				return got
			}
			for kind, fields := range linkKinds() {
				make201(t, s, fmt.Sprintf(`{"long_url":"https://example.com/%s","custom_alias":%q,%s}`, kind, kind, fields))
			}
			for kind := range linkKinds() {
				if kind == "fallback" {
					await(t, 302, func() curttest.Answer {
						a := do(ask{"GET", "/fallback", "*/*"})
						if to, _ := a.Get("Location"); to != "https://fallback.example/" {
							a.Status = 0
						}
						return a
					})
				}
				for _, safety := range []string{"warn", "blocked", "clean", "legal", "quarantined"} {
					decide(t, s, kind, safety)
					if safety == "clean" {
						if a := do(ask{"GET", "/" + kind, "*/*"}); a.Status < 300 || a.Status > 308 {
							t.Errorf("%s was lifted, and answers %d", kind, a.Status)
						}
						continue
					}
					asked := 0
					for _, path := range []string{"/" + kind, "/" + kind + "?a=b", "/%" + fmt.Sprintf("%02x", kind[0]) + kind[1:], "/" + kind + "+", "/" + kind + "/qr"} {
						for _, method := range []string{"GET", "HEAD", "POST", "PUT", "OPTIONS"} {
							for _, accept := range []string{"*/*", "text/html,*/*;q=0.8", "application/problem+json", "image/png"} {
								a := ask{method, path, accept}
								got, want := effectOf(do(a)), wanted(kind, safety, a)
								if got != want {
									t.Errorf("%s is %s: %s %s, %s:\n got %+v\nwant %+v", kind, safety, method, path, accept, got, want)
								}
								asked++
							}
						}
					}
					l := asAdmin(t, s, "GET", "/api/v1/links/"+kind, "")
					if !strings.Contains(string(l.Body), fmt.Sprintf(`"safety":%q`, safety)) {
						t.Errorf("the API says %s", l.Body)
					}
					if st := asAdmin(t, s, "GET", "/api/v1/links/"+kind+"/stats", ""); st.Status != 200 {
						t.Errorf("statistics of a link that is %s: %d", safety, st.Status)
					}
					if asked != 100 {
						t.Fatal(asked)
					}
				}
			}
		})
	}
}

// TestTheWayPastAWarning follows the link of the page, as a person does, on both ways
// through the server; what is graver by then, or changed, or asked for by a program
// shows what it is.
func TestTheWayPastAWarning(t *testing.T) {
	t.Parallel()
	for _, lane := range []string{"on", "off"} {
		t.Run("lane "+lane, func(t *testing.T) {
			t.Parallel()
			s := curttest.Start(t, curttest.Options{Env: []string{"CURT_LANE=" + lane, "CURT_TRUSTED_PROXIES=127.0.0.0/8"}})
			make201(t, s, `{"long_url":"https://phish.example/login?a=b","custom_alias":"bad","redirect_status":301}`)
			decide(t, s, "bad", "quarantined")
			get := func(path, accept, from string) curttest.Answer {
				t.Helper()
				return as(t, s, "GET", path, "", "Accept: "+accept, "X-Forwarded-For: "+from)
			}
			const html, here = "text/html", "192.0.2.7"
			onward := func(path string) string {
				t.Helper()
				page := get(path, html, here)
				m := regexp.MustCompile(`<a href="(/bad\?curt_pass=[\w-]+)" rel="nofollow noreferrer noopener">`).FindSubmatch(page.Body)
				for _, never := range []string{"<script", "http-equiv", "<form", "<iframe", "https://phish.example/login\""} {
					if strings.Contains(string(page.Body), never) {
						t.Errorf("the page holds %s", never)
					}
				}
				if m == nil || !strings.Contains(string(page.Body), "<strong>phish.example</strong>/login?a=b") {
					t.Fatalf("%d %s", page.Status, page.Body)
				}
				return string(m[1])
			}
			on := onward("/bad")
			if a := get(on, html, here); a.Status != 302 || effectOf(a).Location != "https://phish.example/login?a=b" || effectOf(a).Cache != "no-store" {
				t.Errorf("%d %v", a.Status, a.Fields)
			}
			if a := get(onward("/bad+"), html, here); a.Status != 302 {
				t.Errorf("from the preview: %d", a.Status)
			}
			for name, a := range map[string]curttest.Answer{
				"another network": get(on, html, "198.51.100.7"), "forged": get(on[:len(on)-2]+"AA", html, here),
			} {
				if e := effectOf(a); e.Status != 200 || !e.Onward || e.Location != "" {
					t.Errorf("%s: %+v", name, e)
				}
			}
			if e := effectOf(get(on, "*/*", here)); e.Status != 403 || e.Problem != "/problems/warning" {
				t.Errorf("a program: %+v", e)
			}
			if got := s.AwaitTotal(t, []curttest.Link{{Code: "bad"}}, 2, 3*time.Minute); got != 2 {
				t.Errorf("%d clicks are counted", got)
			}
			stats := asAdmin(t, s, "GET", "/api/v1/links/bad/stats?dimensions=trigger", "")
			if !strings.Contains(string(stats.Body), `"trigger":[{"value":"warning","clicks":2}]`) {
				t.Errorf("the statistics say %s", stats.Body)
			}
			change200(t, s, "bad", `{"long_url":"https://other.example/"}`)
			if e := effectOf(get(on, html, here)); e.Status != 200 || e.Location != "" {
				t.Errorf("it leads elsewhere by now: %+v", e)
			}
			decide(t, s, "bad", "blocked")
			if e := effectOf(get(on, html, here)); e.Status != 403 || e.Onward {
				t.Errorf("blocked: %+v", e)
			}
		})
	}
}
