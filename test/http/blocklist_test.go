package http_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// as sends a request of a program with these lines on a connection of its own.
func as(t *testing.T, s *curttest.Server, method, path, body string, lines ...string) curttest.Answer {
	t.Helper()
	a, err := s.MustDial(t).Do(method, path, append(lines, "Content-Type: application/json"), body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func asAdmin(t *testing.T, s *curttest.Server, method, path, body string) curttest.Answer {
	t.Helper()
	return as(t, s, method, path, body, "Authorization: Bearer "+curttest.Key)
}

// await asks until the answer has a status, or fails the test.
func await(t *testing.T, status int, ask func() curttest.Answer) curttest.Answer {
	t.Helper()
	end := time.Now().Add(3 * time.Minute)
	for {
		a := ask()
		if a.Status == status {
			return a
		}
		if time.Now().After(end) {
			t.Fatalf("got %d %s, want %d", a.Status, a.Body, status)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestBlocklists changes the lists of a running server. Nothing is made to a listed
// host by any way of the API, and a version that is no good changes nothing.
func TestBlocklists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hosts, plain := filepath.Join(dir, "ads.hosts"), filepath.Join(dir, "phishing.txt")
	put := func(path, text string) {
		t.Helper()
		curttest.Replace(t, path, text)
	}
	put(hosts, "127.0.0.1 localhost\n0.0.0.0 ads.example tracker.example # two\n")
	put(plain, "# phishing\nevil.example\ncom\n")
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_BLOCKLISTS=" + hosts + "," + plain}})
	create := func(url string) curttest.Answer {
		return asAdmin(t, s, "POST", "/api/v1/links", fmt.Sprintf(`{"long_url":%q}`, url))
	}
	reload := func() {
		t.Helper()
		if err := syscall.Kill(s.PID, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}

	a := create("https://login.evil.example/")
	if a.Status != http.StatusUnprocessableEntity || !strings.Contains(string(a.Body), `"type":"/problems/destination-listed"`) ||
		!strings.Contains(string(a.Body), "long_url: evil.example is on the blocklist phishing") ||
		strings.Contains(string(a.Body), dir) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for method, ask := range map[string][2]string{
		"camelCase": {"/v1/links", `{"longUrl":"https://x.tracker.example/"}`},
		"002":       {"/shorten", `{"long_url":"https://ads.example"}`},
		"fallback":  {"/api/v1/links", `{"long_url":"https://example.com/","fallback_url":"https://ads.example"}`},
	} {
		if a := asAdmin(t, s, "POST", ask[0], ask[1]); a.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", method, a.Status, a.Body)
		}
	}
	if a := as(t, s, "POST", "/api/v1/links", `{"long_url":"https://evil.example/"}`); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("without a key: %d %s", a.Status, a.Body)
	}
	if a := asAdmin(t, s, "POST", "/api/v1/links/bulk", `{"links":[{"long_url":"https://evil.example/"},{"long_url":"https://example.com/"}]}`); a.Status != http.StatusMultiStatus ||
		!strings.Contains(string(a.Body), `{"status":422,`) || !strings.Contains(string(a.Body), `{"status":201,`) {
		t.Errorf("a list: %d %s", a.Status, a.Body)
	}
	make201(t, s, `{"long_url":"https://later.example/","custom_alias":"later"}`)
	if a := asAdmin(t, s, "PATCH", "/api/v1/links/later", `{"long_url":"https://evil.example/"}`); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("a change: %d %s", a.Status, a.Body)
	}

	// A new version, by signal and by itself.
	put(plain, "later.example\n")
	reload()
	await(t, http.StatusUnprocessableEntity, func() curttest.Answer { return create("https://later.example/2") })
	if a := create("https://evil.example/"); a.Status != http.StatusCreated {
		t.Errorf("a host that is listed no more: %d %s", a.Status, a.Body)
	}
	put(hosts, "0.0.0.0 soon.example\n")
	await(t, http.StatusUnprocessableEntity, func() curttest.Answer { return create("https://soon.example/") })

	// One that is no good.
	put(plain, "<html>\n")
	reload()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if n, _, err := s.Metric(t.Context(), "curt_blocklists_unusable"); err == nil && n == 1 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the damaged list is not told: %v %v", n, err)
		}
	}
	if a := create("https://later.example/3"); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("a damaged version took the place of a good one: %d %s", a.Status, a.Body)
	}

	// What was made before is switched off by hand, and not on again.
	if a := asAdmin(t, s, "PATCH", "/api/v1/links/later", `{"status":"disabled"}`); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a := asAdmin(t, s, "PATCH", "/api/v1/links/later", `{"status":"active"}`); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("a listed link is switched on: %d %s", a.Status, a.Body)
	}
}

