package redis_test

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// inserts returns how many codes two servers tried for their new links, and how many links those are.
func (f *fleet) inserts(t *testing.T) (tried, links float64) {
	t.Helper()
	return f.sum(t, "curt_create_code_tries_sum"), f.sum(t, "curt_create_code_tries_count")
}

// TestServersShareTheFilterOfIssuedCodes creates links to few destinations on two servers. While the filter in Redis has their
// codes each link costs one insert, on whichever server; when it was lost, or Redis is unavailable, some more, until it was refilled.
func TestServersShareTheFilterOfIssuedCodes(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	f := gather(t, 2, "", "CURT_CODES=hash", "CURT_CODE_FILTER=redis", "CURT_CODE_FILTER_CODES=100000")
	var apis []*client.Client
	for _, s := range f.servers {
		api, err := client.New("http://"+s.Addr, client.WithKey(curttest.Key))
		if err != nil {
			t.Fatal(err)
		}
		apis = append(apis, api)
	}
	other, codes := false, map[string]bool{}
	// create creates links to ten destinations, and returns how many inserts each cost.
	create := func(each int) float64 {
		t.Helper()
		tried, links := f.inserts(t)
		for i := range 10 * each {
			added := f.sum(t, "curt_code_filter_added_total")
			l, err := apis[i%2].Create(t.Context(), client.NewLink{LongURL: fmt.Sprint("https://example.com/", i%10), Dedupe: &other})
			if err != nil || codes[l.ShortCode] {
				t.Fatalf("%s, %v; issued before: %t", l.ShortCode, err, codes[l.ShortCode])
			}
			codes[l.ShortCode] = true
			if f.sum(t, "curt_redis_up") == 2 {
				within(t, "the code in the filter", func() bool { return f.sum(t, "curt_code_filter_added_total") > added })
			}
		}
		triedAfter, linksAfter := f.inserts(t)
		return (triedAfter - tried) / (linksAfter - links)
	}
	refilled := func(n float64) {
		t.Helper()
		within(t, "a refill", func() bool { return f.sum(t, "curt_code_filter_refills_total") >= n })
	}
	refilled(1) // of nothing
	unanswered := f.sum(t, "curt_code_filter_unanswered_total")
	if per := create(4); per != 1 && f.sum(t, "curt_code_filter_unanswered_total") == unanswered { // of a busy machine some are
		t.Errorf("%.2f inserts a link with the filter, want 1", per)
	}
	f.redis.Do(t, "flushall")
	if per := create(1); per < 2 && f.sum(t, "curt_code_filter_refills_total") < 2 {
		t.Errorf("%.2f inserts a link after the filter was lost: it was not", per)
	}
	refilled(2)
	within(t, "links that cost one insert after a refill", func() bool { return create(1) == 1 })

	signal(t, f.redis.Pid, syscall.SIGSTOP)
	within(t, "Redis out of use", func() bool { return f.sum(t, "curt_redis_up") == 0 })
	if per := create(1); per < 2 {
		t.Errorf("%.2f inserts a link without Redis: the filter answers", per)
	}
	for _, v := range f.visitors(t) {
		for code := range codes {
			if status := v.asks(code); status != http.StatusFound {
				t.Errorf("%s without Redis is %d", code, status)
			}
		}
	}
	signal(t, f.redis.Pid, syscall.SIGCONT)
	within(t, "Redis in use", func() bool { return f.sum(t, "curt_redis_up") == 2 })
}
