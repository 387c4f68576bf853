package strict_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"

	"curt/internal/lane/lanetest"
	"curt/internal/lane/strict"
)

// FuzzFollower: pieces change nothing, and what is sound ends, for net/http's reader, where the
// follower says that it ends.
func FuzzFollower(f *testing.F) {
	for _, all := range []map[string]string{lanetest.Refused(), lanetest.Foreign(), lanetest.Bodies()} {
		for _, shape := range all {
			f.Add([]byte(shape), uint64(1))
			f.Add([]byte("POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok\r\n"+shape), uint64(2))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		n, found, _ := strict.Follow([]string{string(b)})
		for _, pieces := range [][]string{lanetest.Cut(string(b), seed), bytewise(b)} {
			if m, again, _ := strict.Follow(pieces); m != n || again != found {
				t.Fatalf("%q whole: %d %d, in pieces: %d %d", b, n, found, m, again)
			}
		}
		_, _, ends := strict.Follow(bytewise(b)) // which tells where requests end
		sent := bytes.NewReader(b[:n])
		r := bufio.NewReader(sent)
		posted := false
		for _, end := range ends[1:] {
			if posted {
				for c, err := r.Peek(1); err == nil && (c[0] == '\r' || c[0] == '\n'); c, err = r.Peek(1) {
					_, _ = r.Discard(1)
				}
			}
			q, err := http.ReadRequest(r)
			if err != nil {
				return // net/http answers with an error and closes: nothing behind is read
			}
			if _, err := io.Copy(io.Discard, q.Body); err != nil {
				return
			}
			if at := n - sent.Len() - r.Buffered(); at != end {
				t.Fatalf("%q: net/http's request ends at %d, the follower's at %d of %d", b, at, end, n)
			}
			posted = q.Method == http.MethodPost
		}
	})
}

func bytewise(b []byte) []string {
	pieces := make([]string, len(b))
	for i := range b {
		pieces[i] = string(b[i : i+1])
	}
	return pieces
}
