package lane_test

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"curt/internal/clicks"
	"curt/internal/clientaddr"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/redirect"
	"curt/internal/testkit"
)

// warns has pages of warnings lead on, and believes the addresses that a test names.
func warns(tb testing.TB) option {
	tb.Helper()
	passes, err := redirect.NewPasses([]byte("a key of 16 bytes"))
	if err != nil {
		tb.Fatal(err)
	}
	return func(s *setup) {
		s.passes = passes
		s.links.Clients = clientaddr.New(netip.MustParsePrefix("127.0.0.0/8"))
	}
}

// asked is a request of a browser or a program from an address.
func asked(method, target, accept, from string) string {
	body := ""
	if method == "POST" {
		body = "Content-Length: 0\r\n"
	}
	return method + " " + target + " HTTP/1.1\r\nHost: links.example\r\nAccept: " + accept + "\r\nX-Forwarded-For: " + from + "\r\n" + body + "\r\n"
}

// pass finds what leads on from a page.
func pass() *regexp.Regexp { return regexp.MustCompile(`curt_pass=[\w-]{32}`) }

// The way past a warning is the same on both ways, by the pass that either gave.
func TestTheLaneLeadsPastWarningsAsNetHTTPDoes(t *testing.T) {
	on, off := start(t, true, warns(t)), start(t, false, warns(t))
	const html, json, here, there = "text/html", "*/*", "192.0.2.7", "198.51.100.7"
	both := func(text string) []answer {
		t.Helper()
		on.rec.take()
		off.rec.take()
		got, want := answers(t, on.exchange(t, text)), answers(t, off.exchange(t, text))
		for _, all := range [][]answer{got, want} {
			for i := range all {
				all[i].Body = pass().ReplaceAllString(all[i].Body, "curt_pass=PASS")
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q:\n%s", text, diff)
		}
		addrs := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
		if diff := cmp.Diff(off.rec.take(), on.rec.take(), addrs, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%q: clicks\n%s", text, diff)
		}
		return got
	}
	for _, giver := range []*rig{on, off} {
		page := giver.exchange(t, asked("GET", "/warn", html, here))
		leads := pass().FindString(page)
		if leads == "" || !strings.HasPrefix(page, "HTTP/1.1 200 ") || !strings.Contains(page, "Referrer-Policy: no-referrer\r\n") {
			t.Fatalf("the page is %q", page)
		}
		for _, c := range []struct{ method, target, accept, from, status, location string }{
			{"GET", "/warn?" + leads, html, here, "302", dest},
			{"HEAD", "/warn?" + leads, html, here, "302", dest},
			{"GET", "/warn?a=b&" + leads, html, here, "302", dest},
			{"GET", "/%77arn?" + leads, html, here, "302", dest}, // by net/http in both
			{"GET", "/warn?" + leads, html, there, "200", ""},
			{"GET", "/warn?" + leads + "&a=b", html, here, "200", ""},
			{"GET", "/warn?" + leads[:len(leads)-1], html, here, "200", ""},
			{"GET", "/warn?" + leads, json, here, "403", ""},
			{"POST", "/warn?" + leads, html, here, "405", ""},
			{"GET", "/few?" + leads, html, here, "200", ""},
			{"GET", "/bad?" + leads, html, here, "403", ""},
			{"GET", "/law?" + leads, html, here, "451", ""},
			{"GET", "/dead?" + leads, html, here, "410", ""},
			{"GET", "/live?" + leads, html, here, "302", dest},
			{"GET", "/none?" + leads, html, here, "404", ""},
		} {
			a := both(asked(c.method, c.target, c.accept, c.from))
			if len(a) != 1 || status(a[0]) != c.status || a[0].Fields["Location"] != c.location {
				t.Errorf("%s %s from %s: %+v, want %s", c.method, c.target, c.from, a, c.status)
			}
			if strings.HasPrefix(c.target, "/warn") && a[0].Fields["Cache-Control"] != "no-store" {
				t.Errorf("%s is kept: %+v", c.target, a)
			}
		}
		on.rec.take()
		on.exchange(t, asked("GET", "/warn?qr=1&"+leads, html, here))
		if c := on.rec.take(); len(c) != 1 || c[0].Outcome != clicks.Redirected || c[0].Flags != clicks.Warned|clicks.ViaQR {
			t.Errorf("the click is %+v", c)
		}
	}
}

// What is decided about a link that the lane has prepared holds from the next request
// on, on the connection that was served before, whatever the link's status.
func TestADecisionEndsPreparedAnswers(t *testing.T) {
	r := start(t, true, warns(t))
	for _, status := range []link.Redirect{301, 302, 307, 308} {
		for safety, want := range map[link.Safety]int{link.Warn: 403, link.Quarantined: 403, link.Blocked: 403, link.Legal: 451} {
			code := fmt.Sprintf("cut-%d-%d", status, safety)
			t.Run(code, func(t *testing.T) {
				k := link.Key{Code: link.Code(code)}
				clean := link.Target{Destination: dest, Redirect: status, Cacheable: true}
				r.source.Put(k, clean)
				nc := r.dial(t)
				get, head := asked("GET", "/"+code, "*/*", "192.0.2.7"), asked("HEAD", "/"+code, "*/*", "192.0.2.7")
				for range 3 {
					if a := roundTrip(t, nc, get); a.StatusCode != int(status) {
						t.Fatalf("%+v", a)
					}
				}
				bad := clean
				bad.Safety = safety
				r.cache.Changed(r.source.Put(k, bad))
				for _, ask := range []string{get, head, get} {
					if a := roundTrip(t, nc, ask); a.StatusCode != want || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Location") != "" {
						t.Errorf("decided %v, answered %+v", safety, a)
					}
				}
				r.cache.Changed(r.source.Put(k, clean))
				if a := roundTrip(t, nc, get); a.StatusCode != int(status) {
					t.Errorf("lifted, and answered %+v", a)
				}
			})
		}
	}
}

