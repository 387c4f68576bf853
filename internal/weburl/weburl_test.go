package weburl_test

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"curt/internal/weburl"
)

func mustParse(t *testing.T, raw string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(raw)
	if err != nil {
		t.Fatalf("Parse(%q): %v", raw, err)
	}
	return u
}

// checkNormal holds what every result of Parse promises.
func checkNormal(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, raw string, u weburl.URL,
) {
	t.Helper()
	href := u.Href()
	if len(href) > weburl.MaxLength {
		t.Fatalf("%q became %d bytes", raw, len(href))
	}
	for i := range len(href) {
		if href[i] < 0x21 || href[i] > 0x7E {
			t.Fatalf("%q became %q, with byte %#x", raw, href, href[i])
		}
	}
	if !strings.HasPrefix(href, u.Scheme()+"://"+u.Host()) || u.Host() == "" || u.Port() == 0 {
		t.Fatalf("%q became %q with scheme %q, host %q, port %d", raw, href, u.Scheme(), u.Host(), u.Port())
	}
	authority, _, _ := strings.Cut(strings.SplitN(href, "://", 2)[1], "/")
	if strings.ContainsAny(authority, `@\?#`) {
		t.Fatalf("%q became %q with authority %q", raw, href, authority)
	}
	again, err := weburl.Parse(href)
	if err != nil || again != u {
		t.Fatalf("%q became %q, and that became %q, %v", raw, href, again.Href(), err)
	}
}

func TestResultsAreNormalForms(t *testing.T) {
	piece := rapid.SampledFrom(pieces)
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SampledFrom([]string{"http:", "https://", "HTTP:/\\"}).Draw(t, "start") +
			strings.Join(rapid.SliceOfN(rapid.OneOf(piece, rapid.String()), 1, 8).Draw(t, "pieces"), "")
		if u, err := weburl.Parse(raw); err == nil {
			checkNormal(t, raw, u)
		} else if !errors.Is(err, weburl.ErrInvalid) {
			t.Fatalf("%q: %v does not wrap ErrInvalid", raw, err)
		}
	})
}

// FuzzParse: a result is a fixed point with the same host, whatever came in.
func FuzzParse(f *testing.F) {
	for _, c := range hostile {
		f.Add(c.raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if u, err := weburl.Parse(raw); err == nil {
			checkNormal(t, raw, u)
		}
	})
}

