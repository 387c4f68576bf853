package deploy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// The load of a chaos run, per second, and the links that visitors know from its beginning.
const (
	visitsPerSecond  = 500
	createsPerSecond = 50
	firstLinks       = 100
	outstanding      = 512 // requests of a kind
)

// load is requests to a balancer at fixed rates, however long their answers take: visits of known
// links and creates. A visitor repeats a request once, on a new connection, if its connection was
// refused or ended without an answer; nothing else is repeated, and creates are not.
type load struct {
	addr string
	stop func() // and wait for all answers

	// noBalancer is set while the balancer is the part at fault: visitors repeat until it is back.
	noBalancer atomic.Bool
	begun      atomic.Int64 // visits
	ended      atomic.Int64 // of them
	visitors   pool
	creators   pool

	mu      sync.Mutex
	known   []*known          // guarded by mu
	created map[string]string // acknowledged codes and their destinations; guarded by mu
	failed  []string          // guarded by mu
	effects effects           // guarded by mu
}

// known is a link that visitors follow, and what became of its visits. Until both redirect servers have
// followed it, one of them may not have it in a cache: while the primary is down it may be unavailable.
type known struct {
	code, to         string
	answered, unsure atomic.Int64 // unsure: sent, without an answer
	row, pending     atomic.Int64 // answered, none unavailable between them; without an answer yet
	cached           atomic.Bool
}

// both is how many answered visits in a row, and no visit pending, prove that both servers have a link.
const both = 20

// effects is what clients saw during one fault.
type effects struct {
	visits, repeated, created int
	unavailable               int           // visits of links that no visitor had followed yet
	slowest                   time.Duration // visit, with its repetition
	slow                      string        // which that was
	refused                   map[string]int
	cut                       error // of the last create without an answer
	firstRefusal, lastRefusal time.Time
}

// pool has idle connections.
type pool struct {
	mu   sync.Mutex
	idle []*curttest.Conn // guarded by mu
}

func (p *pool) get() *curttest.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	c := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return c
}

// do sends a request on an idle connection, or on a new one. sent is false if no connection was
// possible.
func (p *pool) do(ctx context.Context, c *curttest.Conn, addr, method, target, body string) (a curttest.Answer, sent bool, err error) {
	if c == nil {
		if c, err = curttest.Dial(ctx, addr); err != nil {
			return a, false, err
		}
	}
	var header []string
	if method == http.MethodPost {
		header = []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}
	}
	if a, err = c.Do(method, target, header, body); err != nil || a.Closes() {
		c.Close()
		return a, true, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
	return a, true, nil
}

func (p *pool) close() {
	for c := p.get(); c != nil; c = p.get() {
		c.Close()
	}
}

// load creates the first links, and starts.
func (f *fleet) load(t *testing.T) *load {
	t.Helper()
	l := &load{addr: "localhost:" + f.port, created: map[string]string{}}
	for n := 0; len(l.known) < firstLinks; n++ {
		l.create(t.Context(), n, true)
		if len(l.effects.refused) > 0 {
			t.Fatalf("before the load: %v", l.effects.refused)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { every(ctx, time.Second/visitsPerSecond, &running, func(int) { l.visit(t.Context()) }) })
	running.Go(func() {
		every(ctx, time.Second/createsPerSecond, &running, func(n int) {
			l.create(t.Context(), firstLinks+n, n%createsPerSecond == 0)
		})
	})
	l.stop = func() {
		cancel()
		running.Wait()
		l.visitors.close()
		l.creators.close()
	}
	t.Cleanup(l.stop)
	return l
}

// every runs work each interval, also while earlier work still runs; it waits if that is too much. It
// makes up for a delay of up to a second.
func every(ctx context.Context, interval time.Duration, running *sync.WaitGroup, work func(n int)) {
	ticks, slots := time.NewTicker(interval), make(chan struct{}, outstanding)
	defer ticks.Stop()
	for n, next := 0, time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if late := time.Now().Add(-time.Second); next.Before(late) {
			next = late
		}
		for ; !next.After(time.Now()); next = next.Add(interval) {
			slots <- struct{}{}
			this := n
			running.Go(func() {
				defer func() { <-slots }()
				work(this)
			})
			n++
		}
	}
}

