package codefilter_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"curt/internal/backend/redis"
	"curt/internal/backend/redis/codefilter"
	"curt/internal/link"
	"curt/internal/testkit"
)

// process is one server's connection and filter.
type process struct {
	*codefilter.Filter
	conn *redis.Client
}

// join is a process that uses the filter until the test ends.
func join(t *testing.T, url string, codes uint64) process {
	t.Helper()
	c, err := redis.New(redis.Config{URL: url, Namespace: "codes", Key: []byte("of tests")})
	if err != nil {
		t.Fatal(err)
	}
	p := process{codefilter.New(c, codes), c}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- c.Run(ctx) }()
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, <-done, c.Close()); err != nil {
			t.Error(err)
		}
	})
	until(t, "a connection", func() bool { return c.Healthy() == nil && p.Put(t.Context(), nil) == nil && p.Ready() })
	return p
}

// until waits for what others bring about.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// put adds codes, for as long as a busy machine takes.
func (p process) put(t *testing.T, codes ...link.Code) {
	t.Helper()
	until(t, "codes to be added", func() bool { return p.Put(t.Context(), codes) == nil })
}

// held asks, again where Redis was too slow.
func (p process) held(t *testing.T, codes ...link.Code) (held []bool) {
	t.Helper()
	until(t, "an answer", func() bool {
		before := p.Stats().Unanswered
		held = p.Query(t.Context(), codes...)
		return p.Stats().Unanswered == before
	})
	return held
}

func all(held []bool) (n int) {
	for _, h := range held {
		if h {
			n++
		}
	}
	return n
}

func batch(prefix string, from, n int) []link.Code {
	codes := make([]link.Code, n)
	for i := range codes {
		codes[i] = link.Code(fmt.Sprint(prefix, from+i))
	}
	return codes
}

// contract is what holds for each kind of server.
func contract(t *testing.T, url string, codes uint64) {
	one, two := join(t, url, codes), join(t, url, codes)
	t.Run("what one process adds all know", func(t *testing.T) {
		one.put(t, batch("a", 0, 2500)...)
		if n := all(two.held(t, batch("a", 0, 2500)...)); n != 2500 {
			t.Errorf("%d of 2,500 codes are known", n)
		}
		if n := all(two.held(t, batch("b", 0, 2500)...)); n > 2500/100 {
			t.Errorf("%d of 2,500 other codes are known", n)
		}
	})
	t.Run("Add does not wait", func(t *testing.T) {
		for _, code := range batch("c", 0, 500) {
			one.Add(code)
		}
		until(t, "500 codes", func() bool { return all(two.held(t, batch("c", 0, 500)...)) == 500 })
	})
	t.Run("a new filter lacks codes until it was filled", func(t *testing.T) {
		missing, err := two.Begin(t.Context())
		if err != nil || len(missing) == 0 {
			t.Fatalf("Begin: %v, %v; want what lacks codes", missing, err)
		}
		one.put(t, batch("d", 0, 100)...)
		if err := two.End(t.Context(), missing); err != nil {
			t.Fatal(err)
		}
		for _, p := range []process{one, two} {
			if missing, err := p.Begin(t.Context()); err != nil || len(missing) > 0 {
				t.Errorf("Begin of a filter that is filled: %v, %v", missing, err)
			}
		}
	})
	t.Run("filters for other numbers are others", func(t *testing.T) {
		if n := all(join(t, url, codes+1).held(t, batch("a", 0, 2500)...)); n > 0 {
			t.Errorf("%d codes of another filter are known", n)
		}
	})
}

func TestRedis(t *testing.T) {
	server := testkit.StartRedis(t)
	contract(t, server.URL(), 100_000)
	t.Run("what is lost meanwhile is not complete", func(t *testing.T) {
		p := join(t, server.URL(), 5000)
		missing, err := p.Begin(t.Context())
		if err != nil || len(missing) != 1 {
			t.Fatalf("Begin: %v, %v", missing, err)
		}
		server.Do(t, "flushall")
		p.put(t, "after")
		if err := p.End(t.Context(), missing); err != nil {
			t.Fatal(err)
		}
		if again, err := p.Begin(t.Context()); err != nil || len(again) != 1 {
			t.Errorf("Begin after a loss: %v, %v; want what lacks codes", again, err)
		}
	})
	t.Run("a bitmap has its size at once", func(t *testing.T) {
		p := join(t, server.URL(), 7000)
		p.put(t, "one")
		var size string
		for key := range strings.Lines(server.Do(t, "keys", "curt:codes:f:7000:*")) {
			size = server.Do(t, "strlen", strings.TrimSpace(key))
		}
		if size != fmt.Sprint(64/8+7000*144/10/8) || p.Stats().Bytes != 64/8+7000*144/10/8 {
			t.Errorf("the bitmap of 7,000 codes has %s bytes, the filter says %d", size, p.Stats().Bytes)
		}
	})
}

