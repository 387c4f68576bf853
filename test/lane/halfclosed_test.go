package lane_test

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"curt/test/internal/curttest"
)

// TestClientsThatCloseTheirHalf: who has sent the last request and closes that side still
// reads. The answer is what everybody gets, and a link of three clicks has three.
func TestClientsThatCloseTheirHalf(t *testing.T) {
	const tries = 12
	for _, mode := range []string{"on", "off"} {
		t.Run("CURT_LANE="+mode, func(t *testing.T) {
			s := curttest.Start(t, curttest.Options{Env: []string{"CURT_LANE=" + mode}})
			for i, before := range []string{"", "GET /healthz HTTP/1.1\r\nHost: go.test\r\n\r\n"} { // behind the second it is net/http's
				code := fmt.Sprintf("three-%d", i)
				body := fmt.Sprintf(`{"long_url":"https://example.com/","custom_alias":%q,"max_clicks":3}`, code)
				made := fmt.Sprintf("POST /api/v1/links HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"+
					"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", curttest.Key, len(body), body)
				if got := halfClosed(t, s.Addr, made); !slices.Equal(got, []string{"201"}) {
					t.Fatalf("a create is answered %v", got)
				}
				visit := before + "GET /" + code + " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\r\n"
				var all []string
				for range tries {
					got := halfClosed(t, s.Addr, visit)
					all = append(all, got[len(got)-1])
				}
				want := append([]string{"302", "302", "302"}, slices.Repeat([]string{"410"}, tries-3)...)
				if !slices.Equal(all, want) {
					t.Errorf("behind %q: %v, want %v", before, all, want)
				}
			}
		})
	}
}

// halfClosed sends requests, closes its half, and returns the statuses of the answers.
func halfClosed(t *testing.T, address, sent string) (statuses []string) {
	t.Helper()
	nc, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	if _, err := io.WriteString(nc, sent); err != nil {
		t.Fatal(err)
	}
	if half, ok := nc.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
	text, err := io.ReadAll(nc)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "HTTP/1.1 "); ok {
			statuses = append(statuses, rest[:3])
		}
	}
	if len(statuses) == 0 {
		t.Fatalf("no answer to %q", sent)
	}
	return statuses
}
