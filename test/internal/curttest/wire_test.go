package curttest_test

import (
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/test/internal/curttest"
)

// answering returns a connection to a server that answers with the text and ends.
func answering(t *testing.T, text string) *curttest.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = c.Write([]byte(text))
			_ = c.Close()
		}
	}()
	c, err := curttest.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestReadTakesEveryFramingAndNothingElse(t *testing.T) {
	for name, tt := range map[string]struct {
		text, method, body string
		fails              bool
	}{
		"length":             {text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", body: "ab"},
		"chunks":             {text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", body: "abc"},
		"to the end":         {text: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc", body: "abc"},
		"no body for HEAD":   {text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", method: "HEAD"},
		"no body with 204":   {text: "HTTP/1.1 204 No Content\r\n\r\n"},
		"cut short":          {text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", fails: true},
		"unframed":           {text: "HTTP/1.1 200 OK\r\n\r\nab", fails: true},
		"bare line feed":     {text: "HTTP/1.1 200 OK\nContent-Length: 0\n\n", fails: true},
		"space before colon": {text: "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", fails: true},
		"no HTTP":            {text: "SSH-2.0-x\r\n\r\n", fails: true},
		"nothing":            {text: "", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := answering(t, tt.text).Read(tt.method)
			if (err != nil) != tt.fails {
				t.Fatalf("error %v, want one: %v", err, tt.fails)
			}
			if d := cmp.Diff(tt.body, string(a.Body)); d != "" {
				t.Error(d)
			}
		})
	}
}
