package linkservice_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/auth"
	"curt/internal/codegen"
	"curt/internal/hosts/hoststest"
	"curt/internal/idempotency/idempotencytest"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/ratelimit"
	"curt/internal/shorten"
	"curt/internal/shorten/linkservice"
)

// bench is a Creator with everything around it.
type bench struct {
	*linkservice.Service

	store     *linktest.Memory
	codes     *codes
	limits    *limits
	announced *[]link.Change
	metrics   *prometheus.Registry
}

func noon() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

func admin() auth.Principal {
	return auth.Principal{KeyID: auth.AdminKeyID, Workspace: link.WorkspaceDefault, Scopes: []auth.Scope{auth.Admin}}
}

func member(workspace link.WorkspaceID, scopes ...auth.Scope) auth.Principal {
	return auth.Principal{KeyID: "key-of-" + string(workspace), Workspace: workspace, Scopes: scopes}
}

// newBench returns a Creator over a memory store; change may alter its Config.
func newBench(t *testing.T, change ...func(*linkservice.Config)) bench {
	t.Helper()
	store := linktest.NewMemory()
	b := bench{
		store: store, codes: &codes{promise: codegen.Unique}, limits: &limits{},
		announced: new([]link.Change), metrics: prometheus.NewRegistry(),
	}
	var mu sync.Mutex
	cfg := linkservice.Config{
		Store: store, Codes: b.codes, Limits: b.limits, Hosts: hoststest.New(t, "https://curt.test", "go.example"), Random: rand.Reader, Once: idempotencytest.NewMemory(),
		Metrics: b.metrics,
		Announce: func(c link.Change) {
			mu.Lock()
			defer mu.Unlock()
			*b.announced = append(*b.announced, c)
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	b.Service = linkservice.New(cfg)
	return b
}

func by(who auth.Principal) shorten.Cause { return shorten.Cause{Principal: who} }

// under is the cause of a request with an idempotency key.
func under(key string, who auth.Principal) shorten.Cause {
	return shorten.Cause{Principal: who, IdempotencyKey: key}
}

// created is Create for tests that want the link only.
func (b bench) created(ctx context.Context, now time.Time, cause shorten.Cause, req *shorten.Request) (link.Link, error) {
	made, err := b.Create(ctx, now, cause, req)
	return made.Link, err
}

// mustRepeat is mustCreate under the idempotency key "k".
func (b bench) mustRepeat(t *testing.T, who auth.Principal, req shorten.Request) link.Link {
	t.Helper()
	l, err := b.created(t.Context(), noon(), under("k", who), &req)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (b bench) mustCreate(t *testing.T, who auth.Principal, req shorten.Request) link.Link {
	t.Helper()
	l, err := b.created(t.Context(), noon(), by(who), &req)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// stored returns how many links there are.
func (b bench) stored(t *testing.T) int {
	t.Helper()
	slice, err := b.store.List(t.Context(), link.Filter{}, link.Page{Limit: link.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	return len(slice.Links)
}

// counter returns the value of one of the package's counters.
func (b bench) counter(t *testing.T, name string) float64 {
	t.Helper()
	families, err := b.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no counter %s", name)
	return 0
}

// tries returns how many links were created with generated codes, and how many of these were tried.
func (b bench) tries(t *testing.T, strategy string) (links uint64, codes float64) {
	t.Helper()
	families, err := b.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "curt_create_code_tries" {
			continue
		}
		m := f.GetMetric()[0]
		if got := m.GetLabel()[0].GetValue(); got != strategy {
			t.Errorf("the strategy is %q, want %q", got, strategy)
		}
		return m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()
	}
	t.Fatal("no histogram of tries")
	return 0, 0
}

func to(url string) shorten.Request {
	return shorten.Request{Fields: shorten.Fields{LongURL: shorten.Value(url)}}
}

// codes is a Generator that first says what it is told, then counts.
type codes struct {
	promise codegen.Guarantee

	mu     sync.Mutex
	next   []link.Code // guarded by mu, as all below
	made   int
	burned []link.Code
	needs  []codegen.Need
	err    error
}

func (c *codes) Next(_ context.Context, need codegen.Need) (link.Code, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return "", c.err
	}
	c.needs = append(c.needs, need)
	if len(c.next) > 0 {
		code := c.next[0]
		c.next = c.next[1:]
		return code, nil
	}
	c.made++
	return link.Code(fmt.Sprintf("c%06d", c.made)), nil
}

func (c *codes) Guarantee() codegen.Guarantee { return c.promise }
func (c *codes) Kind() link.CodeKind          { return linktest.Kind(c.promise == codegen.Unique) }

func (c *codes) Burned(code link.Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.burned = append(c.burned, code)
}

// limits is a ratelimit.Store that counts per bucket and never refills.
type limits struct {
	mu    sync.Mutex
	spent map[string]int // guarded by mu
	err   error
}

func (l *limits) Spend(_ context.Context, _ time.Time, charges []ratelimit.Charge) ([]ratelimit.Verdict, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	if l.spent == nil {
		l.spent = map[string]int{}
	}
	verdicts := make([]ratelimit.Verdict, len(charges))
	for i, c := range charges {
		if l.spent[c.Bucket] >= c.Limit.Burst {
			verdicts[i] = ratelimit.Verdict{Limit: c.Limit.Count, RetryAfter: 6 * time.Second, ResetAfter: time.Minute}
			continue
		}
		l.spent[c.Bucket] += c.Cost
		verdicts[i] = ratelimit.Verdict{Allowed: true, Limit: c.Limit.Count, Remaining: c.Limit.Burst - l.spent[c.Bucket]}
	}
	return verdicts, nil
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
