package curttest

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Churn makes links and deletes them at once, as fast as it is answered. Deleting
// makes the link store erase what it wrote, which moves its log into its file: the
// faults hit in the middle of that.
type Churn struct {
	*Crowd
	deleted [][]Link     // by client; owned by it until the crowd has stopped
	count   atomic.Int64 // of deleted
}

// Churn starts n clients. A client ends at the first request without an answer or
// with another one than expected.
func (s *Server) Churn(t testing.TB, n int, prefix string) *Churn {
	t.Helper()
	return s.ChurnEvery(t, n, prefix, 0)
}

// ChurnEvery is Churn whose clients pause after each link.
func (s *Server) ChurnEvery(t testing.TB, n int, prefix string, pause time.Duration) *Churn {
	t.Helper()
	c := &Churn{deleted: make([][]Link, n)}
	conns := s.dialAll(t, n)
	c.Crowd = crowd(t, n, func(i int) bool {
		dest := fmt.Sprintf("%s/churn/%d/%d", prefix, i, len(c.deleted[i]))
		l, a, err := conns[i].Create(dest)
		if err != nil || a.Status != http.StatusCreated {
			return false
		}
		a, err = conns[i].Do("DELETE", "/api/v1/links/"+l.Code, []string{auth}, "")
		if err != nil || a.Status != http.StatusNoContent {
			return false
		}
		c.deleted[i] = append(c.deleted[i], Link{Code: l.Code, LongURL: dest, At: time.Now()})
		c.count.Add(1)
		time.Sleep(pause)
		return !a.Closes()
	})
	return c
}

// AwaitDeleted waits until n deletions were answered 204.
func (c *Churn) AwaitDeleted(t testing.TB, n int64) {
	t.Helper()
	await(t, "deletions answered 204", n, &c.count)
}

// Deleted returns every link whose deletion was answered 204. Call it after the
// crowd has stopped.
func (c *Churn) Deleted() []Link {
	var all []Link
	for _, d := range c.deleted {
		all = append(all, d...)
	}
	return all
}

// AllGone checks that each link is answered 410, over n connections, and returns
// what was wrong, at most 20 of it.
func (s *Server) AllGone(t testing.TB, links []Link, n int) []string {
	t.Helper()
	return s.visit(t, links, n, func(l Link, a Answer) string {
		if a.Status == http.StatusGone {
			return ""
		}
		return fmt.Sprintf("/%s: %d, want 410", l.Code, a.Status)
	})
}

// Follow checks that each link redirects to its destination, over n connections,
// and returns what was wrong, at most 20 of it.
func (s *Server) Follow(t testing.TB, links []Link, n int) []string {
	t.Helper()
	return s.visit(t, links, n, func(l Link, a Answer) string {
		to, _ := a.Get("Location")
		if a.Status == http.StatusFound && to == l.LongURL {
			return ""
		}
		return fmt.Sprintf("/%s: %d %q, want 302 %q", l.Code, a.Status, to, l.LongURL)
	})
}

// visit asks for each link and returns what judge has to say, at most 20 of it.
func (s *Server) visit(t testing.TB, links []Link, n int, judge func(Link, Answer) string) []string {
	t.Helper()
	var mu sync.Mutex
	var wrong []string
	next := make(chan Link)
	var wg sync.WaitGroup
	for _, c := range s.dialAll(t, n) {
		wg.Go(func() {
			for l := range next {
				a, err := c.Do("GET", "/"+l.Code, nil, "")
				text := judge(l, a)
				if err != nil {
					text = err.Error()
				}
				if text != "" {
					mu.Lock()
					wrong = append(wrong, text)
					mu.Unlock()
				}
			}
		})
	}
	for _, l := range links {
		next <- l
	}
	close(next)
	wg.Wait()
	return wrong[:min(len(wrong), 20)]
}