// TestRedisBloom runs the same on a server that has RedisBloom, and makes sure that it was used.
func TestRedisBloom(t *testing.T) {
	testkit.Faults(t)
	server := testkit.StartRedisBloom(t)
	contract(t, server.URL(), 100_000)
	if keys := server.Do(t, "keys", "*"); !strings.Contains(keys, "f:100000:bf:0") || strings.Contains(keys, "f:100000:0") {
		t.Errorf("RedisBloom was not used: keys %s", keys)
	}
	const capacity = 50_000
	wrongAt(t, join(t, server.URL(), capacity), capacity, 100_000)
}

func TestCluster(t *testing.T) {
	testkit.Faults(t)
	contract(t, testkit.StartCluster(t).URL(), 100_000_000) // six bitmaps on three nodes
}

// At its number of codes the filter is wrong about one free code of a thousand, and about no other.
func TestFalsePositives(t *testing.T) {
	const capacity = 50_000
	p := join(t, testkit.StartRedis(t).URL(), capacity)
	wrongAt(t, p, capacity, 100_000)
}

// The same with a million codes.
func TestFalsePositivesOfAMillion(t *testing.T) {
	testkit.Faults(t)
	const capacity = 1_000_000
	p := join(t, testkit.StartRedis(t).URL(), capacity)
	wrongAt(t, p, capacity, 1_000_000)
}

func wrongAt(t *testing.T, p process, capacity, asked int) {
	t.Helper()
	for from := 0; from < capacity; from += 1000 {
		p.put(t, batch("in", from, 1000)...)
	}
	known, wrong := 0, 0
	for from := 0; from < capacity; from += 500 {
		known += all(p.held(t, batch("in", from, 500)...))
	}
	for from := 0; from < asked; from += 500 {
		wrong += all(p.held(t, batch("out", from, 500)...))
	}
	rate := float64(wrong) / float64(asked)
	t.Logf("%d codes: %.4f %% of %d others are taken for issued; %.2f bytes a code", capacity, 100*rate, asked, float64(p.Stats().Bytes)/float64(capacity))
	if known != capacity || rate > 0.0013 { // 0.00099 are expected; 100,000 questions make 0.0001 of noise
		t.Errorf("%d of %d codes are known, %.4f %% of others; want all, and 0.1 %%", known, capacity, 100*rate)
	}
}

// Without Redis nothing is known and nothing fails; what was added meanwhile arrives afterwards.
func TestRedisUnavailable(t *testing.T) {
	testkit.Faults(t)
	server := testkit.StartRedis(t)
	spoiled := testkit.SpoilRedis(t, server)
	p := join(t, spoiled.URL(), 10_000)
	p.put(t, "before")
	spoiled.Refuse(t, true)
	until(t, "the breaker", func() bool { p.Query(t.Context(), "before"); return p.conn.Healthy() != nil })
	began := time.Now()
	for range 1000 {
		if p.Query(t.Context(), "before")[0] {
			t.Fatal("a filter that is unavailable knows a code")
		}
	}
	t.Logf("1,000 questions without Redis took %s", time.Since(began))
	p.Add("meanwhile")
	spoiled.Refuse(t, false)
	until(t, "what was added meanwhile", func() bool { return p.Query(t.Context(), "meanwhile")[0] })
	if s := p.Stats(); s.Unanswered == 0 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}

// The rights that docs/backends.md names are those that the filter needs; without them the log and the health say which are missing.
func TestRights(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/backends.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "ACL SETUSER curt on >PASSWORD ")
	usual, rest, _ := strings.Cut(rest, "\n")
	_, rest, _ = strings.Cut(rest, "With `CURT_CODE_FILTER=redis` it also needs `")
	more, _, _ := strings.Cut(rest, "`")
	server := testkit.StartRedis(t)
	server.Do(t, append([]string{"acl", "setuser", "curt", "on", ">secret"}, strings.Fields(usual+" "+more)...)...)
	url := "redis://curt:secret@" + server.Address
	p := join(t, url, 1000)
	p.put(t, "one")
	if !p.held(t, "one")[0] || p.conn.Refused() != nil {
		t.Errorf("with the documented rights: %v", p.conn.Refused())
	}
	server.Do(t, "acl", "setuser", "curt", "-setbit")
	until(t, "word about it", func() bool {
		p.Add("two")
		return strings.Contains(fmt.Sprint(p.conn.Refused()), "filter codes by a script")
	})
	server.Do(t, "acl", "setuser", "curt", "+setbit")
	until(t, "codes added in spite of it", func() bool { return p.Query(t.Context(), "two")[0] })
}
