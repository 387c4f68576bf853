package events_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// visitors click until they are stopped, wherever somebody answers.
type visitors struct {
	stop     chan struct{}
	wg       sync.WaitGroup
	answered atomic.Int64

	mu    sync.Mutex
	times []time.Duration // guarded by mu: of redirects since they were asked for last, in their order
}

// visit lets n visitors click on each site, each so often.
func (p *plant) visit(ctx context.Context, n int, every time.Duration) *visitors {
	v := &visitors{stop: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	for data := range p.sites {
		p.visited = append(p.visited, data)
		for i := range n {
			v.wg.Go(func() { p.click(ctx, v, data, i, every) })
		}
	}
	return v
}

func (p *plant) click(ctx context.Context, v *visitors, data string, i int, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var c *curttest.Conn
	agents := []string{
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
		"User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
		"User-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
	}
	for n := i; ; n++ {
		select {
		case <-v.stop:
			return
		case <-tick.C:
		}
		if c == nil {
			p.mu.Lock()
			addr := p.sites[data].Addr
			p.mu.Unlock()
			var err error
			if c, err = curttest.Dial(ctx, addr); err != nil {
				continue
			}
		}
		target, redirected := "/"+p.codes[n*7%len(p.codes)], true
		if n%20 == 0 {
			target, redirected = "/nobody", false // PostgreSQL answers that, some milliseconds later
		}
		began := time.Now()
		a, err := c.Do("GET", target, []string{agents[n%len(agents)]}, "")
		if err != nil || a.Closes() {
			c.Close()
			c = nil
		}
		if err == nil {
			v.answered.Add(1)
		}
		if err == nil && redirected {
			v.mu.Lock()
			v.times = append(v.times, time.Since(began))
			v.mu.Unlock()
		}
	}
}

// clickEach clicks on every code, and so in every partition in which anybody has.
func (p *plant) clickEach(t *testing.T) (answered int64) {
	t.Helper()
	_, s := p.any(p.sites)
	return p.clickOn(t, s)
}

// end stops the visitors and returns how many answers they got.
func (v *visitors) end() int64 {
	close(v.stop)
	v.wg.Wait()
	return v.answered.Load()
}
