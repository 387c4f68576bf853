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
	granted, refused, visited := f.visit(t, code, 4*time.Second)
	took := time.Since(began).Seconds()
	most := 1.1*perSecond*took + float64(len(f.servers)*aBatch) + perLate*(f.late(t)-late)
	least := 0.7 * min(perSecond*visited.Seconds(), float64(granted+refused)) // on a busy machine fewer ask than may
	t.Logf("%d granted and %d refused in %.2f s by %d servers; at least %.0f and at most %.0f", granted, refused, took, len(f.servers), least, most)
	if float64(granted) > most || float64(granted) < least {
		t.Errorf("%d granted and %d refused in %.2f s, want %.0f to %.0f", granted, refused, took, least, most)
	}
	if sum := f.sum(t, `curt_redirects_limited_total`); sum < float64(refused) {
		t.Errorf("%v refusals are counted, want %d", sum, refused)
	}

	signal(t, f.redis.Pid, syscall.SIGKILL)
	within(t, "the end of Redis", func() bool { return f.sum(t, "curt_redis_up") == 0 })
	began = f.drain(t, code)
	granted, refused, visited = f.visit(t, code, 3*time.Second)
	took = time.Since(began).Seconds()
	each := 1.1 * perSecond * took * float64(len(f.servers))
	least = min(1.2*perSecond*visited.Seconds(), 0.7*float64(granted+refused))
	t.Logf("%d granted in %.2f s without Redis; at least %.0f and at most %.0f", granted, took, least, each)
	if float64(granted) > each || float64(granted) < least {
		t.Errorf("%d granted in %.2f s without Redis, want the limit of each server, %.0f to %.0f", granted, took, least, each)
	}

	f.redis.Again(f.whole)
	within(t, "Redis in use again", func() bool { return f.sum(t, "curt_redis_up") == float64(len(f.servers)) })
	f.visit(t, code, 2*time.Second) // servers hear of each other
	late = f.late(t)
	began = f.drain(t, code)
	granted, _, _ = f.visit(t, code, 2*time.Second)
	took = time.Since(began).Seconds()
	if most := 1.1*perSecond*took + float64(len(f.servers)*aBatch) + perLate*(f.late(t)-late); float64(granted) > most {
		t.Errorf("%d granted in %.2f s with Redis again, want at most %.0f", granted, took, most)
	}
}

// TestUnknownCodesAreLimitedTogether has one network ask three servers for codes.
func TestUnknownCodesAreLimitedTogether(t *testing.T) {
	t.Parallel()
	f := gather(t, 3, "", "CURT_UNKNOWN_LIMIT=60/h")
	visitors, unknown, late, began := f.visitors(t), 0, f.late(t), time.Now()
	empty := make([]bool, len(visitors)) // servers with nothing left: what is only to be told to Redis is there in a second
	for i := 0; slices.Contains(empty, false); i++ {
		who := i % len(visitors)
		a, err := visitors[who].c.Do("GET", "/guess"+strconv.Itoa(i), nil, "")
		if err != nil || time.Since(began) > 3*time.Minute {
			t.Fatalf("%d unknown codes are answered after %s, servers with nothing left: %v; %v", unknown, time.Since(began), empty, err)
		}
		empty[who] = false
		switch a.Status {
		case http.StatusNotFound:
			unknown++
		case http.StatusTooManyRequests:
			text, _ := a.Get("Retry-After")
			after, err := strconv.Atoi(text)
			empty[who] = err == nil && after > 1
		case http.StatusServiceUnavailable: // a busy machine did not look it up in time
		default:
			t.Fatalf("answered %d", a.Status)
		}
	}
	most := 60 + 3*10
	if f.late(t) > late { // while Redis does not answer in time, each server grants the limit by itself
		most = 3 * 60
	}
	if most += 1 + int(time.Since(began)/time.Minute); unknown < 60 || unknown > most {
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
// how many refused, and how long it took.
func (f *fleet) visit(t *testing.T, code string, lasts time.Duration) (granted, refused int, took time.Duration) {
	t.Helper()
	began := time.Now()
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
	return int(redirects.Load()), int(limits.Load()), time.Since(began)
}

func has(a curttest.Answer, field string) bool {
	_, ok := a.Get(field)
	return ok
}