// create creates one link; visitors may follow it from its acknowledgement on.
func (l *load) create(ctx context.Context, n int, visited bool) {
	to := fmt.Sprintf("https://example.com/load/%d", n)
	a, _, err := l.creators.do(ctx, l.creators.get(), l.addr, http.MethodPost, "/api/v1/links", `{"long_url":"`+to+`","dedupe":false}`)
	var made curttest.Link
	if err == nil && a.Status == http.StatusCreated {
		err = json.Unmarshal(a.Body, &made)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || a.Status != http.StatusCreated {
		l.effects.refuse(a.Status, err, time.Now())
		return
	}
	l.effects.created++
	if _, twice := l.created[made.Code]; twice {
		l.failed = append(l.failed, "the code "+made.Code+" was issued twice")
	}
	l.created[made.Code] = to
	if visited {
		l.known = append(l.known, &known{code: made.Code, to: to})
	}
}

func (e *effects) refuse(status int, err error, now time.Time) {
	why := fmt.Sprint(status)
	if err != nil {
		why = "cut"
		e.cut = err
	}
	if e.refused == nil {
		e.refused, e.firstRefusal = map[string]int{}, now
	}
	e.refused[why]++
	e.lastRefusal = now
}

// visit follows one of the first links or, one visit in five, one of the newest.
func (l *load) visit(ctx context.Context) {
	l.begun.Add(1)
	defer l.ended.Add(1)
	l.mu.Lock()
	k := l.known[rand.IntN(firstLinks)]
	if rand.IntN(5) == 0 {
		newest := l.known[max(0, len(l.known)-5):]
		k = newest[rand.IntN(len(newest))]
	}
	l.mu.Unlock()
	began, repeated, fresh, cached := time.Now(), 0, false, k.cached.Load()
	k.pending.Add(1)
	defer k.pending.Add(-1)
	for c := l.visitors.get(); ; c = nil {
		last := time.Now()
		a, sent, err := l.visitors.do(ctx, c, l.addr, http.MethodGet, "/"+k.code, "")
		wrong := ""
		switch timeout := net.Error(nil); {
		case err == nil && a.Status == http.StatusFound && location(a) == k.to:
			k.answered.Add(1)
			if k.row.Add(1) >= both && k.pending.Load() == 1 {
				k.cached.Store(true)
			}
		case err == nil:
			k.unsure.Add(1)
			if fresh = a.Status == http.StatusServiceUnavailable && !cached; fresh {
				k.row.Store(0)
				break
			}
			wrong = fmt.Sprintf("%d %.100s", a.Status, strings.Join(strings.Fields(string(a.Body)), " "))
		default:
			if sent {
				k.unsure.Add(1)
			}
			if repeated++; !errors.As(err, &timeout) || !timeout.Timeout() {
				if repeated == 1 {
					continue
				}
				if l.noBalancer.Load() && time.Since(began) < healed {
					time.Sleep(20 * time.Millisecond) // as a person does who is refused
					continue
				}
			}
			wrong = err.Error()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.effects.visits++
		l.effects.repeated += min(repeated, 1)
		if fresh {
			l.effects.unavailable++
		}
		if took := time.Since(began); took > l.effects.slowest {
			l.effects.slowest = took
			l.effects.slow = fmt.Sprintf("%s /%s, sent %d times, the last after %v", began.UTC().Format("15:04:05.000"), k.code, repeated+1, last.Sub(began).Round(time.Millisecond))
		}
		if wrong != "" {
			l.failed = append(l.failed, fmt.Sprintf("%s /%s: %s", time.Now().UTC().Format(time.TimeOnly), k.code, wrong))
		}
		return
	}
}

// warmed reports whether both servers have the first links.
func (l *load) warmed() bool {
	return !slices.ContainsFunc(l.known[:firstLinks], func(k *known) bool { return !k.cached.Load() })
}

// take returns the effects and the failures since the last call.
func (l *load) take() (effects, []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, failed := l.effects, l.failed
	l.effects, l.failed = effects{}, nil
	return e, failed
}

// acknowledged is how many links were created since the last take.
func (l *load) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.effects.created
}

// await waits until the effects since the last take fulfil a condition.
func (l *load) await(t *testing.T, what string, fulfilled func(effects) bool) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		l.mu.Lock()
		done := fulfilled(l.effects)
		l.mu.Unlock()
		if done {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%v passed without %s", patience, what)
		}
	}
}

