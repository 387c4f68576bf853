package redis_test

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// perSecond is the limit of a link, and aBatch what a server may grant before it has said so.
const (
	perSecond = 200
	aBatch    = perSecond / 10
)

// perLate is what a server may grant by itself because Redis answered it late, as on a busy machine: it asks again
// after 100 ms.
const perLate = perSecond / 5

// TestRedirectsAreLimitedTogether has three servers grant one limit, with Redis, without it and with
// it back.
func TestRedirectsAreLimitedTogether(t *testing.T) {
	t.Parallel()
	f := gather(t, 3, "", "CURT_REDIRECT_LIMIT=link="+strconv.Itoa(perSecond)+"/s,network=1000000/s")
	code := f.make(t, 1)[0]
	late := f.late(t)
	began := f.drain(t, code)
	granted, refused := f.visit(t, code, 4*time.Second)
	took := time.Since(began).Seconds()
	most := 1.1*perSecond*took + float64(len(f.servers)*aBatch) + perLate*(f.late(t)-late)
	t.Logf("%d granted and %d refused in %.2f s by %d servers; at most %.0f", granted, refused, took, len(f.servers), most)
	if float64(granted) > most || float64(granted) < 0.7*perSecond*took || refused == 0 {
		t.Errorf("%d granted and %d refused in %.2f s, want at most %.0f", granted, refused, took, most)
	}
	if sum := f.sum(t, `curt_redirects_limited_total`); sum < float64(refused) {
		t.Errorf("%v refusals are counted, want %d", sum, refused)
	}

	signal(t, f.redis.Pid, syscall.SIGKILL)
	within(t, "the end of Redis", func() bool { return f.sum(t, "curt_redis_up") == 0 })
	began = f.drain(t, code)
	granted, _ = f.visit(t, code, 3*time.Second)
	took = time.Since(began).Seconds()
	each := 1.1 * perSecond * took * float64(len(f.servers))
	t.Logf("%d granted in %.2f s without Redis; at most %.0f", granted, took, each)
	if float64(granted) > each || float64(granted) < 1.2*perSecond*took {
		t.Errorf("%d granted in %.2f s without Redis, want the limit of each server, %.0f", granted, took, each)
	}

	f.redis.Again(f.whole)
	within(t, "Redis in use again", func() bool { return f.sum(t, "curt_redis_up") == float64(len(f.servers)) })
	f.visit(t, code, 2*time.Second) // servers hear of each other
	late = f.late(t)
	began = f.drain(t, code)
	granted, _ = f.visit(t, code, 2*time.Second)
	took = time.Since(began).Seconds()
	if most := 1.1*perSecond*took + float64(len(f.servers)*aBatch) + perLate*(f.late(t)-late); float64(granted) > most {
		t.Errorf("%d granted in %.2f s with Redis again, want at most %.0f", granted, took, most)
	}
}

// TestUnknownCodesAreLimitedTogether has one network ask three servers for codes.
func TestUnknownCodesAreLimitedTogether(t *testing.T) {
	t.Parallel()
	f := gather(t, 3, "", "CURT_UNKNOWN_LIMIT=60/h")
	visitors, unknown := f.visitors(t), 0
	for i := range 3 * 60 {
		switch status := visitors[i%3].asks("guess" + strconv.Itoa(i)); status {
		case http.StatusNotFound:
			unknown++
		case http.StatusTooManyRequests:
		default:
			t.Fatalf("answered %d", status)
		}
	}
	if most := 60 + 1 + 3*10; unknown < 60 || unknown > most {
		t.Errorf("%d unknown codes are answered, want 60 to %d", unknown, most)
	}
}

// drain visits all servers until each has refused, and returns when the first of them did: what it has
// granted later came into its bucket since.
func (f *fleet) drain(t *testing.T, code string) (since time.Time) {
	t.Helper()
	var first atomic.Int64
	var wg sync.WaitGroup
	for i, v := range f.visitors(t) {
		wg.Go(func() {
			within(t, "a refusal of server "+strconv.Itoa(i+1), func() bool {
				for range 2 * perSecond {
					now := time.Now()
					if v.asks(code) == http.StatusTooManyRequests {
						first.CompareAndSwap(0, now.UnixNano())
						return true
					}
				}
				return false
			})
		})
	}
	wg.Wait()
	return time.Unix(0, first.Load())
}

// late is how often servers were not answered by Redis in time, or did not ask because of that.
func (f *fleet) late(t *testing.T) float64 {
	t.Helper()
	return f.sum(t, "curt_redis_timeouts_total") + f.sum(t, "curt_redis_failures_total") + f.sum(t, "curt_redis_refused_total")
}

// visit asks all servers for a code for a time, each on several connections, and returns how many were redirected and
// how many refused.
func (f *fleet) visit(t *testing.T, code string, lasts time.Duration) (granted, refused int) {
	t.Helper()
	var redirects, limits atomic.Int64
	var wg sync.WaitGroup
	for _, v := range slices.Concat(f.visitors(t), f.visitors(t), f.visitors(t), f.visitors(t)) {
		wg.Go(func() {
			for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(4 * time.Millisecond) {
				a, err := v.c.Do("GET", "/"+code, nil, "")
				switch {
				case err != nil:
					t.Error(err)
					return
				case a.Status == http.StatusFound:
					redirects.Add(1)
				case a.Status == http.StatusTooManyRequests && has(a, "Retry-After"):
					limits.Add(1)
				default:
					t.Errorf("answered %d", a.Status)
					return
				}
			}
		})
	}
	wg.Wait()
	return int(redirects.Load()), int(limits.Load())
}

func has(a curttest.Answer, field string) bool {
	_, ok := a.Get(field)
	return ok
}
