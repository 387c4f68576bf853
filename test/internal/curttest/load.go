package curttest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Crowd is a number of clients, each with one keep-alive connection at a time and
// one request on the way. They work until Stop, or until each of them gave up.
type Crowd struct {
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// Stop lets each client finish its request and waits for them.
func (c *Crowd) Stop() {
	c.stop()
	c.wg.Wait()
}

// Wait waits until every client has given up.
func (c *Crowd) Wait() { c.wg.Wait() }

// crowd runs n clients. A client calls step again and again until the crowd is
// stopped or step returns false.
func crowd(t testing.TB, n int, step func(client int) bool) *Crowd {
	ctx, cancel := context.WithCancel(t.Context())
	c := &Crowd{stop: cancel}
	t.Cleanup(c.Stop)
	for i := range n {
		c.wg.Go(func() {
			for ctx.Err() == nil && step(i) {
			}
		})
	}
	return c
}

// Creators make links as fast as they are answered, each with a destination of
// its own, and remember what they were told.
type Creators struct {
	*Crowd
	made  [][]Link     // by client; owned by it until the crowd has stopped
	asked []int        // by client
	bad   []string     // by client: its request without an answer
	count atomic.Int64 // of made

	mu     sync.Mutex
	others map[int][]byte // status to a body, for answers that are not 201; guarded by mu
}

// Create starts n creators. Destinations begin with the prefix. A client ends at
// the first request that gets no answer; answers other than 201 are counted and
// followed by a pause of 5 ms, so that a full server is not hammered.
func (s *Server) Create(t testing.TB, n int, prefix string) *Creators {
	t.Helper()
	return s.CreateEvery(t, n, prefix, 0)
}

// CreateEvery is Create whose clients pause after each link.
func (s *Server) CreateEvery(t testing.TB, n int, prefix string, pause time.Duration) *Creators {
	t.Helper()
	c := &Creators{made: make([][]Link, n), asked: make([]int, n), bad: make([]string, n), others: map[int][]byte{}}
	conns := s.dialAll(t, n)
	c.Crowd = crowd(t, n, func(i int) bool {
		dest := fmt.Sprintf("%s/%d/%d", prefix, i, c.asked[i])
		c.asked[i]++
		l, a, err := conns[i].Create(dest)
		switch {
		case err != nil:
			c.bad[i] = err.Error()
			return false
		case a.Status != http.StatusCreated:
			c.mu.Lock()
			c.others[a.Status] = a.Body
			c.mu.Unlock()
			time.Sleep(5 * time.Millisecond)
		default:
			c.made[i] = append(c.made[i], Link{Code: l.Code, LongURL: dest, Version: l.Version, At: time.Now()})
			c.count.Add(1)
			time.Sleep(pause)
		}
		return !a.Closes()
	})
	return c
}

// AwaitMade waits until n creates were answered 201, so that a slow machine's test
// proves as much as a fast one's.
func (c *Creators) AwaitMade(t testing.TB, n int64) {
	t.Helper()
	await(t, "creates answered 201", n, &c.count)
}

// AwaitMore waits until n creates more than now were answered 201.
func (c *Creators) AwaitMore(t testing.TB, n int64) {
	t.Helper()
	c.AwaitMade(t, c.count.Load()+n)
}

// Made returns every link that was answered 201, with the destination that was
// asked for. Call it after the crowd has stopped.
func (c *Creators) Made() []Link {
	var all []Link
	for _, m := range c.made {
		all = append(all, m...)
	}
	return all
}

// Others returns a body for each status other than 201 that was answered.
func (c *Creators) Others() map[int][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.others) // clients may still add to it
}

// Bad returns the requests that got no answer. Call it after the crowd has stopped.
func (c *Creators) Bad() []string { return present(c.bad) }

// Clickers follow links at random as fast as they are answered.
type Clickers struct {
	*Crowd
	answered [][]time.Time // by client: when each redirect was read; owned by it until the crowd has stopped
	sent     []int64       // by client
	bad      []string      // by client: its first wrong answer or failed request
	count    atomic.Int64  // of answered
}

// ClickPlan says how clickers click.
type ClickPlan struct {
	Clients int
	Links   []Link
	Pace    time.Duration // pause of each client between clicks; 0 = none
}

// Click starts clickers. A client ends at its first wrong answer, at a request
// without an answer, and when the server announces the end of its connection.
func (s *Server) Click(t testing.TB, p ClickPlan) *Clickers {
	t.Helper()
	c := &Clickers{answered: make([][]time.Time, p.Clients), sent: make([]int64, p.Clients), bad: make([]string, p.Clients)}
	conns := s.dialAll(t, p.Clients)
	c.Crowd = crowd(t, p.Clients, func(i int) bool {
		l := p.Links[rand.IntN(len(p.Links))]
		c.sent[i]++
		a, err := conns[i].Do("GET", "/"+l.Code, nil, "")
		if err != nil {
			c.bad[i] = err.Error()
			return false
		}
		if to, _ := a.Get("Location"); a.Status != http.StatusFound || to != l.LongURL {
			c.bad[i] = fmt.Sprintf("/%s: %d, Location %q, want 302 and %q", l.Code, a.Status, to, l.LongURL)
			return false
		}
		c.answered[i] = append(c.answered[i], time.Now())
		c.count.Add(1)
		if p.Pace > 0 {
			time.Sleep(p.Pace)
		}
		return !a.Closes()
	})
	return c
}

// AwaitAnswered waits until n redirects were read whole.
func (c *Clickers) AwaitAnswered(t testing.TB, n int64) {
	t.Helper()
	await(t, "redirects answered", n, &c.count)
}

// Answered returns how many redirects were read whole. Call it after the crowd has
// stopped.
func (c *Clickers) Answered() (n int64) {
	for _, times := range c.answered {
		n += int64(len(times))
	}
	return n
}

// Lost returns how many answered clicks are missing when only so many were
// counted, and how long before the end the earliest of them was answered, if the
// latest are the ones that are missing.
func (c *Clickers) Lost(counted int64, end time.Time) (n int64, span time.Duration) {
	all := slices.Concat(c.answered...)
	if n = int64(len(all)) - counted; n <= 0 {
		return 0, 0 // what was counted and not answered was on its way when the end came
	}
	slices.SortFunc(all, time.Time.Compare)
	return n, end.Sub(all[int64(len(all))-n])
}

// Sent returns how many requests were sent, answered or not.
func (c *Clickers) Sent() int64 {
	var n int64
	for _, s := range c.sent {
		n += s
	}
	return n
}

// Bad returns the clients' wrong answers and failed requests.
func (c *Clickers) Bad() []string { return present(c.bad) }

// await waits until a count is n.
func await(t testing.TB, what string, n int64, count *atomic.Int64) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); count.Load() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("three minutes passed with %d %s, want %d", count.Load(), what, n)
		}
	}
}

// present returns the texts that are not empty.
func present(texts []string) []string {
	var all []string
	for _, s := range texts {
		if s != "" {
			all = append(all, s)
		}
	}
	return all
}

func (s *Server) dialAll(t testing.TB, n int) []*Conn {
	t.Helper()
	conns := make([]*Conn, n)
	for i := range conns {
		conns[i] = s.MustDial(t)
	}
	return conns
}
