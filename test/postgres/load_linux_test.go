package postgres_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// sample is one answer.
type sample struct {
	at     time.Time // when it was asked for
	took   time.Duration
	status int // 0 = none came
	said   string
}

// samples are the answers of some clients.
type samples struct {
	mu  sync.Mutex
	all []sample // guarded by mu
}

func (s *samples) add(one sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, one)
}

// between returns what was answered in a span of time.
func (s *samples) between(from, to time.Time) (some []sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if end := one.at.Add(one.took); !end.Before(from) && end.Before(to) {
			some = append(some, one)
		}
	}
	return some
}

// load is visitors of links that every server has in memory, and makers of links, at each
// of some servers.
type load struct {
	t     *testing.T
	nodes []node
	hot   []curttest.Link // in the memory of every server
	cold  []curttest.Link // in nobody's; used up from the front

	hits, makes []*samples // by node
	beside      *samples   // visits of a server that has a store of its own, which no fault is about
	stop        context.CancelFunc
	wg          sync.WaitGroup

	mu   sync.Mutex
	made []curttest.Link // answered 201; guarded by mu
}

// newLoad begins. What it made is checked by end.
func newLoad(t *testing.T, nodes []node) *load {
	t.Helper()
	l := &load{t: t, nodes: nodes}
	all := nodes[0].MustCreate(t, 80)
	l.hot, l.cold = all[:20], all[20:]
	l.made = slices.Clone(all)
	ctx, cancel := context.WithCancel(t.Context())
	l.stop = cancel
	t.Cleanup(func() { cancel(); l.wg.Wait() })
	alone := curttest.Start(t, curttest.Options{Data: t.TempDir()})
	links := alone.MustCreate(t, len(l.hot))
	l.beside = &samples{}
	l.wg.Go(func() { visit(ctx, alone, links, l.beside) })
	for i, n := range nodes {
		for _, wrong := range n.Follow(t, l.hot, 2) {
			t.Fatal("before any fault:", wrong)
		}
		l.hits, l.makes = append(l.hits, &samples{}), append(l.makes, &samples{})
		l.wg.Go(func() { visit(ctx, n.Server, l.hot, l.hits[i]) })
		for who := range 2 {
			l.wg.Go(func() { l.make(ctx, n, l.makes[i], fmt.Sprintf("https://example.com/%s/%d-%d", t.Name(), i, who)) })
		}
	}
	return l
}

