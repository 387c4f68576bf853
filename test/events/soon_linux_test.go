package events_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestSoon says how long a click takes to its statistics at some 5,000 clicks a second:
// scripts/bench-events runs it, because it needs a machine that does nothing else.
func TestSoon(t *testing.T) {
	if os.Getenv("CURT_TEST_SPEED") == "" {
		t.Skip("a figure: CURT_TEST_SPEED=1 takes it")
	}
	p := build(t, 1, 1, 1)
	v := p.visit(t.Context(), 50, 10*time.Millisecond)
	time.Sleep(10 * time.Second)
	before, began := v.answered.Load(), time.Now()
	times := p.soon(t, len(p.probes))
	rate := float64(v.answered.Load()-before) / time.Since(began).Seconds()
	v.end()
	t.Logf("%.0f clicks a second; a click is in the statistics after %v at the median, %v at the 99th percentile (bar: 5 s), %v at the most, of %d",
		rate, share(times, 50), share(times, 99), times[len(times)-1], len(times))
	if share(times, 99) > 5*time.Second {
		t.Error("that is too long")
	}
}

// soon clicks on n links, one each second, and returns after how long the API shows the clicks,
// sorted. It asks after a second, and four times a second from then on: each answer takes
// ClickHouse some 40 ms of a processor, and asking is not what it measures.
func (p *plant) soon(t *testing.T, n int) []time.Duration {
	t.Helper()
	api := p.start(t, t.TempDir(), "redirect,api")
	defer api.Terminate(t)
	_, site := p.any(p.sites)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var times []time.Duration
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for _, code := range p.probes[:n] {
		<-tick.C
		wg.Go(func() {
			took, err := seen(t, site, api, code)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, took)
		})
	}
	wg.Wait()
	slices.Sort(times)
	return times
}

// seen clicks once and returns how long that takes to be shown.
func seen(t *testing.T, site, api *curttest.Server, code string) (time.Duration, error) {
	t.Helper()
	visitor, err := curttest.Dial(t.Context(), site.Addr)
	if err != nil {
		return 0, err
	}
	defer visitor.Close()
	asker, err := curttest.Dial(t.Context(), api.Addr)
	if err != nil {
		return 0, err
	}
	defer asker.Close()
	began := time.Now()
	if _, err := visitor.Do("GET", "/"+code, []string{"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"}, ""); err != nil {
		return 0, err
	}
	time.Sleep(time.Second)
	for time.Since(began) < 3*time.Minute { // ClickHouse may be too busy to answer: 503
		if stats, err := asker.Stats(code); err == nil && stats.Total > 0 {
			return time.Since(began), nil
		}
		time.Sleep(250 * time.Millisecond)
	}
	return 0, fmt.Errorf("the click on %s is not shown within three minutes", code)
}
