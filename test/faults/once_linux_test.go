package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestKillKeepsIdempotencyKeys kills the server while 16 clients create, each request
// under a key of its own and sent twice. After the restart every client sends its last
// request again: what was answered before is answered alike, and no destination is stored
// twice.
func TestKillKeepsIdempotencyKeys(t *testing.T) {
	testkit.Faults(t)
	const clients = 16
	data := t.TempDir()
	codes := map[string]string{} // of each key that was answered
	next := make([]int, clients) // the request that each client sends, answered or not
	// A busy machine answers few in each round: it takes more of them.
	for round := 0; round < rounds(6, 100) || len(codes) < 10*clients && round < 400; round++ {
		s := curttest.Start(t, curttest.Options{Data: data})
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range clients {
			c := s.MustDial(t)
			wg.Go(func() {
				for again := false; ; again = !again {
					key := fmt.Sprintf("%d-%d", i, next[i])
					code, ok := createOnce(c, key)
					if !ok {
						return
					}
					mu.Lock()
					if before := codes[key]; before != "" && before != code {
						t.Errorf("%s was answered with %s, then with %s", key, before, code)
					}
					codes[key] = code
					mu.Unlock()
					if again { // every request is sent twice
						next[i]++
					}
				}
			})
		}
		someTime(50*time.Millisecond, 250*time.Millisecond)
		s.Kill()
		wg.Wait()
	}
	s := curttest.Start(t, curttest.Options{Data: data})
	var made []curttest.Link
	for key, code := range codes {
		made = append(made, curttest.Link{Code: code, LongURL: destination(key)})
	}
	if len(made) < 10*clients {
		t.Fatalf("only %d links: that proves little", len(made))
	}
	checkLinks(t, s, made)
	t.Logf("%d keys", len(made))
}

func destination(key string) string { return "https://example.com/once/" + key }

// createOnce returns the code of a 201; false = there was no answer.
func createOnce(c *curttest.Conn, key string) (string, bool) {
	body := fmt.Sprintf(`{"long_url":%q}`, destination(key))
	a, err := c.Do("POST", "/api/v1/links", []string{
		"Authorization: Bearer " + curttest.Key, "Content-Type: application/json", "Idempotency-Key: " + key,
	}, body)
	var l curttest.Link
	if err != nil || a.Status != http.StatusCreated || json.Unmarshal(a.Body, &l) != nil {
		return "", false
	}
	return l.Code, true
}
