package lane_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"curt/internal/lane/lanetest"
	"curt/test/internal/curttest"
)

// TestEveryListenerIsStrict sends what the lane refuses as the second request of a connection
// of the built program: with the lane and without, with TLS and without, and to the API's own
// listener.
func TestEveryListenerIsStrict(t *testing.T) {
	t.Parallel()
	cert, key := curttest.Certificate(t)
	secure := []string{"CURT_TLS_CERT=" + cert, "CURT_TLS_KEY=" + key}
	api := curttest.FreeAddr(t)
	for name, c := range map[string]struct {
		env  []string
		addr string // "" = the main one
		tls  bool
	}{
		"lane": {}, "lane off": {env: []string{"CURT_LANE=off"}}, "API": {env: []string{"CURT_API_LISTEN=" + api}, addr: api},
		"lane, TLS": {env: secure, tls: true}, "lane off, TLS": {env: append(secure, "CURT_LANE=off"), tls: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := curttest.Start(t, curttest.Options{Env: c.env})
			if c.addr == "" {
				c.addr = s.Addr
			}
			for why, shape := range lanetest.Refused() {
				nc, err := net.Dial("tcp", c.addr)
				if err != nil {
					t.Fatal(err)
				}
				if c.tls {
					nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
				}
				_ = nc.SetDeadline(time.Now().Add(3 * time.Minute))
				const first = "POST /api/v1/links HTTP/1.1\r\nHost: links.example\r\nContent-Length: 2\r\n\r\n{}"
				if _, err := io.WriteString(nc, first); err != nil {
					t.Fatal(err)
				}
				r := bufio.NewReader(nc)
				statuses := statusOf(r)
				if _, err := io.WriteString(nc, shape+"GET /healthz HTTP/1.1\r\nHost: links.example\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				for next := ""; next != "end"; {
					next = statusOf(r)
					statuses += " " + next
				}
				if _, status, _ := cutFirst(statuses); status != "400 end" {
					t.Errorf("%s: %s", why, statuses)
				}
				_ = nc.Close()
			}
		})
	}
}

// cutFirst takes the first status off.
func cutFirst(statuses string) (first, rest string, ok bool) {
	if len(statuses) < 4 {
		return statuses, "", false
	}
	return statuses[:3], statuses[4:], true
}

// statusOf reads an answer and returns its status, "end" behind the last.
func statusOf(r *bufio.Reader) string {
	a, err := http.ReadResponse(r, nil)
	if err != nil {
		return "end"
	}
	_, _ = io.Copy(io.Discard, a.Body)
	_ = a.Body.Close()
	return fmt.Sprint(a.StatusCode)
}