// lost follows all links, and returns those that do not redirect. One that is unavailable is requested again: that
// says nothing of the link.
func (f *fleet) lost(t *testing.T, created map[string]string) (codes []string) {
	t.Helper()
	var mu sync.Mutex
	var running sync.WaitGroup
	next := make(chan string)
	for range 4 {
		running.Go(func() {
			var p pool
			defer p.close()
			for code := range next {
				a, err := f.follow(t.Context(), &p, code)
				if err == nil && a.Status == http.StatusFound && location(a) == created[code] {
					continue
				}
				t.Logf("GET /%s: %d %v %.200s", code, a.Status, err, a.Body)
				mu.Lock()
				codes = append(codes, code)
				mu.Unlock()
			}
		})
	}
	for code := range created {
		next <- code
	}
	close(next)
	running.Wait()
	return codes
}

// follow requests a link until the answer is about the link, or for a minute.
func (f *fleet) follow(ctx context.Context, p *pool, code string) (a curttest.Answer, err error) {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		a, _, err = p.do(ctx, p.get(), "localhost:"+f.port, http.MethodGet, "/"+code, "")
		if err == nil && a.Status < http.StatusInternalServerError || time.Since(began) > healed {
			return a, err
		}
	}
}

// miscounted compares visits with what statistics count: the links with more clicks than requests,
// how many more, and how many answered visits are missing.
func miscounted(all []*known, counted map[string]int64) (links []string, more, missing int64) {
	for _, k := range all {
		n, answered, unsure := counted[k.code], k.answered.Load(), k.unsure.Load()
		if n > answered+unsure {
			more += n - answered - unsure
			links = append(links, fmt.Sprintf("%s: %d clicks, %d visits answered, %d without an answer", k.code, n, answered, unsure))
		}
		missing += max(0, answered-n)
	}
	return links, more, missing
}

// counted returns the clicks of each link once no more than so many are missing, or a minute after all were
// read once. Links that lack clicks are read again.
func (f *fleet) counted(t *testing.T, all []*known, bound int64) map[string]int64 {
	t.Helper()
	c, err := curttest.Dial(t.Context(), "localhost:"+f.port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	counted, read := make(map[string]int64, len(all)), time.Time{}
	for began := time.Now(); ; time.Sleep(time.Second) {
		for _, k := range all {
			if n, ok := counted[k.code]; ok && n >= k.answered.Load() {
				continue
			}
			s, err := c.Stats(k.code)
			if err != nil {
				t.Log("clicks are not counted yet:", err) // ClickHouse may have been stopped a moment ago
				break
			}
			counted[k.code] = s.Total
		}
		if len(counted) < len(all) {
			if time.Since(began) > 10*time.Minute {
				t.Fatalf("clicks of %d links are unknown", len(all)-len(counted))
			}
			continue
		}
		if read.IsZero() {
			read = time.Now()
		}
		if _, _, missing := miscounted(all, counted); missing <= bound || time.Since(read) > time.Minute {
			return counted
		}
	}
}