// TestAServerSurvivesSIGHUP: without lists there is nothing to read, and no reason to
// end.
func TestAServerSurvivesSIGHUP(t *testing.T) {
	t.Parallel()
	s := curttest.Start(t, curttest.Options{})
	for range 3 {
		if err := syscall.Kill(s.PID, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	make201(t, s, `{"long_url":"https://example.com/"}`)
	if code, _ := s.Terminate(t); code != 0 {
		t.Errorf("ended with %d", code)
	}
}

// TestDisabledAtOnce switches links off while they are asked for on connections that
// stay open, so that the lane has their answer prepared: once the change is answered no
// visitor is led on, by any path, and once it is undone each is.
func TestDisabledAtOnce(t *testing.T) {
	t.Parallel()
	for _, lane := range []string{"on", "off"} {
		t.Run("lane "+lane, func(t *testing.T) {
			t.Parallel()
			s := curttest.Start(t, curttest.Options{Env: []string{"CURT_LANE=" + lane}})
			for i := range 20 {
				code := fmt.Sprint("link-", i)
				make201(t, s, fmt.Sprintf(`{"long_url":"https://example.com/%d","custom_alias":%q}`, i, code))
				open := s.MustDial(t)
				visit := func(method, path string) int {
					t.Helper()
					a, err := open.Do(method, path, nil, "")
					if err != nil {
						t.Fatal(err)
					}
					return a.Status
				}
				for range 3 { // from the store, then from memory, then prepared
					if got := visit("GET", "/"+code); got != http.StatusFound {
						t.Fatalf("%s: %d", code, got)
					}
				}
				change200(t, s, code, `{"status":"disabled"}`)
				for _, ask := range [][2]string{{"GET", "/" + code}, {"HEAD", "/" + code}, {"GET", "/" + code + "?x=1"}, {"GET", "/%6cink-" + fmt.Sprint(i)}} {
					if got := visit(ask[0], ask[1]); got != http.StatusGone {
						t.Errorf("%s %s: %d", ask[0], ask[1], got)
					}
				}
				change200(t, s, code, `{"status":"active"}`)
				if got := visit("GET", "/"+code); got != http.StatusFound {
					t.Errorf("%s is on again: %d", code, got)
				}
			}
		})
	}
}

// TestCreatesAreLimitedByNetwork: behind a trusted proxy each IPv4 address and each /64
// of IPv6 has its own limit, whatever else the request says.
func TestCreatesAreLimitedByNetwork(t *testing.T) {
	t.Parallel()
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_TRUSTED_PROXIES=127.0.0.0/8", "CURT_ANONYMOUS=true", "CURT_LIMITS=anonymous=2/d"}})
	create := func(forwarded string) int {
		return as(t, s, "POST", "/api/v1/links", `{"long_url":"https://example.com/"}`, "X-Forwarded-For: "+forwarded).Status
	}
	for _, step := range []struct {
		forwarded string
		want      int
	}{
		{"192.0.2.1", 201},
		{"192.0.2.1", 201},
		{"192.0.2.1", 429},
		{"::ffff:192.0.2.1", 429},
		{"203.0.113.9, 192.0.2.1", 429},
		{"192.0.2.2", 201},
		{"2001:db8:0:1::1", 201},
		{"2001:db8:0:1:ffff::2", 201},
		{"2001:db8:0:1:1234:5678:9abc:def0", 429},
		{"2001:db8:0:2::1", 201},
	} {
		if got := create(step.forwarded); got != step.want {
			t.Errorf("%s: %d, want %d", step.forwarded, got, step.want)
		}
	}
}