func TestPartsOfAURL(t *testing.T) {
	for raw, want := range map[string]struct {
		scheme, host string
		port         uint16
	}{
		"http://example.com/":        {"http", "example.com", 80},
		"https://example.com/":       {"https", "example.com", 443},
		"https://EXAMPLE.com:8443/x": {"https", "example.com", 8443},
		"http://0x7f.1:443/":         {"http", "127.0.0.1", 443},
		"https://[::1]:444/":         {"https", "[::1]", 444},
	} {
		u := mustParse(t, raw)
		if u.Scheme() != want.scheme || u.Host() != want.host || u.Port() != want.port {
			t.Errorf("%q: %q, %q, %d; want %+v", raw, u.Scheme(), u.Host(), u.Port(), want)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	seen := make(map[string]bool)
	for _, raw := range []string{
		"", "ftp://a/", "http://u@a/", "http:///", "http://a:0/", "http://a/\xff", "http://a/\n", strings.Repeat("a", 9000),
	} {
		_, err := weburl.Parse(raw)
		var public interface{ PublicMessage() string }
		if !errors.Is(err, weburl.ErrInvalid) || !errors.As(err, &public) {
			t.Fatalf("%.20q: %v has no public message", raw, err)
		}
		message := public.PublicMessage()
		if seen[message] || !strings.HasSuffix(message, ".") || len(message) < 30 {
			t.Errorf("%.20q: message %q", raw, message)
		}
		seen[message] = true
		if len(raw) > 3 && strings.Contains(err.Error()+message, raw) {
			t.Errorf("%.20q: the error repeats the URL", raw)
		}
	}
}

// TestLocationIsNotAltered writes every taken URL of the corpus with net/http and
// reads the bytes of the answer.
func TestLocationIsNotAltered(t *testing.T) {
	var href string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/set" {
			w.Header().Set("Location", href)
			w.WriteHeader(http.StatusFound)
			return
		}
		http.Redirect(w, r, href, http.StatusFound)
	}))
	defer server.Close()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	written := 0
	for i, raw := range corpus(4000) {
		u, err := weburl.Parse(raw)
		if err != nil {
			continue
		}
		href = u.Href()
		path := []string{"/set", "/redirect"}[i%2]
		if _, err := conn.Write([]byte("HEAD " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if got := readLocations(t, in); len(got) != 1 || got[0] != href {
			t.Fatalf("%q became Location %q", href, got)
		}
		written++
	}
	if written < 500 {
		t.Errorf("only %d URLs were written", written)
	}
}

// readLocations reads the head of one answer and fails on a line that we did not
// write.
func readLocations(t *testing.T, in *bufio.Reader) (locations []string) {
	t.Helper()
	for first := true; ; first = false {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		line = strings.TrimSuffix(line, "\r\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			return locations
		case name == "Location":
			locations = append(locations, value)
		case !first && name != "Date" && name != "Content-Type" && name != "Content-Length":
			t.Fatalf("answer has the line %q", line)
		}
	}
}

// TestCostIsLinear compares the longest inputs of the worst shapes with inputs of an eighth of
// their length: what works in the square of it takes 64 times as long for them. 8,192 bytes
// took whatwg-url 74 ms.
func TestCostIsLinear(t *testing.T) {
	of := strings.Repeat
	for _, shape := range []func(n int) string{
		func(n int) string { return "http://" + of("@", n) + "a/" },
		func(n int) string { return "http://" + of("a:", n/2) + "@a/" },
		func(n int) string { return "http://" + of("a.", n/2) + "/" },
		func(n int) string { return "http://" + of("é.", n/4) + "/" },
		func(n int) string { return "http://" + of("xn--a.", n/6) + "/" },
		func(n int) string { return "http://" + of("xn--bcher-kva.", n/14) + "/" },
		func(n int) string { return "http://" + of("é", n/2) + "/" },
		func(n int) string { return "http://a/" + of("../", n/3) },
		func(n int) string { return "http://a/" + of("a/", n/4) + of("../", n/6) },
		func(n int) string { return "http://a/" + of("%2e%2e/", n/7) },
		func(n int) string { return "http://" + of("%41", n/3) },
		func(n int) string { return "http://[" + of(":", n) + "]/" },
		func(n int) string { return "http:" + of("/", n) + "a" },
		func(n int) string { return "http://a:" + of("0", n) + "80/" },
		func(n int) string { return of("\t", n) + "http://a/" },
		func(n int) string { return "http://a/" + of("\t", n) },
	} {
		part, whole := time.Hour, time.Hour // the best of many, which nobody interrupts
		for end := time.Now().Add(time.Minute); ; {
			for range 10 {
				part, whole = min(part, parsed(shape(1000))), min(whole, parsed(shape(8000)))
			}
			if whole < 24*max(part, time.Microsecond) {
				break
			}
			if time.Now().After(end) {
				t.Errorf("%.30q… takes %v for 8,000 bytes, %v for 1,000", shape(100), whole, part)
				break
			}
		}
		t.Logf("%8v %8v %.40q", part, whole, shape(100))
	}
}

// parsed returns how long the parser takes.
func parsed(raw string) time.Duration {
	start := time.Now()
	_, _ = weburl.Parse(raw)
	return time.Since(start)
}

func BenchmarkParse(b *testing.B) {
	for name, raw := range map[string]string{
		"usual":   "https://www.example.com/articles/2024/05/how-to-do-it?utm_source=newsletter&id=12345#part-2",
		"changed": "HTTPS://www.Example.com:443/a b/é/../x?q=ü",
		"idn":     "https://bücher.example/",
		"refused": "javascript:alert(1)",
		"long":    "https://example.com/?" + strings.Repeat("q=12345&", 1000),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = weburl.Parse(raw)
			}
		})
	}
}
