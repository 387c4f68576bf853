package redirect_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"curt/internal/cache/cachetest"
	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/redirect"
	"curt/internal/redirect/redirecttest"
)

var errAway = errors.New("the store is away")

// now is any moment with milliseconds and more.
func now() time.Time { return time.Date(2026, 3, 14, 15, 9, 26, 535_897_932, time.UTC) }

func key(code string) link.Key { return link.Key{Code: link.Code(code)} }

const (
	browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	program = "*/*"
	dest    = "https://example.com/landing?a=b#part"
	back    = "https://fallback.example/"
)

func newResolver(t testing.TB, s *cachetest.Source) *redirect.Resolver {
	t.Helper()
	r, err := redirect.NewResolver(redirect.ResolverConfig{
		Source: s, Spender: s, IsBot: func(agent string) bool { return agent == "robot" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func resolve(t *testing.T, s *cachetest.Source, q redirect.Request, at time.Time) redirect.Outcome {
	t.Helper()
	out, err := newResolver(t, s).Resolve(t.Context(), key("abc"), q, at)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// recorder keeps copies of what it is told.
type recorder struct {
	mu     sync.Mutex
	clicks []clicks.Raw
	before func() // runs at each Record, before the copy
}

func (r *recorder) Record(c *clicks.Raw) bool {
	if r.before != nil {
		r.before()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := *c
	for _, b := range []*[]byte{&kept.Domain, &kept.Code, &kept.UserAgent, &kept.Referrer, &kept.Language, &kept.Query} {
		*b = slices.Clone(*b)
	}
	r.clicks = append(r.clicks, kept)
	return true
}

func (r *recorder) all() []clicks.Raw {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.clicks)
}

func newHandler(t testing.TB, cfg redirect.HandlerConfig, s *cachetest.Source, r redirect.Recorder) *redirect.Handler {
	t.Helper()
	if cfg.Resolver == nil {
		cfg.Resolver = newResolver(t, s)
	}
	cfg.Recorder, cfg.Pages = r, redirecttest.Pages{}
	h, err := redirect.NewHandler(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