// visit follows links at a server, one every 5 ms.
func visit(ctx context.Context, n *curttest.Server, links []curttest.Link, into *samples) {
	var c *curttest.Conn
	for i := 0; ctx.Err() == nil; i++ {
		want, one := links[i%len(links)], sample{at: time.Now()}
		var err error
		if c == nil {
			c, err = curttest.Dial(ctx, n.Addr)
		}
		var a curttest.Answer
		if err == nil {
			a, err = c.Do("GET", "/"+want.Code, nil, "")
		}
		if one.took, one.status = time.Since(one.at), a.Status; err != nil {
			one.said = err.Error()
			c = nil
		} else if to, _ := a.Get("Location"); to != want.LongURL {
			one.said = fmt.Sprintf("/%s: %d, Location %q", want.Code, a.Status, to)
		}
		if ctx.Err() == nil {
			into.add(one)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// make makes links one after the other.
func (l *load) make(ctx context.Context, n node, into *samples, prefix string) {
	var c *curttest.Conn
	for i := 0; ctx.Err() == nil; i++ {
		one, to := sample{at: time.Now()}, fmt.Sprintf("%s/%d", prefix, i)
		var err error
		if c == nil {
			c, err = curttest.Dial(ctx, n.Addr)
		}
		var made curttest.Link
		var a curttest.Answer
		if err == nil {
			made, a, err = c.Create(to)
		}
		if one.took, one.status, one.said = time.Since(one.at), a.Status, string(a.Body); err != nil {
			one.said, c = err.Error(), nil
		}
		if a.Status == http.StatusCreated {
			l.mu.Lock()
			l.made = append(l.made, curttest.Link{Code: made.Code, LongURL: to, At: time.Now()})
			l.mu.Unlock()
		}
		if _, retry := a.Get("Retry-After"); a.Status == http.StatusServiceUnavailable && !retry {
			l.t.Error("503 without Retry-After")
		}
		if ctx.Err() == nil {
			into.add(one)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// phase is what a time was like.
type phase struct {
	hits, bad     int             // visits of hot links, and those that did not get there
	took, beside  []time.Duration // visits, and those of the server beside, sorted
	made, refused int             // creates answered 201 and 503
	other         []sample        // creates answered otherwise
	slowest       time.Duration   // create
}

// fault is phase while the database is in trouble. It goes on until each node has refused
// creates, which so are not kept until the end of it, and visitors asked as often as they
// must have.
func (l *load) fault(d time.Duration) phase {
	l.t.Helper()
	from := time.Now()
	for i := range l.nodes {
		soon(l.t, fmt.Sprintf("server %d refuses creates", i+1), func() bool {
			refused := 0
			for _, one := range l.makes[i].between(from, time.Now()) {
				if one.status == http.StatusServiceUnavailable {
					refused++
				}
			}
			return refused >= 2 && len(l.hits[i].between(from, time.Now())) >= leastVisits
		})
	}
	time.Sleep(time.Until(from.Add(d)))
	return l.seen(from, time.Now())
}

// phase lets the load run for a while, until visitors asked as often as they must have, and
// returns what was seen at the nodes that are not left out.
func (l *load) phase(d time.Duration, without ...int) phase {
	l.t.Helper()
	from := time.Now()
	time.Sleep(d)
	for i := range l.nodes {
		soon(l.t, fmt.Sprintf("server %d is visited", i+1), func() bool {
			return slices.Contains(without, i) || len(l.hits[i].between(from, time.Now())) >= leastVisits
		})
	}
	return l.seen(from, time.Now(), without...)
}

// leastVisits are those of a phase at each node: fewer have no 99th percentile.
const leastVisits = 100

func (l *load) seen(from, to time.Time, without ...int) (p phase) {
	for _, one := range l.beside.between(from, to) {
		p.beside = append(p.beside, one.took)
	}
	slices.Sort(p.beside)
	for i := range l.nodes {
		if slices.Contains(without, i) {
			continue
		}
		for _, one := range l.hits[i].between(from, to) {
			p.took = append(p.took, one.took)
			if p.hits++; one.said != "" {
				p.bad++
				l.t.Logf("server %d: %s", i+1, one.said)
			}
		}
		for _, one := range l.makes[i].between(from, to) {
			p.slowest = max(p.slowest, one.took)
			switch one.status {
			case http.StatusCreated:
				p.made++
			case http.StatusServiceUnavailable:
				p.refused++
			default:
				p.other = append(p.other, one)
			}
		}
	}
	slices.Sort(p.took)
	return p
}

// visitCold asks every node for a link that is in nobody's memory: while the database is
// away that is 503 with Retry-After, before it is back, and never 404.
func (l *load) visitCold(without ...int) {
	l.t.Helper()
	for i, n := range l.nodes {
		if slices.Contains(without, i) {
			continue
		}
		cold := l.cold[0]
		l.cold = l.cold[1:]
		c := n.MustDial(l.t)
		began := time.Now()
		a, err := c.Do("GET", "/"+cold.Code, nil, "")
		c.Close()
		_, retry := a.Get("Retry-After")
		if err != nil || a.Status != http.StatusFound && (a.Status != http.StatusServiceUnavailable || !retry) {
			l.t.Errorf("server %d: a link that is not in memory: %d after %s, %v", i+1, a.Status, time.Since(began), err)
		}
	}
}

// awaitMakes returns how long it takes until each server makes links again.
func (l *load) awaitMakes() time.Duration {
	l.t.Helper()
	began := time.Now()
	for i := range l.nodes {
		soon(l.t, fmt.Sprintf("server %d makes links after the fault", i+1), func() bool {
			return slices.ContainsFunc(l.makes[i].between(began, time.Now()), func(s sample) bool { return s.status == http.StatusCreated })
		})
	}
	return time.Since(began)
}

// end stops the load and returns what is wrong: a link that was answered 201 and is not
// there, at some server, or a code that was given out twice.
func (l *load) end() (wrong []string) {
	l.t.Helper()
	l.stop()
	l.wg.Wait()
	codes := map[string]string{}
	for _, m := range l.made {
		if other, twice := codes[m.Code]; twice {
			wrong = append(wrong, fmt.Sprintf("code %s was given to %s and to %s", m.Code, other, m.LongURL))
		}
		codes[m.Code] = m.LongURL
	}
	for i, n := range l.nodes {
		for _, w := range n.Follow(l.t, l.made, 4) {
			wrong = append(wrong, fmt.Sprintf("server %d: %s", i+1, w))
		}
	}
	l.t.Logf("%d links over %d servers", len(l.made), len(l.nodes))
	return wrong
}
