package history_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

const (
	openLinks = 8  // are asked for and changed at a time
	oldLinks  = 16 // are still visited
	wear      = 60 // requests about a link, then another takes its place
)

// entry is a link that clients work with.
type entry struct {
	key   string
	early bool // it is visited before anybody was told that it is there

	uses    atomic.Int64
	there   atomic.Bool   // somebody was told
	version atomic.Uint64 // the newest that somebody was shown
}

// board is what all clients work with at a time.
type board struct {
	mu    sync.Mutex
	open  []*entry // guarded by mu
	old   []*entry // guarded by mu
	names int      // guarded by mu
	run   string   // makes names those of one run
}

// take returns a link to work with, or nil when the client has to make one, by itself.
func (b *board) take(random *rand.Rand) *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open) < openLinks {
		if b.names++; b.names%2 == 0 {
			return nil
		}
		b.open = append(b.open, &entry{key: fmt.Sprintf("%s-%d", b.run, b.names), early: b.names%3 == 0})
	}
	i := random.IntN(len(b.open))
	e := b.open[i]
	if e.uses.Add(1) > wear {
		b.open = slices.Delete(b.open, i, i+1)
		b.old = append(b.old, e)
		b.old = b.old[max(0, len(b.old)-oldLinks):]
	}
	return e
}

// add puts a link that was made with the others.
func (b *board) add(key string) {
	e := &entry{key: key}
	e.there.Store(true)
	e.version.Store(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = append(b.open, e)
}

// any returns a link to visit; nil = there is none.
func (b *board) any(random *rand.Rand) *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.open) + len(b.old)
	if n == 0 {
		return nil
	}
	i := random.IntN(n)
	e := slices.Concat(b.open, b.old)[i]
	if !e.there.Load() && !e.early {
		return nil
	}
	return e
}

// crowd is clients at work.
type crowd struct {
	t       *testing.T
	fleet   *fleet
	board   *board
	blindly bool   // changes are sent without the version that they want
	front   string // a server in front of the first, which visitors ask in its place; "" = none

	stop  context.CancelFunc
	wg    sync.WaitGroup
	names atomic.Int64 // of clients
	wrote [servers]atomic.Int64

	mu   sync.Mutex
	kept history // guarded by mu
}

const (
	writers      = 3 // at each server
	visitors     = 2
	writePause   = 15 * time.Millisecond
	visitPause   = 5 * time.Millisecond
	retryPause   = 20 * time.Millisecond // after no answer
	maxQuestions = 3                     // about one create whose outcome is open
)

// begin lets clients work until end.
func (c *crowd) begin() {
	ctx, cancel := context.WithCancel(c.t.Context())
	c.stop = cancel
	c.t.Cleanup(func() { cancel(); c.wg.Wait() })
	for server := range servers {
		for range writers {
			c.wg.Go(func() { c.write(ctx, server) })
		}
		for range visitors {
			c.wg.Go(func() { c.visit(ctx, server) })
		}
	}
}

// end stops the clients and returns what they were told.
func (c *crowd) end() *history {
	c.stop()
	c.wg.Wait()
	return &c.kept
}

// sofar returns what the clients were told by now.
func (c *crowd) sofar() *history {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &history{requests: slices.Clone(c.kept.requests), visits: slices.Clone(c.kept.visits)}
}

func (c *crowd) now() time.Duration { return time.Since(c.fleet.began) }

func (c *crowd) requested(q request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.requests = append(c.kept.requests, q)
}

func (c *crowd) visited(v visit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.visits = append(c.kept.visits, v)
}

// visit follows links at a server until ctx ends.
func (c *crowd) visit(ctx context.Context, server int) {
	random := rand.New(rand.NewPCG(uint64(server), 7))
	var conn *curttest.Conn
	for ctx.Err() == nil {
		if e := c.board.any(random); e != nil {
			c.follow(ctx, &conn, server, e.key)
		}
		time.Sleep(visitPause)
	}
}

// follow follows a link on the connection that there is, or on a new one. What is not
// answered, or by 503, is no sight of anything.
func (c *crowd) follow(ctx context.Context, conn **curttest.Conn, server int, key string) {
	v := visit{server: server, key: key, call: c.now()}
	a, err := exchange(ctx, conn, c.door(server), "GET", "/"+key, nil, "")
	v.ret = c.now()
	switch {
	case err != nil, a.Status == http.StatusServiceUnavailable:
		time.Sleep(retryPause)
		return
	case a.Status == http.StatusFound:
		v.saw = led
		v.to, _ = a.Get("Location")
	case a.Status == http.StatusGone:
		v.saw = off
	case a.Status == http.StatusForbidden:
		v.saw = blocked
	case a.Status == http.StatusNotFound:
		v.saw = absent
	default:
		c.t.Errorf("a visitor of %s was answered %d: %s", key, a.Status, a.Body)
		return
	}
	c.visited(v)
}

// exchange asks a server on the connection that there is, or on a new one.
func exchange(ctx context.Context, conn **curttest.Conn, address, method, target string, lines []string, body string) (a curttest.Answer, err error) {
	if *conn == nil {
		if *conn, err = curttest.Dial(ctx, address); err != nil {
			*conn = nil
			return a, err
		}
	}
	if a, err = (*conn).Do(method, target, lines, body); err != nil || a.Closes() {
		(*conn).Close()
		*conn = nil
	}
	return a, err
}

// door is where visitors of a server ask.
func (c *crowd) door(server int) string {
	if server == 0 && c.front != "" {
		return c.front
	}
	return c.fleet.server(server).Addr
}
