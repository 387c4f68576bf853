package redis_test

import (
	"crypto/rand"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stampede has all visitors of all servers ask for one link at once that nobody has in
// memory: the database is asked once for each server at the most.
func stampede(t *testing.T, f *fleet) {
	for range rounds(5) {
		code := f.make(t, 1)[0]
		before := f.sum(t, "curt_cache_loads_total")
		answers, took := f.rush(t, code, 20, 100)
		if got := f.sum(t, "curt_cache_loads_total") - before; got > float64(len(f.servers)) {
			t.Errorf("%v reads of one link by %d servers", got, len(f.servers))
		}
		t.Logf("%d answers in %v, %.0f a second", answers, took, float64(answers)/took.Seconds())
	}
}

// rush lets many connections to every server ask for a code again and again, all beginning
// together.
func (f *fleet) rush(t *testing.T, code string, conns, times int) (answers int, took time.Duration) {
	t.Helper()
	var all []visitor
	for range conns {
		all = append(all, f.visitors(t)...)
	}
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for _, v := range all {
		wg.Go(func() {
			<-begin
			for range times {
				if status := v.asks(code); status != http.StatusFound {
					t.Errorf("answered %d", status)
					return
				}
			}
		})
	}
	begun := time.Now()
	close(begin)
	wg.Wait()
	return len(all) * times, time.Since(begun)
}

// forgotten: Redis loses what everybody asks for, one link and then all. What is in memory
// stays there, so the database hears nothing of it.
func forgotten(t *testing.T, f *fleet) {
	code := f.make(t, 1)[0]
	f.rush(t, code, 2, 5)
	before := f.sum(t, "curt_cache_loads_total")
	f.redis.Do(t, "flushall")
	f.rush(t, code, 20, 20)
	if got := f.sum(t, "curt_cache_loads_total") - before; got != 0 {
		t.Errorf("%v reads of a link that every server has in memory", got)
	}
}

// scanned: codes that were never given away cost the database nothing. One in 35,000 at
// random is below the mark up to which nobody can be sure; and where reading the change log
// takes longer than 250 ms, as on a machine that has other work, the link is asked for.
func scanned(t *testing.T, f *fleet) {
	const conns, tries = 10, 20
	before := f.sum(t, "curt_cache_loads_total")
	var wg sync.WaitGroup
	var late atomic.Int64
	for range conns {
		for _, v := range f.visitors(t) {
			wg.Go(func() {
				for range rounds(tries) {
					begun := time.Now()
					if a, err := v.c.Do("GET", "/"+rand.Text()[:7], nil, ""); err != nil || a.Status != http.StatusNotFound {
						t.Errorf("answered %d, %v", a.Status, err)
						return
					}
					if time.Since(begun) > 250*time.Millisecond {
						late.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	codes, reads := conns*rounds(tries)*len(f.servers), f.sum(t, "curt_cache_loads_total")-before
	t.Logf("%v reads of %d codes, %d of which waited long", reads, codes, late.Load())
	if reads > 0.05*float64(codes)+float64(late.Load()) {
		t.Errorf("%v reads of %d codes that nobody has", reads, codes)
	}
}