// One who tries codes behind the address of many is told to wait; the others find their
// links, and so does he, also those that are not in L1 yet.
func TestAScannerAmongHonestVisitors(t *testing.T) {
	testkit.Unraced(t)
	for name, on := range map[string]bool{"lane": true, "net/http": false} {
		t.Run(name, func(t *testing.T) {
			unknown := redirect.NewBudget(ratelimit.NewMemory(), ratelimit.Per(4, time.Hour))
			r := start(t, on, func(s *setup) {
				s.links.Unknown, s.links.Clients = unknown, clientaddr.New(netip.MustParsePrefix("127.0.0.0/8"))
			})
			const nat = "203.0.113.7"
			limited, found := 0, 0
			for i := range 60 {
				if i%3 == 0 { // the honest one: links that nobody asked for before, and dead ones
					code := fmt.Sprintf("honest-%d", i)
					r.source.Put(link.Key{Code: link.Code(code)}, link.Target{Destination: dest})
					for target, want := range map[string]string{"/" + code: "302", "/dead": "410", "/off": "410", "/warn": "403", "/bad": "403"} {
						if a := answers(t, r.exchange(t, asked("GET", target, "*/*", nat))); status(a[0]) != want {
							t.Errorf("%s for an honest visitor: %s, want %s", target, status(a[0]), want)
						}
						found++
					}
					continue
				}
				switch a := answers(t, r.exchange(t, asked("GET", fmt.Sprintf("/guess%d", i), "*/*", nat))); status(a[0]) {
				case "429":
					limited++
					if a[0].Fields["Retry-After"] == "" {
						t.Errorf("%+v", a)
					}
				case "404":
				default:
					t.Errorf("a guess: %+v", a)
				}
			}
			if limited != 36 || found != 100 || unknown.Refused() != 36 {
				t.Errorf("%d of 40 guesses were limited, %d counted", limited, unknown.Refused())
			}
		})
	}
}
